"""`radgen evaluate` and `radgen compare` as a user runs them, with tiny encoders."""

from __future__ import annotations

import io
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import orjson
import pytest
import train_runs
from evaluate_runs import report, triplet, write_rows

from radgen.cli import main
from radgen.errors import RadgenError
from radgen.generators.reports import SyntheticReports
from radgen.ontology.load import load_ontology
from radgen.train.evaluate.compare import broken, compare, model_of, read_gate
from radgen.train.evaluate.curriculum import curriculum, trained_model
from radgen.train.evaluate.results import dump, read_results
from radgen.train.evaluate.run import labels_of
from radgen.train.evaluate.settings import SUITES, measures


class Ran:
    """How a command ended, and what it said."""

    def __init__(self, code: object, stdout: str, stderr: str) -> None:
        self.returncode, self.stdout, self.stderr = code, stdout, stderr


def command(*arguments: object, cwd: Path | None = None) -> Ran:
    """Run a command in this process: torch is loaded once and not by every test."""
    said, complained = io.StringIO(), io.StringIO()
    before, sys.argv = sys.argv, ["radgen", *map(str, arguments)]
    try:
        with redirect_stdout(said), redirect_stderr(complained), chdir(cwd or Path.cwd()):
            main()
    except SystemExit as end:
        return Ran(end.code, said.getvalue(), complained.getvalue())
    finally:
        sys.argv = before
    raise AssertionError("a command ends by itself")


SIDES = ("left", "right")
#: What makes the run below small.
SETTINGS = """
bootstrap: {repeats: 100}
sample: {contrasts: 10, discrepancies: 12, cost: 4}
probes:
  {least_reports: 20, sizes: [10], repeats: 2, strengths: [1.0, 100.0], least_positives: 1, steps: 50}
heads:
  {attributes: [laterality, severity, presence], train_triplets: 30, combinations: 5, test_pairs: 20}
"""


