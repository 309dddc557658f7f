"""Pairs, triplets, perturbations and discrepancies from reports (spec §5), recomputed from their files."""

from __future__ import annotations

import random
import re
import shutil
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from radgen.errors import DatasetError
from radgen.extract.rules import default_extractor
from radgen.generators.radsim import load_policy, score
from radgen.generators.reports import write_synthetic
from radgen.generators.similarity.changes import addition_target, omit, retention
from radgen.generators.similarity.corpus import Ownership, jaccard, sentence_units
from radgen.generators.similarity.discrepancies import make_discrepancies
from radgen.generators.similarity.edits import Edits, article, differs_by, exchange
from radgen.generators.similarity.make import ReportOrder, make_pairs, make_triplets
from radgen.generators.similarity.pairs import level_out, spread
from radgen.generators.similarity.perturb import make_perturbations
from radgen.generators.similarity.sections import Section, split_blocks
from radgen.generators.similarity.settings import settings
from radgen.generators.splits import SPLITS, Splitter, normalise, text_hash
from radgen.generators.verify import verify_folder
from radgen.ontology import load_ontology

ONTOLOGY = load_ontology()
POLICY = load_policy(ONTOLOGY)
SPLITTER = Splitter(ONTOLOGY.axes.splits)


@pytest.fixture(scope="session")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("similarity") / "reports.jsonl"
    write_synthetic(500, path)
    return path


