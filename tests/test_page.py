"""The page of an evaluation: what stands in it, read back from its HTML."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from page_results import HOSTILE, LONG, entry, failure, results, skipped, value

from radgen.errors import RadgenError
from radgen.train.page.charts import Plots
from radgen.train.page.evaluation import Evaluation
from radgen.train.page.failures import cards, counts
from radgen.train.page.settings import load_page_settings
from radgen.train.page.tables import suite_tables

vl_convert = pytest.importorskip("vl_convert", reason="vl-convert-python (extra train) draws the plots")
from radgen.train.page import render, write_page  # noqa: E402

SETTINGS = load_page_settings()


class Reader(HTMLParser):
    """Elements with their attributes; text outside scripts and styles; the scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[str] = []
        self.inside = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self.inside:
            self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts.append(data)
        elif not self.inside:
            self.text.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.text).split())


@pytest.fixture(scope="module")
def page() -> str:
    return render(results())


@pytest.fixture(scope="module")
def read(page: str) -> Reader:
    return Reader(page)


def charts(read: Reader) -> dict[str, Any]:
    return json.loads(next(text for text in read.scripts if text.startswith("{")))


def test_same_results_same_bytes(page: str) -> None:
    assert page.startswith("<!doctype html>\n")
    assert render(results()) == page


def test_the_page_needs_nothing_else(page: str, read: Reader) -> None:
    for tag, attributes in read.elements:
        for name in ("src", "href", "action", "poster", "srcset"):
            link = attributes.get(name)
            assert link is None or link.startswith("#") or link == "data:,", (tag, link)
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_every_link_leads_somewhere(read: Reader) -> None:
    places = {attributes.get("id") for _, attributes in read.elements}
    links = {attributes["href"] for tag, attributes in read.elements if tag == "a"}
    assert {"#contrasts", "#failures", "#training"} <= links
    assert {link.removeprefix("#") for link in links if link} <= places


def test_text_of_the_results_is_text_on_the_page(read: Reader) -> None:
    assert HOSTILE in read.words
    assert not [text for text in read.scripts if "alert('x')" in text and not text.startswith("{")]
    tags = [tag for tag, _ in read.elements]
    assert tags.count("script") == 4


def test_every_place_has_its_plot(read: Reader) -> None:
    places = {attributes["data-chart"] for _, attributes in read.elements if "data-chart" in attributes}
    assert places == set(charts(read))
    figures = {"contrasts", "zones", "spearman", "side_flip", "stages", "presence_f1", "status_f1", "match"}
    assert figures <= places
    assert {f"levels_severity_{name}" for name in ("before", re.sub(r"[^a-z0-9]", "-", LONG))} <= places
    assert sum(name.startswith("tsne_") for name in places) == 2
    assert sum(name.startswith("response_") for name in places) == 2


def test_plots_compile_to_vega_without_a_warning(read: Reader, capfd: pytest.CaptureFixture[str]) -> None:
    for name, spec in charts(read).items():
        assert vl_convert.vegalite_to_vega(spec)["marks"], name
    heard = capfd.readouterr()
    assert "WARN" not in heard.err + heard.out


def test_skipped_suites_stand_with_their_reasons(read: Reader) -> None:
    assert f"Queries for before: needs labels: {HOSTILE}" in read.words
    assert f"Queries for {LONG}: no tokenizer" in read.words


def test_a_suite_skipped_for_all_models_for_one_reason_names_none() -> None:
    found = results()
    found["results"] = [one for one in found["results"] if one["suite"] != "queries"]
    found["results"] += [skipped("queries", name, "no labels") for name in ("before", LONG)]
    assert "Queries : no labels" in Reader(render(found)).words.replace("Queries:", "Queries :")
    assert [skip.models for skip in Evaluation(found).skipped()] == [("before", LONG)]


def test_a_value_that_does_not_exist_has_a_reason_and_is_no_zero() -> None:
    found = results()
    found["results"] = [one for one in found["results"] if one["suite"] != "queries"]
    values = [value("queries.contradiction@10", "hiatal hernia", None, reason="no report has it")]
    found["results"] += [entry("queries", name, values) for name in ("before", LONG)]
    (table,) = suite_tables(Evaluation(found), "queries", SETTINGS)
    assert [(cell.text, cell.reason) for cell in table.rows[0].cells] == [("", "no report has it")] * 2
    assert "no report has it" in Reader(render(found)).words


def test_numbers_intervals_and_the_best_of_a_row() -> None:
    (table,) = suite_tables(Evaluation(results()), "contrasts", SETTINGS)
    assert [row.label for row in table.rows] == ["mean of the axes", "size", "density"]
    first, second = table.rows[1].cells
    assert (first.text, first.interval, first.best) == ("0.600", "0.580 to 0.620", False)
    assert (second.text, second.interval, second.best) == ("0.900", "0.880 to 0.920", True)