def nodule(side: str, number: int) -> str:
    return f"A {number} mm {side} nodule is seen."


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two tiny encoders, judging sets and reports."""
    place = tmp_path_factory.mktemp("evaluate")
    train_runs.bert(place / "one")
    train_runs.qwen(place / "two")
    states = [{"finding": "pulmonary_nodule", "presence": "present", "laterality": side} for side in SIDES]
    texts = [(nodule("left", n), nodule("left", n + 90), nodule("right", n)) for n in range(1, 16)]
    rows = [triplet("laterality", n, three, [states[0], *states]) for n, three in enumerate(texts)]
    write_rows(place / "judging" / "contrast_10" / "test.jsonl", rows)
    write_rows(place / "judging" / "probe_13" / "test.jsonl", [row | {"kind": "match"} for row in rows])
    pairs = [
        {"sentence1": nodule("left", n), "sentence2": nodule(SIDES[n % 2], n + 50), "score": 0.9 - 0.01 * n}
        | {"id": str(n), "combination": "size_laterality", "side_relation": ("same", "opposite")[n % 2]}
        for n in range(12)
    ]
    write_rows(place / "judging" / "crossaxis_8" / "test.jsonl", pairs)
    made = SyntheticReports(load_ontology(), seed=3).rows(range(40))
    write_rows(place / "reports.jsonl", [row.data if hasattr(row, "data") else row for row in made])
    (place / "small.yaml").write_text(SETTINGS)
    return place


@pytest.fixture(scope="module")
def evaluated(place: Path) -> Path:
    """The folder after one evaluation of both encoders, all suites."""
    run = command(
        "evaluate", "--model", place / "one", "--model", place / "two", "--judging", place / "judging",
        "--reports", place / "reports.jsonl", "--settings", place / "small.yaml", "--out", place / "out",
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "ordering accuracy" in run.stdout
    return place


def test_results_have_every_suite_and_model(evaluated: Path) -> None:
    results = read_results(evaluated / "out" / "results.json")
    assert results["suites"] == list(SUITES)
    assert [model["name"] for model in results["models"]] == ["one", "two"]
    assert {(entry["suite"], entry["model"]) for entry in results["results"]} == {
        (suite, model) for suite in SUITES for model in ("one", "two")
    }
    skipped = {entry["suite"] for entry in results["results"] if entry["reason"]}
    assert skipped == {"states"}  # it needs a folder of its own
    for entry in results["results"]:
        for value in entry["values"]:
            assert value["measure"] in measures()
            assert value["value"] is not None or value["reason"]
            if value["low"] is not None:
                assert value["low"] <= value["value"] + 1e-6
                assert value["high"] >= value["value"] - 1e-6
    contrast = next(entry for entry in results["results"] if entry["suite"] == "contrasts")
    assert contrast["notes"] == ["10 of 15 rows, a seeded sample; --full judges all"]
    assert (evaluated / "out" / "page.html").stat().st_size > 10_000


@pytest.mark.slow
def test_the_same_command_gives_the_same_results(evaluated: Path) -> None:
    """All suites but cost, without the vectors of the first run."""
    suites = [option for suite in SUITES if suite not in ("cost", "states") for option in ("--suite", suite)]
    found = []
    for name in ("first", "second"):
        out = evaluated / name
        run = command(
            "evaluate", "--model", evaluated / "one", *suites, "--judging", evaluated / "judging",
            "--reports", evaluated / "reports.jsonl", "--settings", evaluated / "small.yaml", "--out", out,
            "--no-cache",
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        assert not (out / "vectors").exists()
        found.append(orjson.loads((out / "results.json").read_bytes()))
        assert f"--out {out}" in found[-1].pop("command")
    assert found[0] == found[1]


def test_results_hold_no_text_of_a_report(evaluated: Path) -> None:
    data = (evaluated / "out" / "results.json").read_text()
    for line in (evaluated / "reports.jsonl").read_text().splitlines():
        row = orjson.loads(line)
        for section in (row["findings"], row["impression"]):
            assert not section or section not in data


def test_an_evaluation_is_not_overwritten(evaluated: Path) -> None:
    out = evaluated / "out"
    before = (out / "results.json").read_bytes()
    run = command("evaluate", "--model", evaluated / "one", "--suite", "probe", "--out", out)
    assert run.returncode == 2
    assert "exists already" in run.stderr
    assert (out / "results.json").read_bytes() == before
    other = evaluated / "other"
    other.mkdir()
    (other / "results.json").write_text("{}")
    run = command("evaluate", "--model", evaluated / "one", "--suite", "probe", "--out", other, "--force")
    assert run.returncode == 2
    assert "no results.json of 'radgen evaluate'" in run.stderr
    assert (other / "results.json").read_text() == "{}"


def test_what_cannot_be_judged_is_skipped_with_the_reason(place: Path, tmp_path: Path) -> None:
    """A folder that is no encoder beside one that is; no judging sets; reports with one section."""
    import shutil

    bare = tmp_path / "bare"
    shutil.copytree(place / "one", bare)
    for path in bare.glob("tokenizer*"):
        path.unlink()
    clear = [report(str(n), f"The lungs are clear {n}.", " ") for n in range(12)]
    rows = write_rows(tmp_path / "r.jsonl", clear)
    run = command(
        "evaluate", "--model", bare, "--model", place / "one", "--suite", "contrasts", "--suite", "retrieval",
        "--suite", "probes", "--suite", "queries", "--reports", rows, "--out", tmp_path / "out", "--no-cache",
        "--judging", tmp_path,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    results = read_results(tmp_path / "out" / "results.json")
    reasons = {(entry["model"], entry["suite"]): entry["reason"] for entry in results["results"]}
    assert "tokenizer" in reasons["bare", "contrasts"]
    assert "no contrast_10 in" in reasons["one", "contrasts"]
    assert "fewer than two reports have both findings and impression" in reasons["one", "retrieval"]
    assert "12 reports with labels (rules)" in reasons["one", "probes"]
    assert reasons["one", "queries"] is None
    assert "skipped: " in run.stdout
    for entry in results["results"]:
        assert entry["status"] == ("skipped" if entry["reason"] else "done")
        assert not (entry["reason"] and entry["values"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--model", "nowhere/at/all"], "no such folder"),
        (["--model", "ONE", "--suite", "contrast"], "unknown suite 'contrast'; did you mean 'contrasts'?"),
        (["--model", "ONE", "--labels", "l.csv"], "--labels: needs --reports"),
        (["--model", "ONE", "--reports", "none.jsonl"], "no such file or folder"),
        (["--model", "ONE", "--suite", "probe", "--judging", "none"], "nothing could be judged"),
        ([], "--model"),
    ],
)
def test_mistakes_take_one_line(place: Path, tmp_path: Path, arguments: list[str], said: str) -> None:
    arguments = [str(place / "one") if item == "ONE" else item for item in arguments]
    run = command("evaluate", *arguments, "--out", tmp_path / "out", cwd=tmp_path)
    assert run.returncode == 2
    assert said in run.stderr
    assert "Traceback" not in run.stderr


# ------------------------------------------------------------------------------------------- compare


def value(measure: str, group: str, found: float | None, spread: float | None = 0.1) -> dict[str, Any]:
    low, high = (None, None) if spread is None or found is None else (found - spread, found + spread)
    return {"measure": measure, "group": group, "value": found, "low": low, "high": high, "n": 10}


def results(*values: dict[str, Any], models: tuple[str, ...] = ("m",)) -> dict[str, Any]:
    known = {
        "a.good": {"title": "", "formula": "", "source": "", "better": "higher", "unit": "share"},
        "a.bad": {"title": "", "formula": "", "source": "", "better": "lower", "unit": "share"},
        "a.none": {"title": "", "formula": "", "source": "", "better": "none", "unit": "share"},
    }
    entries = [{"suite": "a", "model": name, "values": list(values)} for name in models]
    found: dict[str, Any] = {"radgen": "evaluation", "format": 1, "measures": known, "results": entries}
    found |= {"models": [{"name": name} for name in models], "settings": "", "seed": 1, "ontology": ""}
    return found | {"sources": {"reports": 1}}


def test_differences_by_hand() -> None:
    before = results(value("a.good", "", 0.9), value("a.good", "x", 0.5, None), value("a.bad", "", 0.1, 0.01))
    after = results(value("a.good", "", 0.7), value("a.good", "x", 0.6), value("a.bad", "", 0.2, 0.01))
    found, remarks = compare(before, after, "m", "m")
    by = {item.name: item for item in found}
    assert by["a.good"].change == pytest.approx(-0.2)
    assert (by["a.good"].low, by["a.good"].high) == pytest.approx((-0.2 - 0.02**0.5, -0.2 + 0.02**0.5))
    assert by["a.good"].verdict == "worse"
    assert by["a.good[x]"].low is None
    assert by["a.good[x]"].verdict == ""
    assert by["a.bad"].verdict == "worse"
    assert by["a.bad"].fall == pytest.approx(0.1)
    assert remarks == []


def test_a_gate_opens_only_for_a_fall_within_its_bound() -> None:
    before = results(value("a.good", "x", 0.9), value("a.bad", "", 0.1), value("a.none", "", 0.1))
    after = results(value("a.good", "x", 0.85), value("a.bad", "", 0.2), value("a.none", "", 0.1))
    found, _ = compare(before, after, "m", "m")
    assert broken([read_gate("a.good[x]=0.05")], found) == []
    assert broken([read_gate("a.good[x]=0.04")], found) == [
        "a.good[x] fell by 0.05 (0.9 to 0.85); the bound is 0.04"
    ]
    assert broken([read_gate("a.bad=0.05")], found) == ["a.bad rose by 0.1 (0.1 to 0.2); the bound is 0.05"]
    with pytest.raises(RadgenError, match=r"not in both evaluations: .*did you mean 'a\.good\[x\]'"):
        broken([read_gate("a.good[y]=0.1")], found)
    with pytest.raises(RadgenError, match="no way is better"):
        broken([read_gate("a.none=0.1")], found)


@pytest.mark.parametrize("text", ["a.good", "a.good=", "a.good=x", "a.good=-1", "=1", "a.good=nan", "a=inf"])
def test_gates_that_are_none(text: str) -> None:
    with pytest.raises(RadgenError, match="expected MEASURE=BOUND"):
        read_gate(text)


def test_what_cannot_be_compared_is_said() -> None:
    before = results(value("a.good", "", 0.9), value("a.good", "x", 0.5))
    after = results(value("a.good", "", None)) | {"sources": {"reports": 2}, "settings": "other"}
    found, remarks = compare(before, after, "m", "m")
    assert found == []
    assert remarks == [
        "reports: the two evaluations did not judge the same rows",
        "settings: differs between the two evaluations",
        "1 figures are in one evaluation alone and are not compared",
    ]
    two = results(models=("m", "n"))
    assert model_of(two, "n", "--model", "A") == "n"
    with pytest.raises(RadgenError, match="A: has several models: name one with --model: m, n"):
        model_of(two, None, "--model", "A")
    with pytest.raises(RadgenError, match="unknown model 'o'"):
        model_of(two, "o", "--model", "A")


def test_compare_ends_with_1_where_a_gate_is_broken(tmp_path: Path) -> None:
    for name, number in (("a", 0.9), ("b", 0.8)):
        (tmp_path / f"{name}.json").write_bytes(dump(results(value("a.good", "", number))))
    files = (tmp_path / "a.json", tmp_path / "b.json")
    assert command("compare", *files).returncode == 0
    assert command("compare", *files, "--gate", "a.good=0.2").returncode == 0
    run = command("compare", *files, "--gate", "a.good=0.05", "--json")
    assert run.returncode == 1
    assert "a.good fell by 0.1" in run.stderr
    assert orjson.loads(run.stdout)["broken"] == ["a.good fell by 0.1 (0.9 to 0.8); the bound is 0.05"]
    assert command("compare", *reversed(files), "--gate", "a.good=0.05").returncode == 0
    run = command("compare", *files, "--gate", "a.god=0.05")
    assert run.returncode == 2
    assert "did you mean 'a.good'?" in run.stderr
    (tmp_path / "a.json").write_text("{}")
    run = command("compare", *files)
    assert (run.returncode, "no results.json" in run.stderr) == (2, True)


def test_compare_of_two_models_of_one_evaluation(evaluated: Path) -> None:
    file = evaluated / "out" / "results.json"
    run = command("compare", file, file, "--model", "one", "--against", "two")
    assert run.returncode == 0, run.stderr
    assert "contrasts.accuracy" in run.stdout
    same = ("--model", "one", "--against", "one", "--gate", "contrasts.accuracy=0")
    run = command("compare", file, file, *same)
    assert run.returncode == 0, run.stderr


# -------------------------------------------------------------------------------------------- models


def test_names_are_short_and_distinct() -> None:
    assert labels_of(["minilm", "runs/stage3"]) == ["minilm", "stage3"]
    assert labels_of(["a/stage3/model", "b/stage3/model"]) == ["a/stage3", "b/stage3"]
    assert labels_of(["org/name"]) == ["name"]
    assert len(set(labels_of(["minilm", "minilm"]))) == 2


def test_the_curriculum_of_a_trained_model(tmp_path: Path) -> None:
    for stage, metric in (("stage2", 0.7), ("stage3", 0.9)):
        write_rows(
            tmp_path / stage / "metrics.jsonl",
            [{"step": 1, "loss": {"a": 1.0}}, {"step": 5, "metrics": {"contrast/mean": metric}}],
        )
        (tmp_path / stage / "model").mkdir()
        (tmp_path / stage / "model" / "modules.json").write_text("[]")
    with (tmp_path / "stage3" / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 6, "metr')  # what a kill left
    model = trained_model(str(tmp_path / "stage3"))
    assert model == str(tmp_path / "stage3" / "model")
    assert curriculum(model) == {
        "stages": [2, 3],
        "points": [
            {"stage": 2, "step": 5, "values": {"contrast/mean": 0.7}},
            {"stage": 3, "step": 5, "values": {"contrast/mean": 0.9}},
        ],
    }
    alone = curriculum(str(tmp_path / "stage2" / "model"))
    assert alone is not None
    assert alone["stages"] == [2]
    assert curriculum(str(tmp_path)) is None
    assert trained_model("minilm") == "minilm"