def rows_of(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    return [
        (split, orjson.loads(line))
        for split in SPLITS
        for line in (folder / f"{split}.jsonl").read_bytes().splitlines()
    ]


def assert_disjoint(rows: list[tuple[str, dict[str, Any]]], texts: tuple[str, ...]) -> None:
    """No string and no report is in two splits; a report's split is the hash of its id."""
    strings: dict[str, set[str]] = {}
    for split, row in rows:
        for name in texts:
            strings.setdefault(normalise(row[name]), set()).add(split)
        for name, value in row.items():
            if name.startswith("report") or name.endswith("_report"):
                assert SPLITTER.of(value) == split
    assert all(len(found) == 1 for found in strings.values())


# --- by hand -------------------------------------------------------------------------------------


def test_rows_are_shared_out_over_bins() -> None:
    assert level_out(np.array([0, 2, 100, 100]), 12).tolist() == [0, 2, 5, 5]
    assert level_out(np.array([3, 3]), 100).tolist() == [3, 3]
    values = np.array([-0.95, -0.9, -0.85, 0.95, 0.97, 0.15])
    chosen = spread(values, np.array([5, 4, 3, 2, 1, 0]), 4, 4)
    assert chosen.tolist() == [1, 2, 4, 5]  # two of the first bin (the lowest order), one each of the others


def test_a_string_of_reports_of_two_splits_belongs_to_one() -> None:
    ownership = Ownership(SPLITTER)
    ownership.add(7, "test")
    ownership.add(7, "test")
    for split in SPLITS:
        ownership.add(2**64 - 1, split)
        ownership.add(5, split)
    ownership.settle()
    assert ownership.of(7) == "test"  # only reports of test have it
    assert ownership.of(2**64 - 1) == "test"  # shared: its own hash is the largest, 95 % lie below
    assert ownership.of(5) == "train"
    assert ownership.of(6) is None
    assert ownership.claim_new("A new text.", "validation")
    assert not ownership.claim_new("a new  text", "validation")  # the same string, made before
    assert ownership.of(text_hash("A new text")) == "validation"


def test_word_jaccard() -> None:
    # words of two letters and more: small, left, effusion against large, left, effusion
    assert jaccard("A small left effusion.", "Large left effusion") == 2 / 4
    assert jaccard("a", "b") == 1.0


def test_a_sentence_that_shares_a_finding_stands_for_nothing() -> None:
    text = "There is a nodule in the left lung. It measures 8 mm. No effusion."
    placed = default_extractor().states(text, "findings")
    found = list(sentence_units(text, placed))
    assert [sentence for sentence, _ in found] == ["No effusion."]
    blocks = split_blocks(text, placed)
    assert [block.text for block in blocks] == [
        "There is a nodule in the left lung. It measures 8 mm.",
        "No effusion.",
    ]
    assert blocks[0].states[0]["size_mm"] == 8.0


def test_addition_and_omission_targets() -> None:
    assert addition_target(3, 1) == 0.75
    assert addition_target(1, 3) == 0.25
    weights = {"pneumothorax": 3.0, "scarring": 1.0, "pleural_effusion": 0.5}
    assert retention(weights, {"scarring", "pleural_effusion"}) == pytest.approx(1.5 / 4.5)
    assert retention(weights, set(weights)) == 1.0


def section_of(text: str, name: str = "findings", weights: dict[str, float] | None = None) -> Section:
    placed = default_extractor().states(text, name)
    found = {state["finding"] for state, _ in placed}
    blocks = split_blocks(text, placed)
    return Section("r", name, "train", text, blocks, weights or dict.fromkeys(found, 1.0))


def test_omission_counts_prominence_not_sentences() -> None:
    text = "Large right pneumothorax. Mild scarring. No effusion."
    section = section_of(text, weights={"pneumothorax": 3.0, "scarring": 1.0, "pleural_effusion": 0.5})
    # Dropping the scar keeps 3.5 of 4.5, the denial 4 of 4.5; the pneumothorax, one sentence too, 1.5 of 4.5.
    near, far = set(), set()
    for seed in range(20):
        made = omit(section, 0.8, random.Random(seed), settings().perturb)
        assert made is not None
        near.add((round(made.score * 9), made.text))
        made = omit(section, 0.35, random.Random(seed), settings().perturb)
        assert made is not None
        far.add((round(made.score * 9), made.text))
    assert near == {
        (7, "Large right pneumothorax. No effusion."),
        (8, "Large right pneumothorax. Mild scarring."),
    }
    assert (3, "Mild scarring. No effusion.") in far


def test_articles() -> None:
    text = "There is a small effusion."
    at = text.index("small")
    assert exchange(text, at, at + 5, "extensive") == "There is an extensive effusion."
    assert exchange("An enlarged node.", 3, 11, "stable") == "A stable node."
    assert (article("unilateral"), article("8 mm"), article("11 mm")) == ("a", "an", "an")


EDITS = Edits(ONTOLOGY, settings().discrepancies)


def edited(kind: str, text: str) -> set[str]:
    return {edit.after for edit in EDITS.propose(kind, section_of(text), random.Random(0))}


def test_edits_of_one_sentence() -> None:
    assert edited("laterality", "Small left pleural effusion.") == {"Small right pleural effusion."}
    assert edited("laterality", "Left middle lobe and right effusion.") == set()
    assert edited("laterality", "Right middle lobe consolidation.") == set()  # the left lung has none
    assert "There is a large left pleural effusion." in edited(
        "severity", "There is a small left pleural effusion."
    )
    assert "16 mm nodule in the right upper lobe." in edited("size", "8 mm nodule in the right upper lobe.")
    assert "A 0.5 cm nodule in the right upper lobe." in edited(
        "size", "A 1.0 cm nodule in the right upper lobe."
    )
    assert edited("temporal", "Stable left pleural effusion.") >= {"Increased left pleural effusion."}
    assert edited("temporal", "The left effusion has increased.") == {"The left effusion has decreased."}


def test_a_restricted_negation_is_not_flipped() -> None:
    for text in (
        "No large pleural effusion.",
        "No new pulmonary nodule.",
        "No large effusion or pneumothorax.",
    ):
        for kind in ("presence", "severity", "temporal"):
            assert edited(kind, text) == set(), (kind, text)
    assert edited("presence", "No pneumothorax.") <= {
        "There is a pneumothorax.",
        "A pneumothorax is present.",
        "A pneumothorax is seen.",
    }
    assert edited("presence", "No pneumothorax.")


def test_what_differs_is_told_apart() -> None:
    left = {"finding": "pleural_effusion", "presence": "present", "laterality": "left"}
    right = {**left, "laterality": "right"}
    other = {"finding": "pneumothorax", "presence": "absent"}
    assert differs_by("laterality", [left, other], [right, other])
    assert not differs_by("laterality", [left, other], [right])
    assert not differs_by("severity", [left], [right])
    assert differs_by("omission", [left, other], [left])
    assert not differs_by("omission", [left, other], [right])
    assert differs_by("presence", [other], [{**other, "presence": "present"}])
    assert differs_by("synonym", [left, other], [other, left])


# --- datasets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["sentence", "findings", "impression"])
def test_pairs(reports: Path, tmp_path: Path, level: str) -> None:
    made = make_pairs(ReportOrder(reports, 600), level, tmp_path)
    rows = rows_of(made.folder)
    assert sum(made.rows.values()) == len(rows) == 600
    assert_disjoint(rows, ("sentence1", "sentence2"))
    assert len({frozenset((row["sentence1"], row["sentence2"])) for _, row in rows}) == 600
    for _, row in rows[::7]:
        plain = score(row["state1"], row["state2"], POLICY)
        assert row["score"] == pytest.approx(plain.value, abs=1e-6)
        assert normalise(row["sentence1"]) != normalise(row["sentence2"])
    # Every fifth of the range that RadSim reaches has its share, none has more than half.
    bins = Counter(min(4, int((row["score"] + 1) / 2 * 5)) for _, row in rows)
    assert all(bins[place] for place in range(1, 5))
    assert max(bins.values()) < 300
    verdict = verify_folder(made.folder, ONTOLOGY)
    assert verdict.count == 0, verdict.problems


def test_what_a_sentence_states_is_read_in_it(reports: Path, tmp_path: Path) -> None:
    made = make_pairs(ReportOrder(reports, 200), "sentence", tmp_path)
    read = default_extractor()
    for _, row in rows_of(made.folder)[:60]:
        alone = [state for state, _ in read.states(row["sentence1"], "findings")]
        key = orjson.dumps(sorted(alone, key=orjson.dumps), option=orjson.OPT_SORT_KEYS)
        assert key == orjson.dumps(sorted(row["state1"], key=orjson.dumps), option=orjson.OPT_SORT_KEYS)


def test_the_same_command_gives_the_same_bytes_and_nothing_is_overwritten(
    reports: Path, tmp_path: Path
) -> None:
    first = make_pairs(ReportOrder(reports, 300), "findings", tmp_path / "a")
    second = make_pairs(ReportOrder(reports, 300), "findings", tmp_path / "b")
    names = ["train.jsonl", "validation.jsonl", "test.jsonl", "manifest.json", "README.md"]
    for name in names:
        assert (first.folder / name).read_bytes() == (second.folder / name).read_bytes()
    again = make_pairs(ReportOrder(reports, 300), "findings", tmp_path / "a")
    assert not again.fresh
    assert again.rows == first.rows
    with pytest.raises(DatasetError, match="holds another dataset"):
        make_pairs(ReportOrder(reports, 300, seed=7), "findings", tmp_path / "a")
    other = make_pairs(ReportOrder(reports, 300, seed=7), "findings", tmp_path / "a", force=True)
    assert (other.folder / "train.jsonl").read_bytes() != (second.folder / "train.jsonl").read_bytes()


@pytest.mark.parametrize("level", ["sentence", "impression"])
def test_truth_is_of_findings_sections_only(reports: Path, tmp_path: Path, level: str) -> None:
    order = ReportOrder(reports, 20, truth=True)
    with pytest.raises(DatasetError, match=rf"--truth with --level {level}: .*take --level findings"):
        make_pairs(order, level, tmp_path)
    assert not list(tmp_path.iterdir())


def test_more_pairs_than_there_are_is_an_error(reports: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.jsonl"
    few.write_bytes(b"".join(reports.read_bytes().splitlines(keepends=True)[:30]))
    with pytest.raises(DatasetError, match=r"give only train \d+ of 90,000"):
        make_pairs(ReportOrder(few, 100_000), "findings", tmp_path)
    assert not (tmp_path / "radsim").exists() or not any((tmp_path / "radsim").iterdir())


def content(text: str) -> set[str]:
    plain = {"there", "seen", "noted", "which", "with", "and", "the", "is", "are", "a", "an", "of", "in"}
    return set(re.findall(r"[a-z]+|\d+(?:\.\d+)?", text.lower())) - plain  # "0.9 cm" is shared, too


@pytest.mark.parametrize("level", ["report", "sentence"])
def test_triplets(reports: Path, tmp_path: Path, level: str) -> None:
    made = make_triplets(ReportOrder(reports), level, tmp_path)
    rows = rows_of(made.folder)
    assert_disjoint(rows, ("anchor", "positive", "negative"))
    options = settings().triplets
    assert len({(row["anchor"], row["positive"], row["negative"]) for _, row in rows}) == len(rows)
    families = {tag: entry.family for tag, entry in ONTOLOGY.findings.items()}
    for _, row in rows[::5]:
        high = score(row["anchor_state"], row["positive_state"], POLICY).value
        low = score(row["anchor_state"], row["negative_state"], POLICY).value
        assert high - low >= options.min_gap - 1e-6
        assert high >= options.min_positive - 1e-6
        shared = [{families[s["finding"]] for s in row[f"{name}_state"]} for name in ("anchor", "negative")]
        assert shared[0] & shared[1] or len(content(row["anchor"]) & content(row["negative"])) >= 1
    contrasts = Counter(row["contrast"] for _, row in rows)
    assert {"presence", "laterality", "severity", "finding"} <= set(contrasts)
    verdict = verify_folder(made.folder, ONTOLOGY)
    assert verdict.count == 0, verdict.problems


def test_perturbations(reports: Path, tmp_path: Path) -> None:
    made = make_perturbations(ReportOrder(reports, 700), tmp_path)
    rows = rows_of(made.folder)
    assert_disjoint(rows, ("sentence1", "sentence2"))
    reordered = [row for _, row in rows if row["kind"] == "reordered"]
    assert len(reordered) / len(rows) == pytest.approx(0.502, abs=0.002)
    assert {row["score"] for row in reordered} == {1.0}
    for row in reordered:
        assert (
            Counter(normalise(row["sentence1"]).replace(".", "").split())
            == Counter(normalise(row["sentence2"]).replace(".", "").split())
            or row["level"] == "impression"
        )  # list numbers go
    corrupted = [row for _, row in rows if row["kind"] != "reordered"]
    assert statistics.median(row["score"] for row in corrupted) == pytest.approx(0.65, abs=0.05)
    assert {row["kind"] for row in corrupted} == {"added", "omitted"}
    for row in corrupted:
        if row["kind"] == "added":
            k = {s["finding"] for s in row["state1"] if s["presence"] != "absent"}
            n = {s["finding"] for s in row["state2"] if s["presence"] != "absent"} - k
            assert row["score"] == pytest.approx(len(k) / (len(k) + len(n)))
    verdict = verify_folder(made.folder, ONTOLOGY)
    assert verdict.count == 0, verdict.problems


def test_discrepancies_read_as_they_say(reports: Path, tmp_path: Path) -> None:
    made = make_discrepancies(ReportOrder(reports, 400), tmp_path)
    rows = rows_of(made.folder)
    assert_disjoint(rows, ("anchor", "positive", "negative"))
    read = default_extractor()
    kinds = Counter(row["discrepancy"] for _, row in rows)
    assert set(kinds) == set(settings().discrepancies.kinds)
    for _, row in rows[::4]:
        states = {
            name: [state for state, _ in read.states(row[name], row["level"])]
            for name in ("anchor", "positive", "negative")
        }
        assert differs_by("synonym", states["anchor"], states["positive"]), row["control"]
        assert differs_by(row["discrepancy"], states["anchor"], states["negative"]), row["discrepancy"]
    verdict = verify_folder(made.folder, ONTOLOGY)
    assert verdict.count == 0, verdict.problems


def test_verify_finds_what_was_changed(reports: Path, tmp_path: Path) -> None:
    made = make_pairs(ReportOrder(reports, 200), "findings", tmp_path / "whole")

    def problems(change: Any) -> str:
        folder = tmp_path / "changed"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made.folder, folder)
        lines = (folder / "train.jsonl").read_bytes().splitlines(keepends=True)
        change(lines, folder)
        (folder / "train.jsonl").write_bytes(b"".join(lines))
        return "\n".join(problem.line() for problem in verify_folder(folder, ONTOLOGY).problems)

    def other_score(lines: list[bytes], folder: Path) -> None:
        row = orjson.loads(lines[3])
        lines[3] = lines[3].replace(b'"score":%b' % orjson.dumps(row["score"]), b'"score":0.123456', 1)

    found = problems(other_score)
    assert "train.jsonl:4: score 0.1235, RadSim of its states is" in found
    assert "train.jsonl:4: its id is no hash of the row" in found
    assert "sha256" in found

    def leaked(lines: list[bytes], folder: Path) -> None:
        lines.append((folder / "test.jsonl").read_bytes().splitlines(keepends=True)[0])

    found = problems(leaked)
    assert "a string of it is in another split too" in found
    assert "belongs to another split" in found
    assert problems(lambda lines, folder: lines.pop()).count("the manifest says") >= 3


def test_datasets_loads_the_folders(reports: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    pairs = make_pairs(ReportOrder(reports, 200), "findings", tmp_path / "out")
    perturbed = make_perturbations(ReportOrder(reports, 200), tmp_path / "out")
    for made in (pairs, perturbed):
        loaded = datasets.load_dataset(str(made.folder), cache_dir=str(tmp_path / "cache"))
        rows = rows_of(made.folder)
        assert sum(part.num_rows for part in loaded.values()) == len(rows)
        first = loaded["train"][0]
        state = {name: value for name, value in first["state1"][0].items() if value is not None}
        assert state == rows[0][1]["state1"][0]


def test_an_extraction_is_joined_by_id(reports: Path, tmp_path: Path) -> None:
    lines = [orjson.loads(line) for line in reports.read_bytes().splitlines()[:120]]
    source = tmp_path / "reports.jsonl"
    source.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in lines))
    rules = default_extractor()
    extracted = tmp_path / "extracted.jsonl"
    rows = [
        {
            "id": row["id"],
            "extracted": rules.extract_report({name: row[name] for name in ("findings", "impression")}),
            "backend": "rules",
        }
        for row in lines
    ]
    extracted.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in reversed(rows)))
    order = ReportOrder(source, 150, extracted=extracted)
    first = make_pairs(order, "findings", tmp_path / "a")
    second = make_pairs(ReportOrder(source, 150), "findings", tmp_path / "b")
    for split in SPLITS:
        assert (first.folder / f"{split}.jsonl").read_bytes() == (
            second.folder / f"{split}.jsonl"
        ).read_bytes()
    extracted.write_text('{"id": "x", "extracted": [{"finding": "pleural_efusion"}]}\n')
    with pytest.raises(
        DatasetError, match=r"extracted.jsonl:1: unknown finding .* did you mean 'pleural_effusion'"
    ):
        make_pairs(ReportOrder(source, 151, extracted=extracted), "findings", tmp_path / "c")