def test_lower_is_better_where_the_measure_says_so() -> None:
    table = next(
        one for one in suite_tables(Evaluation(results()), "probes", SETTINGS) if "hamming" in one.title
    )
    assert table.title == "hamming\N{NO-BREAK SPACE}↓"
    # 1 − 0.7 and 1 − 0.9
    assert [(cell.text, cell.best) for cell in table.rows[0].cells] == [("0.300", False), ("0.100", True)]


def test_equal_values_have_no_best() -> None:
    found = Evaluation(results())
    assert found.best("cost.reports_per_second", "") is None
    assert found.best("contrasts.accuracy", "density") == 0.98


def test_numbers_are_said_in_their_units() -> None:
    found = Evaluation(results())
    assert found.say("crossaxis.side_flip", -0.1234) == "−0.123"
    assert found.say("crossaxis.side_flip", -0.0004) == "0.000"
    assert found.say("cost.reports_per_second", 1105.25) == "1,105.2"
    assert found.say("heads.modularity", 3.1) == "3.10"


def test_quoted_figures_are_labelled_and_never_best(read: Reader) -> None:
    tables = suite_tables(Evaluation(results()), "retrieval", SETTINGS)
    forth = next(table for table in tables if table.title == "findings→impression")
    assert forth.encoders == ["BGE-large"]
    assert [(cell.text, cell.quoted, cell.best) for cell in forth.rows[0].cells] == [
        ("0.070", False, False), ("0.090", False, True), ("0.058", True, False)
    ]  # fmt: skip
    assert forth.rows[1].cells[2].text == ""
    assert next(table for table in tables if table.title == "impression→findings").encoders == []
    assert "arXiv 2609.33075, table 2 (Open-I, 128 tokens): measured there, on that pool." in read.words
    assert "BGE-large quoted" in read.words


def test_long_tables_of_details_are_folded_and_their_means_are_not() -> None:
    tables = suite_tables(Evaluation(results()), "probes", SETTINGS)
    assert [(table.title, len(table.rows), table.folded) for table in tables] == [
        ("macro average", 1, False),
        ("presence f1\N{NO-BREAK SPACE}↑", 2, False),
        ("hamming\N{NO-BREAK SPACE}↓", 1, False),
        ("auroc\N{NO-BREAK SPACE}↑", 15, True),
    ]


def test_a_triplet_that_two_models_misorder_is_one_card() -> None:
    found = Evaluation(results())
    shown = cards(found, SETTINGS)
    # Widest miss first: 0.9 − 0.5, 0.82 − 0.61, 0.71 − 0.70.
    assert [card.key for card in shown] == ["density-3", "size-1", "size-2"]
    assert [(miss.model, round(miss.gap, 3)) for miss in shown[1].misses] == [("before", 0.21), (LONG, 0.01)]
    card = shown[1]
    assert card.differs == [("size (mm)", [("anchor", "6"), ("positive", "6"), ("negative", "24")])]
    assert card.shared == [("finding", "pulmonary nodule"), ("presence", "present"), ("laterality", "left")]
    assert [(part, target) for part, _, target in card.texts] == [
        ("anchor", None),
        ("positive", 1.0),
        ("negative", -0.18),
    ]
    assert [(one.name, one.cards, one.all) for one in counts(found, shown, SETTINGS)] == [
        ("size", 2, {"before": 120, LONG: 120}), ("density", 1, {"before": 7, LONG: 7})
    ]  # fmt: skip


def test_a_field_that_is_stated_in_one_text_alone_differs() -> None:
    found = results()
    row = failure("size", 9, 0.1, 0.2)
    del row["negative_state"]["laterality"]
    row["anchor_state"]["morphology"] = row["positive_state"]["morphology"] = ["cavitary", "nodular"]
    found["results"][0]["figures"]["failures"] = [row]
    card = next(card for card in cards(Evaluation(found), SETTINGS) if card.key == "size-9")
    assert dict(card.differs)["laterality"] == [
        ("anchor", "left"),
        ("positive", "left"),
        ("negative", "not stated"),
    ]
    assert dict(card.differs)["morphology"][0] == ("anchor", "cavitary × nodular")


def test_cards_of_an_axis_and_model_are_limited() -> None:
    found = results()
    most = SETTINGS.limits.failures_an_axis
    rows = [failure("size", number, 0.1, 0.9 - number / 1000) for number in range(most + 5)]
    found["results"][0]["figures"]["failures"] = rows
    assert len(cards(Evaluation(found), SETTINGS)) == most
    assert f"The page shows at most {most} an axis and model." in Reader(render(found)).words


