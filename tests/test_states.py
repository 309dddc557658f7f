"""Sentences by finding and state: assignment, states, splits by phrasing, balance, from the files."""

from __future__ import annotations

import shutil
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import orjson
import pytest

from radgen.errors import DatasetError, OntologyError
from radgen.extract.rules import default_extractor
from radgen.generators.folders import dump
from radgen.generators.similarity.source import Read
from radgen.generators.splits import SPLITS, Splitter, normalise
from radgen.generators.states.corpus import Paperwork, StateCorpus, build, state_of
from radgen.generators.states.make import StatesOrder, make_states
from radgen.generators.states.phrasing import Phrasings
from radgen.generators.states.settings import chosen_findings, load_settings, slots
from radgen.generators.states.synthetic import SyntheticSource
from radgen.generators.verify import verify_folder
from radgen.ontology import load_ontology

ONTOLOGY = load_ontology()
OPTIONS = load_settings(ONTOLOGY)
RULES = default_extractor()
PHRASINGS = Phrasings(RULES, Splitter(OPTIONS.splits))
VARIANT = "denies only a variant of the finding"
FEW = "pleural_effusion,pneumothorax,cardiomegaly"

SMALL = """
states:
  rows: {pairs: 120, triplets: 60, others: 60}
  synthetic: {reports: 60, statements: 90, doubtful: 10}
"""


def read(*texts: str) -> Read:
    joined = " ".join(texts)
    return Read("r1", {"findings": joined}, {"findings": RULES.states(joined, "findings")}, None, None)


def corpus(*texts: str, findings: tuple[str, ...] = ("pleural_effusion", "pneumothorax")) -> StateCorpus:
    """Return the sentences of a text; all in test, where the hash of a string decides nothing."""
    options = OPTIONS.model_copy(update={"splits": {"train": 0.0, "validation": 0.0, "test": 1.0}})
    return build([read(*texts)], findings, ONTOLOGY, options, reread=True)


