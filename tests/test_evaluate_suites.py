"""Suites over vectors that are given, so that every figure can be worked out by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from evaluate_runs import SURE, Table, found, quiet, report, triplet, write_rows

from radgen.errors import RadgenError
from radgen.ontology.load import load_ontology
from radgen.train.evaluate import comparing, judging_sets, sentences
from radgen.train.evaluate.heads import cosines_of, judged, pairs_of, target_of
from radgen.train.evaluate.heads import score as score_heads
from radgen.train.evaluate.heads import train as train_heads
from radgen.train.evaluate.outcome import Outcome, SkippedError
from radgen.train.evaluate.reports import read_pool
from radgen.train.evaluate.retrieval import queries, retrieval
from radgen.train.evaluate.settings import load_settings

ONTOLOGY = load_ontology()
SETTINGS = load_settings()


def at(cosine: float) -> list[float]:
    """Return a vector with this cosine to [1, 0]."""
    return [cosine, (1 - cosine**2) ** 0.5]


def read(tmp_path: Path, name: str, rows: list[dict[str, Any]], most: int = 0) -> judging_sets.JudgingSet:
    write_rows(tmp_path / "judging" / name / "test.jsonl", rows)
    return judging_sets.read(tmp_path, name, most, seed=3)


# -------------------------------------------------------------------------------------- judging sets


def test_sample_is_seeded_and_takes_its_share_of_every_axis(tmp_path: Path) -> None:
    rows = [triplet(axis, n, (f"{axis}{n}", "b", "c")) for n in range(30) for axis in ("size", "margin")]
    one, two = (read(tmp_path, "contrast_10", rows, most=5) for _ in range(2))
    assert one.rows == two.rows
    assert {axis: len(numbers) for axis, numbers in one.by("axis").items()} == {"size": 5, "margin": 5}
    assert one.total == 60
    assert one.notes == ["10 of 60 rows, a seeded sample; --full judges all"]
    other = judging_sets.read(tmp_path, "contrast_10", 5, seed=4)
    assert other.rows != one.rows
    assert len(read(tmp_path, "contrast_10", rows).rows) == 60


def test_empty_texts_are_left_out_and_said(tmp_path: Path) -> None:
    rows = [triplet("size", 0, ("a", "b", "c")), triplet("size", 1, ("a", " ", "c"))]
    made = read(tmp_path, "contrast_10", rows)
    assert len(made.rows) == 1
    assert made.notes == ["1 rows with an empty text left out"]


def test_a_broken_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "contrast_10" / "test.jsonl"
    write_rows(path, [triplet("size", 0, ("a", "b", "c")), {"anchor": "a"}])
    with pytest.raises(RadgenError, match=r"test\.jsonl:2: expected text in the columns anchor, positive"):
        judging_sets.read(tmp_path, "contrast_10", 0, 1)
    with pytest.raises(SkippedError, match="no probe_13 in"):
        judging_sets.read(tmp_path, "probe_13", 0, 1)


# ------------------------------------------------------------------------------------------ contrasts


def severity(level: str) -> dict[str, Any]:
    return {"finding": "pleural_effusion", "presence": "present", "severity": level}


def place(zone: str, side: str = "left") -> dict[str, Any]:
    return {"finding": "pulmonary_nodule", "presence": "present", "laterality": side, "zone": zone}


def test_contrasts_by_hand(tmp_path: Path) -> None:
    table = Table({"a": [1, 0], "p": at(0.9), "q": at(0.5), "r": at(0.3), "s": at(0.5)})
    mild, moderate, severe = severity("mild"), severity("moderate"), severity("severe")
    upper = place("upper")
    rows = [
        triplet("severity", 0, ("a", "p", "q"), (mild, mild, moderate)),  # right: 0.9 > 0.5
        triplet("severity", 1, ("a", "r", "q"), (mild, moderate, severe)),  # wrong: 0.3 < 0.5
        triplet("severity", 2, ("a", "q", "s"), (mild, mild, severe)),  # a tie is wrong
        triplet("location", 3, ("a", "p", "q"), (upper, upper, place("lower"))),
        triplet("location", 4, ("a", "r", "p"), (upper, place("mid"), place("upper", "right"))),  # wrong
    ]
    made = read(tmp_path, "contrast_10", rows)
    out = sentences.contrasts(made, table, SETTINGS, ONTOLOGY, SURE, quiet)
    values = found(out)
    assert values["contrasts.accuracy", "severity"].value == pytest.approx(1 / 3)
    assert values["contrasts.accuracy", "location"].value == 0.5
    # the mean of the axes, not of the rows
    assert values["contrasts.accuracy", ""].value == pytest.approx((1 / 3 + 1 / 2) / 2)
    assert values["contrasts.accuracy", ""].n == 5
    assert out.figures["failure_counts"] == {"severity": 2, "location": 1}
    misses = [
        (row["id"], round(row["cos_positive"], 3), round(row["cos_negative"], 3))
        for row in out.figures["failures"]
    ]
    assert misses == [("severity-1", 0.3, 0.5), ("severity-2", 0.5, 0.5), ("location-4", 0.3, 0.9)]
    assert out.figures["failures"][0]["negative_state"] == severe
    matrix = out.figures["levels"]["severity"]
    assert matrix["levels"] == ["trace", "mild", "moderate", "severe"]
    # mild-mild: 0.9 and 0.5; mild-moderate: 0.5 and 0.3; mild-severe: 0.5 and 0.5; trace: nothing
    assert matrix["matrix"][1] == [None, pytest.approx(0.7), pytest.approx(0.4), pytest.approx(0.5)]
    assert matrix["n"][1] == [0, 2, 2, 2]
    assert matrix["matrix"][2][1] == pytest.approx(0.4)
    zones = out.figures["zones"]
    # the same side: upper-upper 0.9, upper-mid 0.3 (one step), upper-lower 0.5 (two); the other side is out
    assert zones["separation"] == [0, 1, 2]
    assert zones["mean"] == pytest.approx([0.9, 0.3, 0.5])
    assert zones["n"] == [1, 1, 1]


def test_crossaxis_by_hand(tmp_path: Path) -> None:
    stats = pytest.importorskip("scipy.stats")
    table = Table({"a": [1, 0], **{f"t{n}": at(n / 10) for n in range(1, 10)}})
    relations = ["same", "same", "opposite", "opposite", "bilateral", "same", "opposite", None, None]
    scores = [0.9, 0.8, 0.1, 0.0, 0.4, 0.4, -0.2, 0.3, 0.3]
    doublings = [0.1, 1.2, 0.0, 0.9, 0.2, 1.4, 3.0, None, None]  # to whole ones: 0, 1, 0, 1, 0, 1, 3
    rows = [
        {"sentence1": "a", "sentence2": f"t{n}", "score": score, "id": str(n), "side_relation": relation}
        | {"combination": "size_laterality" if relation else "density_margin"}
        | {"distances": {"size": doublings[n - 1]} if relation else {"density": 1, "margin": 0}}
        for n, (score, relation) in enumerate(zip(scores, relations, strict=True), 1)
    ]
    out = sentences.crossaxis(read(tmp_path, "crossaxis_8", rows), table, SETTINGS, SURE, quiet)
    values = found(out)
    expected = stats.spearmanr(range(9), scores).statistic
    assert values["crossaxis.spearman", ""].value == pytest.approx(expected)
    assert values["crossaxis.spearman", "density_margin"].value is None  # the targets do not differ
    assert values["crossaxis.spearman", "density_margin"].reason == "not defined for these rows"
    # same: 0.1, 0.2, 0.6; opposite: 0.3, 0.4, 0.7
    assert values["crossaxis.side_flip", "size_laterality"].value == pytest.approx(0.3 - 1.4 / 3)
    assert ("crossaxis.side_flip", "density_margin") not in values
    # same size: 0.1 against 0.3; one doubling: 0.2 and 0.6 against 0.4; three: 0.7 has no same-side pair
    assert values["crossaxis.matched_side_flip", "size_laterality"].value == pytest.approx((-0.2 + 0.0) / 2)
    assert ("crossaxis.matched_side_flip", "density_margin") not in values
    sides = out.figures["sides"]["size_laterality"]
    assert sides["bilateral"] == pytest.approx(0.5)
    assert (sides["n_same"], sides["n_opposite"], sides["n_bilateral"]) == (3, 3, 1)


def test_a_matched_side_flip_compares_no_pairs_of_two_combinations(tmp_path: Path) -> None:
    """Same-side sizes and opposite counts, one doubling each: plain 0.9 - 0.1, matched none."""
    table = Table({"a": [1, 0], "near": at(0.9), "far": at(0.1)})
    rows = [
        {"sentence1": "a", "sentence2": text, "score": score, "id": text, "combination": f"{name}_laterality"}
        | {"side_relation": relation, "distances": {name: 1.0}}
        for text, score, name, relation in (("near", 0.9, "size", "same"), ("far", 0.0, "count", "opposite"))
    ]
    values = found(sentences.crossaxis(read(tmp_path, "crossaxis_8", rows), table, SETTINGS, SURE, quiet))
    assert values["crossaxis.side_flip", ""].value == pytest.approx(0.8)
    assert values["crossaxis.matched_side_flip", ""].value is None


def test_probe_keeps_match_and_ordinal_apart(tmp_path: Path) -> None:
    table = Table({"a": [1, 0], "p": at(0.9), "q": at(0.5)})
    rows = [
        triplet("size", 0, ("a", "p", "q"), kind="match"),
        triplet("size", 1, ("a", "q", "p"), kind="ordinal"),
        triplet("margin", 2, ("a", "p", "q"), kind="match"),
        triplet("margin", 3, ("a", "q", "p"), kind="match"),
    ]
    values = found(sentences.probe(read(tmp_path, "probe_13", rows), table, SETTINGS, SURE, quiet))
    assert values["probe.match", ""].value == pytest.approx((1 + 0.5) / 2)
    assert values["probe.ordinal", ""].value == 0
    assert ("probe.ordinal", "margin") not in values


# ------------------------------------------------------------------------------------------ retrieval

CLEAR = "The lungs are clear."
EFFUSION = "There is a left pleural effusion."


def pool_of(tmp_path: Path, rows: list[dict[str, Any]], **options: Any) -> Any:
    path = write_rows(tmp_path / "reports.jsonl", rows)
    return read_pool(path, SETTINGS, ONTOLOGY, **options)


def test_retrieval_strict_and_with_equal_texts_by_hand(tmp_path: Path) -> None:
    """Three studies share one normal impression but for its full stop; one has its own."""
    rows = [
        report("1", "Clear lungs one.", "Normal chest"),
        report("2", "Clear lungs two.", "Normal chest"),
        report("3", "Clear lungs three.", "Normal chest."),
        report("4", EFFUSION, "Left pleural effusion."),
        report("5", "No impression here.", None),
    ]
    table = Table({
        "Clear lungs one.": at(0.9), "Clear lungs two.": at(0.8), "Clear lungs three.": at(0.7),
        EFFUSION: [0.0, 1], "Normal chest": [1, 0], "Normal chest.": at(0.99),
        "Left pleural effusion.": [0, 1],
    })  # fmt: skip
    pool = pool_of(tmp_path, rows)
    out = retrieval(pool, None, table, SETTINGS, SURE, quiet)
    values = found(out)
    way = "findings→impression"
    # cosines with "Normal chest.": 1 and 2 and 3 are nearer to it (at 0.99) than to "Normal chest" (at 1):
    # 0.9: 0.9*0.99 + 0.436*0.141 = 0.9525 > 0.9, and so on. Strict: 1 and 2 stand behind it, tied with
    # each other: ranks 2 or 3. 3 finds its own first; 4 too.
    assert values["retrieval.recall@1", way].value == pytest.approx(2 / 4)
    assert values["retrieval.mrr@10", way].value == pytest.approx((2 * (1 / 2 + 1 / 3) / 2 + 2) / 4)
    assert values["retrieval.recall@5", way].value == 1
    assert values["retrieval.recall_equal@1", way].value == 1
    assert values["retrieval.mrr_equal@10", way].value == 1
    # impression→findings: "Normal chest" (twice) is nearest to one, then two, three; "Normal chest." the same
    back = "impression→findings"
    assert values["retrieval.recall@1", back].value == pytest.approx(2 / 4)
    assert values["retrieval.mrr@10", back].value == pytest.approx((1 + 1 / 2 + 1 / 3 + 1) / 4)
    assert "1 reports without findings or impression left out" in out.notes


def test_ndcg_of_retrieval_by_hand(tmp_path: Path) -> None:
    rows = [
        report("1", CLEAR, "Clear."),
        report("2", EFFUSION, "Effusion, left."),
        report("3", EFFUSION, "As said."),
    ]
    table = Table({
        CLEAR: [1, 0, 0], EFFUSION: [0, 1, 0.1], "Clear.": [0, 1, 0], "Effusion, left.": [0, 0, 1],
        "As said.": [1, 0, 0],
    })  # fmt: skip
    values = found(retrieval(pool_of(tmp_path, rows), None, table, SETTINGS, SURE, quiet))
    # gains for a normal query: 1 for its own, 0 else; for an effusion: 1 for both of them, 0 for the normal.
    # 1: "As said." first, then a tie of own and other: mean gain 1/2 at ranks 2 and 3.
    two, three = 1 / np.log2(3), 1 / np.log2(4)
    first = (two + three) / 2
    # 2 and 3: "Clear." (0), "Effusion, left." (1), "As said." (1)
    rest = (two + three) / (1 + two)
    way = "findings→impression"
    assert values["retrieval.ndcg@10", way].value == pytest.approx((first + 2 * rest) / 3)
    assert values["retrieval.ndcg_abnormal@10", way].value == pytest.approx(rest)


def test_retrieval_says_what_it_lacks(tmp_path: Path) -> None:
    table = Table({"a": [1, 0]})
    with pytest.raises(SkippedError, match="needs --reports or --radthought"):
        retrieval(None, None, table, SETTINGS, SURE, quiet)
    pool = pool_of(tmp_path, [report("1", "a", None), report("2", None, "a"), report("3", " ", "")])
    assert pool.left_out == 1
    with pytest.raises(SkippedError, match="fewer than two reports have both"):
        retrieval(pool, None, table, SETTINGS, SURE, quiet)
    with pytest.raises(SkippedError, match="fewer than 10 reports"):
        queries(pool, table, SETTINGS, SURE, quiet)


def test_levels_of_radthought(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "first_order": ["a", "b"], "second_order": ["c"], "third_order": "d", "synthesis": "e"},
        {"id": "2", "first_order": ["f"], "second_order": [], "third_order": "g", "synthesis": "h"},
    ]
    records = write_rows(tmp_path / "records.jsonl", rows)
    table = Table({"a b": [1, 0], "f": [0, 1], "c": [1, 0], "d": [1, 0], "e": [0, 1], "h": at(0.1)})
    values = found(retrieval(None, records, table, SETTINGS, SURE, quiet))
    assert values["retrieval.recall@1", "first order→second order"].n == 1  # the other has no second order
    assert values["retrieval.recall@1", "first order→synthesis"].value == 0  # each is nearer to the other's
    assert values["retrieval.mrr@10", "first order→synthesis"].value == 0.5
    with pytest.raises(RadgenError, match="no such file"):
        retrieval(None, tmp_path / "none", table, SETTINGS, SURE, quiet)
    write_rows(records, [{"id": "1"}])
    with pytest.raises(RadgenError, match=r"records\.jsonl:1: no record of RadThought"):
        retrieval(None, records, table, SETTINGS, SURE, quiet)


def test_queries_by_hand(tmp_path: Path) -> None:
    """Twelve reports: the query is nearest to those of the first ten."""
    texts = [
        *(f"There is a left pleural effusion, film {n}." for n in "abcd"),
        *(f"There is a right pleural effusion, film {n}." for n in "ab"),
        *(f"No pleural effusion, film {n}." for n in "abc"),
        "Clear lungs, film a.", "Clear lungs, film b.", "Clear lungs, film c.",
    ]  # fmt: skip
    pool = pool_of(tmp_path, [report(str(n), text, None) for n, text in enumerate(texts)])
    asked = [query.text for query in (*SETTINGS.queries.findings, *SETTINGS.queries.sides)]
    vectors = {text: at(1 - n / 20) for n, text in enumerate(texts)} | {text: [1, 0] for text in asked}
    values = found(queries(pool, Table(vectors), SETTINGS, SURE, quiet))
    assert values["queries.precision@10", "pleural effusion"].value == pytest.approx(0.6)
    assert values["queries.contradiction@10", "pleural effusion"].value == pytest.approx(0.3)
    assert values["queries.wrong_side@10", "left pleural effusion"].value == pytest.approx(0.2)
    assert values["queries.wrong_side@10", "right pleural effusion"].value == pytest.approx(0.4)
    assert values["queries.precision@10", "pneumothorax"].value is None
    assert values["queries.precision@10", "pneumothorax"].reason == "no report states it"
    assert values["queries.precision@10", ""].value == pytest.approx(0.6)  # of the one query with an answer
    assert values["queries.precision@10", ""].n == 1
    assert values["queries.wrong_side@10", ""].value == pytest.approx(0.3)


def test_there_are_17_queries() -> None:
    assert len(SETTINGS.queries.findings) == 17


# -------------------------------------------------------------------------------------- discrepancies


def test_win_rates_by_hand(tmp_path: Path) -> None:
    folder = tmp_path / "discrepancies" / "sections"
    texts = {"anchor": "There is an effusion.", "positive": "An effusion is seen."}
    row: dict[str, Any] = texts | {"discrepancy": "laterality", "control": "synonym"}
    row |= {"positive_target": 0.9, "negative_target": 0.1}
    rows = [
        row | {"negative": "There is no effusion."},
        row | {"negative": "A tie is here.", "discrepancy": "omission", "negative_target": 0.95},
    ]
    write_rows(folder / "test.jsonl", rows)
    table = Table({
        "There is an effusion.": [1, 0], "An effusion is seen.": at(0.8), "There is no effusion.": at(0.7),
        "A tie is here.": at(0.8),
    })  # fmt: skip
    made = comparing.read_rows(tmp_path / "discrepancies", 100)
    out = Outcome()
    comparer = comparing.Comparer(table, SETTINGS, comparing.default_extractor(), 128, quiet)
    comparing.win_rates(out, made, comparer, SETTINGS, SURE)
    values = found(out)
    for method in ("cosine", "align_f1", "directional"):
        assert values["discrepancies.win_rate", method].value == 0.75
        assert values["discrepancies.win_rate", f"{method}/laterality"].value == 1
        assert values["discrepancies.win_rate", f"{method}/omission"].value == 0.5
        assert values["discrepancies.win_rate", f"{method}/against synonym"].value == 0.75
    assert values["discrepancies.win_rate", "radsim"].value == 0.5
    assert len(comparing.read_rows(tmp_path / "discrepancies", 1)) == 1
    write_rows(folder / "test.jsonl", [{"anchor": "a"}])
    with pytest.raises(RadgenError, match=r"test\.jsonl:1: not a row"):
        comparing.read_rows(tmp_path / "discrepancies", 1)


def test_directional_looks_at_abnormal_reference_sentences() -> None:
    """A candidate that leaves out a normal sentence is covered; one that leaves out the finding is not."""
    reference = "The heart is normal. There is a left pleural effusion."
    table = Table({
        "The heart is normal.": [1, 0], "There is a left pleural effusion.": [0, 1],
        reference: [1, 1], "The heart is normal": [1, 0],
    })  # fmt: skip
    comparer = comparing.Comparer(table, SETTINGS, comparing.default_extractor(), 128, quiet)
    short = comparer.scores("There is a left pleural effusion.", reference)
    assert short["directional"] == pytest.approx(1)
    assert short["align_f1"] == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert comparer.scores("The heart is normal.", reference)["directional"] == pytest.approx(0)


def test_rankings_hold_strictly_or_within_the_margin() -> None:
    assert comparing.holds("C1 > C2", {"C1": 0.5, "C2": 0.4}, SETTINGS)
    assert not comparing.holds("C1 > C2", {"C1": 0.5, "C2": 0.5}, SETTINGS)
    assert comparing.holds("C1 = C2", {"C1": 0.5, "C2": 0.6}, SETTINGS)
    assert not comparing.holds("C1 = C2", {"C1": 0.5, "C2": 0.7}, SETTINGS)


# --------------------------------------------------------------------------------------------- heads


def test_target_of_an_attribute() -> None:
    left, right = {"laterality": "left", "zone": "upper"}, {"laterality": "right", "zone": "upper"}
    assert target_of("laterality", left, right, ONTOLOGY) == -0.6  # spec §2
    assert target_of("laterality", left, left, ONTOLOGY) == 1
    assert target_of("size", left, right, ONTOLOGY) == 1  # only other attributes change
    mild, severe = severity("mild"), severity("severe")
    assert target_of("severity", mild, severe, ONTOLOGY) == pytest.approx(2 * np.exp(-4 / 4.5) - 1)
    assert np.isnan(target_of("severity", mild, {"finding": "pleural_effusion"}, ONTOLOGY))
    # the side differs: 2.5 zone steps of σ = 2
    assert target_of("location", left, right, ONTOLOGY) == pytest.approx(2 * np.exp(-(2.5**2) / 8) - 1)


def test_heads_find_attributes_that_lie_apart() -> None:
    """Severity and side each in dimensions of their own: each head answers to its own attribute."""
    rng = np.random.default_rng(0)
    levels, sides = ["trace", "mild", "moderate", "severe"], ["left", "right"]
    rows, x, y = [], [], []
    for _ in range(800):
        a, b, first, second = (*rng.integers(0, 4, 2), *rng.integers(0, 2, 2))
        attribute = str(rng.choice(["severity", "laterality"]))
        b, second = (b, first) if attribute == "severity" else (a, second)
        states = [severity(levels[i]) | {"laterality": sides[j]} for i, j in ((a, first), (b, second))]
        rows.append(("", "", *states, attribute))
        for level, side, into in ((a, first, x), (b, second, y)):
            vector = np.concatenate([np.eye(4)[level], np.eye(2)[side], rng.normal(size=4) / 10])
            into.append(vector / np.linalg.norm(vector))
    options = SETTINGS.heads.model_copy(update={"attributes": ["severity", "laterality"], "epochs": 150})
    first, second = np.array(x, np.float32), np.array(y, np.float32)
    train, test = slice(0, 600), slice(600, None)
    learned = pairs_of(rows[train], options.attributes, ONTOLOGY)
    maps = train_heads(first[train], second[train], learned, options, seed=1)
    assert maps.shape == (2, 10, options.dimensions)
    out = Outcome()
    judge = pairs_of(rows[test], options.attributes, ONTOLOGY)
    score_heads(out, cosines_of(first[test], second[test], maps), judge, options, SURE)
    values = found(out)
    assert values["heads.auc", "severity"].value > 0.95
    assert values["heads.spearman", "laterality"].value > 0.8
    assert values["heads.modularity", ""].value > 1
    assert np.array(out.figures["response"]["matrix"]).shape == (2, 2)
    cosine = cosines_of(first[test], second[test], maps)
    by_severity = np.array(judge.attribute) == "severity"
    assert cosine[by_severity, 1].mean() > 0.85  # the side's head does not mind the severity: target 1
    assert cosine[judge.targets[:, 1] < 0, 1].mean() < -0.4  # left against right: target -0.6


def test_pairs_to_judge_heads_on_come_from_contrasts_and_from_the_generators(tmp_path: Path) -> None:
    mild, severe = severity("mild"), severity("severe")
    rows = [triplet("severity", n, (f"a{n}", "p", "q"), (mild, mild, severe)) for n in range(3)]
    options = SETTINGS.heads.model_copy(update={"attributes": ["severity", "presence"], "test_pairs": 4})
    settings = SETTINGS.model_copy(update={"heads": options})
    pairs = judged(read(tmp_path, "contrast_10", rows), settings, ONTOLOGY, ())
    assert pairs.attribute == ["severity"] * 4 + ["presence"] * 4
    assert pairs.targets[:4, 0].tolist() == pytest.approx([1, 2 * np.exp(-4 / 4.5) - 1] * 2)
    assert (pairs.targets[:4, 1] == 1).all()
    assert set(pairs.targets[4:, 1]) == {1.0, -1.0}