def test_curriculum_lays_stages_end_to_end(read: Reader) -> None:
    name = re.sub(r"[^a-z0-9]", "-", LONG)
    spec = charts(read)[f"curriculum_{name}"]
    # Step 50 of stage 3 follows 100 steps of stage 2; losses, counts and what was not measured are left out.
    points = [(row["measure"], row["x"], row["value"]) for row in spec["data"]["values"]]
    mean = "one detail (mean of the axes)"
    assert points == [(mean, 0, 0.5), (mean, 100, 0.9), (mean, 150, 0.95)]
    words = [layer["data"]["values"] for layer in spec["layer"] if "data" in layer]
    assert words[0] == [{"x": 0, "text": "stage 2"}, {"x": 100, "text": "stage 3"}]
    axes = charts(read)[f"curriculum-axes_{name}"]["data"]["values"]
    assert [(row["measure"], row["x"], row["value"]) for row in axes] == [("size · accuracy", 100, 0.8)]


def test_boxes_of_states_stand_side_by_side(read: Reader) -> None:
    spec = charts(read)["boxes_before"]
    found = [(row["label"], row["group"], row["q1"], row["high"]) for row in spec["data"]["values"]]
    assert found == [
        ("pleural effusion", "within a state", 0.65, 0.8),
        ("pleural effusion", "across the states", -0.45, -0.3),
    ]
    scales = [layer["encoding"]["x"]["scale"]["domain"] for layer in spec["layer"]]
    assert scales == [[-1, 1]] * 5
    drawn = [layer["encoding"]["x"]["field"] for layer in spec["layer"]]
    assert drawn == ["at", "low", "q1", "median", "mean"]


def test_directions_that_nothing_is_quoted_for_share_a_figure(read: Reader) -> None:
    names = {name for name in charts(read) if name.startswith("recall")}
    assert names == {"recall_findings-impression", "recall"}
    assert {row["label"] for row in charts(read)["recall"]["data"]["values"]} == {"impression→findings"}


def test_one_model_and_one_suite_are_enough() -> None:
    found = results()
    found["models"] = found["models"][:1]
    found["suites"] = ["contrasts"]
    found["results"] = found["results"][:1]
    read = Reader(render(found))
    assert "1 model and 1 suite." in read.words
    assert "stages" not in charts(read)
    assert "Not measured" not in read.words


def test_an_evaluation_with_nothing_measured_says_why() -> None:
    found = results()
    found["results"] = [
        skipped(suite, name, "no tokenizer") for suite in found["suites"] for name in ("before", LONG)
    ]
    read = Reader(render(found))
    assert read.words.count("no tokenizer") == 2 * 10  # at the top, and in each section
    assert all(name.startswith("curriculum") for name in charts(read))


@pytest.mark.parametrize("found", [{}, {"radgen": "dataset", "results": []}, {"radgen": "evaluation"}])
def test_something_else_is_refused(found: dict[str, Any]) -> None:
    with pytest.raises(RadgenError, match=r"expected the results\.json of 'radgen evaluate'"):
        render(found)


def test_another_format_is_refused() -> None:
    with pytest.raises(RadgenError, match="format 2, expected 1"):
        render(results() | {"format": 2})


def test_the_file_appears_when_it_is_complete(tmp_path: Path, page: str) -> None:
    path = tmp_path / "page.html"
    write_page(results(), path)
    assert path.read_text(encoding="utf-8") == page
    with pytest.raises(RadgenError):
        write_page({}, path)
    assert path.read_text(encoding="utf-8") == page
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_of_the_users_is_not_replaced(tmp_path: Path, page: str) -> None:
    path = tmp_path / "page.html"
    path.write_text("<!doctype html><p>mine")
    with pytest.raises(RadgenError, match="is no page of radgen"):
        write_page(results(), path)
    assert path.read_text() == "<!doctype html><p>mine"
    path.write_text(page.replace("before", "earlier"), encoding="utf-8")
    write_page(results(), path)
    assert path.read_text(encoding="utf-8") == page


def test_two_models_share_no_colour_and_mark() -> None:
    style = SETTINGS.style
    looks = [
        (style.colour(index), style.mark(index)) for index in range(len(style.colours) * len(style.marks))
    ]
    assert len(set(looks)) == len(looks)
    assert set(style.marks) == set(SETTINGS.shapes)


@pytest.mark.parametrize("colour", [*SETTINGS.style.colours, SETTINGS.style.ink, SETTINGS.style.soft])
def test_colours_stand_out_from_the_paper(colour: str) -> None:
    """WCAG 2.2, 1.4.11: graphics need a contrast of 3 against what is beside them."""

    def light(hexes: str) -> float:
        parts = [int(hexes[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    assert (light("#ffffff") + 0.05) / (light(colour) + 0.05) >= 3


def test_an_interval_is_drawn_where_there_is_one() -> None:
    plots = Plots(["a"], SETTINGS.style)
    row = {"label": "size", "model": "a", "value": 0.5}
    marks = [
        layer["mark"]["type"] for layer in plots.dots([row | {"low": 0.4, "high": 0.6}], title="x")["layer"]
    ]
    assert marks == ["rule", "point"]
    assert [layer["mark"]["type"] for layer in plots.dots([row], title="x")["layer"]] == ["point"]