def said(made: StateCorpus) -> dict[str, list[tuple[str, str]]]:
    return dict(zip(made.texts, made.said, strict=True))


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder of a small run without reports, and the settings that it was made with."""
    folder = tmp_path_factory.mktemp("states")
    settings = folder / "small.yaml"
    settings.write_text(SMALL)
    make_states(StatesOrder(findings=FEW, ontology_files=(str(settings),)), folder / "data")
    return folder / "data" / "states", settings


def rows_of(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    return [
        (split, orjson.loads(line))
        for split in SPLITS
        for line in (folder / f"{split}.jsonl").read_bytes().splitlines()
    ]


# --- sentences, by hand ---------------------------------------------------------------------------


def test_sentences_are_assigned_by_keywords_and_read_for_their_state() -> None:
    made = corpus(
        "No pneumothorax.", "There is a small left pleural effusion.", "Pneumothorax cannot be excluded."
    )
    assert said(made) == {
        "No pneumothorax.": [("pneumothorax", "absent")],
        "There is a small left pleural effusion.": [("pleural_effusion", "present")],
        "Pneumothorax cannot be excluded.": [("pneumothorax", "indeterminate")],
    }
    assert made.counts()["pneumothorax indeterminate"] == 1


def test_a_sentence_about_two_findings_counts_for_both_and_one_about_none_for_none() -> None:
    made = corpus("Left effusion without pneumothorax.", "The thoracic spine shows degenerative changes.")
    assert said(made) == {
        "Left effusion without pneumothorax.": [("pleural_effusion", "present"), ("pneumothorax", "absent")],
        "The thoracic spine shows degenerative changes.": [("any", "unnamed")],
    }


def test_a_restricted_denial_and_a_mixed_sentence_have_no_state() -> None:
    mixed = "The left effusion has resolved, a small right effusion remains."
    made = corpus("No new pneumothorax.", mixed, "No effusion.")
    assert said(made) == {"No effusion.": [("pleural_effusion", "absent")]}
    assert made.dropped[VARIANT] == 1
    assert made.dropped["states both states of the finding"] == 1


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([{"finding": "nodule", "presence": "absent"}], "absent"),
        ([{"finding": "nodule", "presence": "absent", "temporal_change": "resolved"}], "absent"),
        ([{"finding": "nodule", "presence": "absent", "temporal_change": "new"}], VARIANT),
        ([{"finding": "nodule", "presence": "absent", "severity": "severe"}], VARIANT),
        ([{"finding": "nodule", "presence": "present", "size_mm": 4.0}], "present"),
        ([{"finding": "mass", "presence": "present"}], None),
    ],
)  # fmt: skip
def test_state_of_a_finding(states: list[dict[str, Any]], expected: str | None) -> None:
    assert state_of(states, "nodule", OPTIONS) == expected


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Axial images were obtained to look for a pneumothorax.", "acquisition"),
        ("The pneumothorax was discussed with Dr. Smith by telephone at 10:00.", "administrative"),
        ("Electronically signed after review of the pneumothorax.", "administrative"),
        ("There is a pneumothorax.", None),
        ("A chest tube was placed for the pneumothorax.", None),
    ],
)
def test_paperwork_is_told_from_findings(text: str, kind: str | None) -> None:
    assert Paperwork(OPTIONS).kind(text) == kind


def test_paperwork_is_dropped() -> None:
    made = corpus("The pneumothorax was discussed with Dr. Smith by telephone.", "No pneumothorax.")
    assert said(made) == {"No pneumothorax.": [("pneumothorax", "absent")]}
    assert made.dropped["administrative sentence"] == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("No evidence of pneumothorax.", "No evidence of a large left pleural effusion or cardiomegaly."),
        ("There is a small left effusion.", "There is an 8 mm nodule."),
        ("The examination is negative for edema", "The examination is negative for pneumonia."),
    ],
)
def test_one_phrasing_whatever_the_finding(one: str, other: str) -> None:
    assert PHRASINGS.of(one) == PHRASINGS.of(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("No pneumothorax.", "Negative for pneumothorax."),
        ("No pneumothorax.", "Pneumothorax."),
        ("The heart is normal in size.", "The heart is enlarged."),
    ],
)
def test_two_phrasings(one: str, other: str) -> None:
    assert PHRASINGS.of(one) != PHRASINGS.of(other)


def test_a_phrasing_depends_on_the_normalised_string_alone() -> None:
    assert PHRASINGS.of("No  COPD seen.") == PHRASINGS.of(normalise("No  COPD seen."))


# --- findings -------------------------------------------------------------------------------------


def test_findings_by_name_alias_and_default() -> None:
    two = ("pneumothorax", "pleural_effusion")
    assert chosen_findings(", ".join(two), ONTOLOGY, OPTIONS) == two
    assert chosen_findings(None, ONTOLOGY, OPTIONS) == tuple(OPTIONS.findings)
    known = ((name, alias.finding) for name, alias in ONTOLOGY.aliases.items())
    alias, target = next(pair for pair in known if pair[0] not in ONTOLOGY.findings)
    assert chosen_findings(alias, ONTOLOGY, OPTIONS) == (target,)
    assert chosen_findings("heart enlargement", ONTOLOGY, OPTIONS) == ("cardiomegaly",)
    with pytest.raises(DatasetError, match=r"unknown finding 'pneumothorx'; did you mean 'pneumothorax'\?"):
        chosen_findings("pneumothorx", ONTOLOGY, OPTIONS)
    with pytest.raises(DatasetError, match="names no finding"):
        chosen_findings(" , ", ONTOLOGY, OPTIONS)


def test_a_finding_with_one_state_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    rows = [
        {"id": f"r{n}", "findings": f"There is a {size} left pleural effusion. {text} pneumothorax is seen."}
        for n, (size, text) in enumerate([("small", "No"), ("large", "A left"), ("tiny", "No")])
    ]
    path = tmp_path / "reports.jsonl"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    expected = r"too few phrasings of a state: pleural_effusion \(.*0 absent\)"
    with pytest.raises(DatasetError, match=expected) as error:
        make_states(StatesOrder(path, "pleural_effusion"), tmp_path / "out")
    assert "--synthetic" in str(error.value)
    assert not (tmp_path / "out").exists()


# --- files ----------------------------------------------------------------------------------------


def test_files_are_balanced_over_findings_and_states(small: tuple[Path, Path]) -> None:
    folder, _ = small
    pairs = [row for split, row in rows_of(folder / "pairs") if split == "train"]
    kinds = Counter((row["finding"], row["presence1"], row["presence2"]) for row in pairs)
    expected = {}
    for tag in FEW.split(","):  # 120 pairs of 3 findings, 80 % of them train: 96 each, half of them across
        expected[tag, "present", "absent"] = 48
        expected[tag, "present", "present"] = expected[tag, "absent", "absent"] = 24
    assert kinds == expected
    triplets = [row for split, row in rows_of(folder / "triplets") if split == "train"]
    assert set(Counter((row["finding"], row["presence"]) for row in triplets).values()) == {24}
    assert all(row["score"] == (1.0 if row["presence1"] == row["presence2"] else -1.0) for row in pairs)


def test_no_string_and_no_phrasing_is_in_two_splits(small: tuple[Path, Path]) -> None:
    folder, _ = small
    strings: dict[str, set[str]] = {}
    phrasings: dict[str, set[str]] = {}
    own = Splitter(ONTOLOGY.axes.splits)
    names = {
        "pairs": ("sentence1", "sentence2"),
        "others": ("sentence1", "sentence2"),
        "triplets": ("anchor", "positive", "negative"),
        "sentences": ("sentence",),
    }
    for name, columns in names.items():
        for split, row in rows_of(folder / name):
            for column in columns:
                strings.setdefault(normalise(row[column]), set()).add(split)
                phrasings.setdefault(PHRASINGS.of(row[column]), set()).add(split)
                assert split != "train" or own.of(row[column]) == "train"
    assert all(len(found) == 1 for found in strings.values())
    assert all(len(found) == 1 for found in phrasings.values())


def test_texts_say_what_their_rows_claim(small: tuple[Path, Path]) -> None:
    folder, _ = small
    for _, row in rows_of(folder / "others"):
        assert row["score"] == 0.0
        assert {s["finding"] for s, _ in RULES.states(row["sentence2"])}.isdisjoint(FEW.split(","))
    for _, row in rows_of(folder / "triplets"):
        other = "absent" if row["presence"] == "present" else "present"
        states = (row["presence"], row["presence"], other)
        wanted = zip(("anchor", "positive", "negative"), states, strict=True)
        for name, presence in wanted:
            found = {s["presence"] for s, _ in RULES.states(row[name]) if s["finding"] == row["finding"]}
            assert found == {presence}
        assert row["anchor_phrasing"] != row["positive_phrasing"]


def test_two_findings_of_one_sentence_are_of_one_group_and_both_present() -> None:
    patterns = {"present": ["{q} {0} versus {d}."], "absent": ["No {0}."], "patterns_share": 1.0}
    changes = {"reports": 1, "statements": 40, "doubtful": 0, "nothing": 0}
    options = OPTIONS.model_copy(
        update={"synthetic": OPTIONS.synthetic.model_copy(update=patterns | changes)}
    )
    findings = ("atelectasis", "infiltrate", "pneumothorax")
    texts = [
        read.sections["findings"]
        for read in SyntheticSource(ONTOLOGY, findings, 1, options)
        if read.id.startswith("infiltrate-present")
    ]
    assert len(texts) == 40
    for text in texts:
        state = {found["finding"]: found["presence"] for found, _ in RULES.states(text)}
        assert state == {"infiltrate": "present", "atelectasis": "present"}, text


def test_a_finding_alone_is_not_named_beside_itself() -> None:
    options = OPTIONS.model_copy(
        update={"synthetic": OPTIONS.synthetic.model_copy(update={"reports": 1, "patterns_share": 1.0})}
    )
    texts = [
        read.sections["findings"].lower()
        for read in SyntheticSource(ONTOLOGY, ("pneumothorax",), 1, options)
        if read.id.startswith("pneumothorax")
    ]
    assert len(texts) > 800
    assert not [text for text in texts if text.count("pneumothorax") + text.count("ptx") > 1]


def test_patterns_that_name_nothing_name_nothing() -> None:
    words = OPTIONS.synthetic.words
    paperwork = Paperwork(OPTIONS)
    for pattern in OPTIONS.synthetic.unnamed:
        names = slots(pattern)
        for drawn in product(*(words[name] for name in names)):
            text = pattern.format(**dict(zip(names, drawn, strict=True)))
            named = {state["finding"] for state, _ in RULES.states(text)}
            assert not named & set(OPTIONS.findings), text
            assert paperwork.kind(text) is None, text


def test_phrases_that_do_not_stand_alone_are_not_said_alone() -> None:
    source = SyntheticSource(ONTOLOGY, ("cardiomegaly", "consolidation", "emphysema"), 1, OPTIONS)
    texts = [read.sections["findings"].lower() for read in source if not read.id.startswith(("ct", "xr"))]
    assert len(texts) > 2000
    for text in texts:
        assert text.split(",")[0].rstrip(".") not in ("consolidated", "emphysematous"), text
        for wrong in ("there is heart is", "there is consolidated", "borders is", "contours is"):
            assert wrong not in text, text


def test_a_slot_that_is_none_is_an_error_with_its_line(tmp_path: Path) -> None:
    user = tmp_path / "mine.yaml"
    user.write_text("states:\n  synthetic:\n    unnamed:\n      - 'The {lnug} is clear.'\n")
    with pytest.raises(OntologyError, match=r"mine\.yaml.*unnamed.*slot 'lnug'.*lung"):
        load_settings(load_ontology((str(user),)))


def test_a_differential_of_no_finding_is_an_error(tmp_path: Path) -> None:
    user = tmp_path / "mine.yaml"
    group = "{findings: [atelectasis, infiltrat], words: [mild]}"
    user.write_text(f"states:\n  synthetic:\n    differential: [{group}]\n")
    with pytest.raises(OntologyError, match=r"differential: .*'infiltrat'.*did you mean 'infiltrate'"):
        load_settings(load_ontology((str(user),)))


def test_the_same_command_gives_the_same_bytes(small: tuple[Path, Path], tmp_path: Path) -> None:
    folder, settings = small
    order = StatesOrder(findings=FEW, ontology_files=(str(settings),))
    made = make_states(order, tmp_path)
    for part in made:
        for file in sorted(part.folder.iterdir()):
            assert file.read_bytes() == (folder / part.folder.name / file.name).read_bytes(), file
    again = make_states(order, tmp_path)
    assert [part.fresh for part in again] == [False] * 4
    with pytest.raises(DatasetError, match="holds another dataset"):
        make_states(StatesOrder(findings=FEW, seed=7, ontology_files=(str(settings),)), tmp_path)


def test_more_rows_than_there_are_is_an_error(small: tuple[Path, Path], tmp_path: Path) -> None:
    _, settings = small
    order = StatesOrder(findings=FEW, rows=10_000_000, ontology_files=(str(settings),))
    with pytest.raises(DatasetError, match=r"states/pairs: these sentences give only train .* of 8,000,000"):
        make_states(order, tmp_path)


def test_verify_accepts_what_was_made_and_names_what_was_changed(
    small: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, settings = small
    ontology = load_ontology([settings])
    for name in ("sentences", "pairs", "triplets", "others"):
        assert verify_folder(folder / name, ontology).problems == []
    copy = tmp_path / "pairs"
    shutil.copytree(folder / "pairs", copy)
    path = copy / "train.jsonl"
    lines = path.read_bytes().splitlines()
    row = orjson.loads(lines[0])
    row["score"] = -row["score"]
    lines[0] = orjson.dumps(row)
    path.write_bytes(b"\n".join(lines) + b"\n")
    reasons = [problem.reason for problem in verify_folder(copy, ontology).problems]
    assert any("its states give" in reason for reason in reasons)
    assert any("sha256" in reason for reason in reasons)
    assert any("its id is no hash of the row" in reason for reason in reasons)


def test_verify_reads_the_texts_again(small: tuple[Path, Path], tmp_path: Path) -> None:
    """A row whose text says the opposite of its state, in an otherwise consistent folder."""
    folder, settings = small
    copy = tmp_path / "sentences"
    shutil.copytree(folder / "sentences", copy)
    path = copy / "test.jsonl"
    rows = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    rows[0]["presence"] = "present" if rows[0]["presence"] == "absent" else "absent"
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    manifest = orjson.loads((copy / "manifest.json").read_bytes())
    (copy / "manifest.json").write_bytes(dump(manifest))
    reasons = [problem.reason for problem in verify_folder(copy, load_ontology([settings])).problems]
    assert any(reason.startswith("the text does not read as") for reason in reasons)
    assert any(reason.startswith("its states do not say") for reason in reasons)


def test_reports_with_a_language_of_ones_own(tmp_path: Path) -> None:
    """Keywords of another language come with --ontology."""
    ontology = tmp_path / "de.yaml"
    ontology.write_text(
        "findings:\n"
        "  pleural_effusion:\n"
        "    synonyms: [Pleuraerguss / Pleuraergüsse, pleuraerguss]\n"
        "lexicon:\n"
        "  cues: {negation: [kein, keine, ohne]}\n"
        "states:\n"
        "  rows: {pairs: 6, triplets: 4, others: 2}\n"
        "  splits: {train: 1.0, validation: 0.0, test: 0.0}\n"
    )
    texts = [
        "Pleuraerguss links.",
        "Es besteht ein Pleuraerguss.",
        "Deutlicher Pleuraerguss rechts sichtbar.",
        "Kein Pleuraerguss.",
        "Lunge ohne Pleuraerguss.",
        "Weiterhin kein Pleuraerguss.",
        "Ohne Pleuraerguss.",
        "Rechts kein Pleuraerguss.",
        "Herz normal gross.",
        "Zwerchfell glatt.",
        "Mediastinum schlank.",
    ]
    path = tmp_path / "reports.jsonl"
    path.write_bytes(
        b"".join(orjson.dumps({"id": f"r{n}", "findings": text}) + b"\n" for n, text in enumerate(texts))
    )
    order = StatesOrder(path, "pleural_effusion", ontology_files=(str(ontology),))
    made = make_states(order, tmp_path / "out")
    assert made[0].counts["pleural_effusion absent"] >= 2
    assert made[0].counts["pleural_effusion present"] >= 2
