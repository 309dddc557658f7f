"""Triplets of RadThought records (spec §6): unrelated means unrelated, and what verify finds."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from dataset_runs import one_line, radgen, rows_of

from radgen.errors import DatasetError
from radgen.generators.blocks import row_id
from radgen.generators.radsim import load_policy
from radgen.generators.radsim import score as radsim
from radgen.generators.radthought.corpus import read_thoughts
from radgen.generators.radthought.corpus_reports import FindingsSections
from radgen.generators.radthought.pair_settings import LEVELS, TRIPLETS, settings
from radgen.generators.radthought.pairs_folder import ThoughtOrder
from radgen.generators.radthought.records import RecordOrder
from radgen.generators.radthought.records_folder import make_records
from radgen.generators.radthought.source import Source
from radgen.generators.radthought.triplets import make_thought_triplets
from radgen.generators.radthought.triplets_unrelated import Marks, Pool, sought
from radgen.generators.reports import write_synthetic
from radgen.generators.splits import SPLITS, Splitter, normalise
from radgen.generators.verify import verify_folder
from radgen.ontology import load_ontology

ONTOLOGY = load_ontology()
POLICY = load_policy(ONTOLOGY)
SPLITTER = Splitter(ONTOLOGY.axes.splits)
NEXT = [(LEVELS[place], LEVELS[place + 1]) for place in range(4)]
SHORT = {"second_order": "second", "third_order": "third", "synthesis": "synthesis"}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("radthought") / "records"
    make_records(RecordOrder(Source(synthetic=300)), folder)
    return folder


@pytest.fixture(scope="module")
def by_id(records: Path) -> dict[str, dict[str, Any]]:
    rows = [orjson.loads(line) for line in (records / "records.jsonl").open("rb")]
    return {row["id"]: row for row in rows}


@pytest.fixture(scope="module")
def made(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("triplets")
    make_thought_triplets(ThoughtOrder(records), "all", out)
    return out / "radthought"


@pytest.fixture(scope="module")
def small(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("small")
    make_thought_triplets(ThoughtOrder(records, rows=200), "all", out)
    return out / "radthought"


def text_of(row: dict[str, Any], name: str) -> str:
    if name == "scene_graph":
        return "; ".join(row["predicates"])
    return row[name] if isinstance(row[name], str) else " ".join(row[name])


def tags_of(row: dict[str, Any]) -> dict[str, str]:
    pairs = [
        text[len("finding(") : -1].split(",") for text in row["predicates"] if text.startswith("finding(")
    ]
    return dict(pairs)


def predicates_of(row: dict[str, Any], numbers: set[str] | None = None) -> set[str]:
    """Predicates with tags for ids; of some findings only, if they are given."""
    tags, out = tags_of(row), set()
    for text in row["predicates"]:
        name, _, rest = text[:-1].partition("(")
        terms = rest.split(",")
        if numbers is None or numbers.intersection(terms):
            out.add(f"{name}({','.join(tags.get(term, term) for term in terms)})")
    return out


def abnormal(row: dict[str, Any]) -> set[str]:
    """Numbers of the findings that a record does not deny."""
    return {number for number in tags_of(row) if f"assertion({number},absent)" not in row["predicates"]}


def organs(row: dict[str, Any], numbers: set[str]) -> set[str]:
    tags = tags_of(row)
    return {ONTOLOGY.findings[tags[number]].system for number in numbers}


@pytest.mark.parametrize("name", ["findings_alignment", "coherence"])
def test_negatives_share_no_predicate_of_the_abnormal_findings(
    made: Path, by_id: dict[str, dict[str, Any]], name: str
) -> None:
    rows = rows_of(made / name)
    hard = 0
    for row in rows:
        anchor, negative = by_id[row["anchor_report"]], by_id[row["negative_report"]]
        mine = abnormal(anchor)
        assert not predicates_of(anchor, mine) & predicates_of(negative)
        assert mine or abnormal(negative)
        shared = organs(anchor, mine) & organs(negative, abnormal(negative))
        assert set(row["shared_organs"]) == shared
        assert row["hard"] == bool(shared)
        hard += row["hard"]
        value = radsim(row["anchor_state"], row["negative_state"], POLICY).value
        assert row["negative_target"] == pytest.approx(value, abs=1e-6)
        assert value <= 0.2 + 1e-6
        assert row["positive_target"] == 1.0
        assert row["anchor_report"] == row["positive_report"]
    assert len(rows) > 1500
    assert hard > 0.5 * len(rows)


def test_texts_of_findings_alignment_and_coherence(made: Path, by_id: dict[str, dict[str, Any]]) -> None:
    levels = Counter()
    for name in ("findings_alignment", "coherence"):
        for row in rows_of(made / name):
            levels[name, row["anchor_level"], row["level"]] += 1
            positive, negative = by_id[row["positive_report"]], by_id[row["negative_report"]]
            assert row["positive"] == text_of(positive, row["level"])
            assert row["negative"] == text_of(negative, row["level"])
            if name == "coherence":
                assert row["anchor"] == text_of(positive, row["anchor_level"])
    both = {*NEXT, *((b, a) for a, b in NEXT)}
    assert set(levels) == {
        *(("findings_alignment", "findings", level) for level in LEVELS),
        *(("coherence", a, b) for a, b in both),
    }
    assert min(levels.values()) > 0.5 * max(count for key, count in levels.items() if key[0] == "coherence")


def test_derivation(made: Path, by_id: dict[str, dict[str, Any]]) -> None:
    rows = rows_of(made / "derivation")
    assert len(rows) > 3000
    for row in rows:
        record, other = by_id[row["anchor_report"]], by_id[row["negative_report"]]
        mine = [item for item in record["conclusions"] if item["text"] == row["positive"]]
        mine = [
            item
            for item in mine
            if row["level"] == dict(zip(SHORT.values(), SHORT, strict=True))[item["level"]]
        ]
        derived = sorted({name for item in mine for name in item["derived"]}, key=lambda name: int(name[1:]))
        assert row["anchor"] == " ".join(record["first_order"][int(name[1:]) - 1] for name in derived)
        assert row["positive_about"] == sorted({item["about"] for item in mine})
        theirs = [item for item in other["conclusions"] if item["text"] == row["negative"]]
        assert SHORT[row["level"]] in {item["level"] for item in theirs}
        assert not set(row["positive_about"]) & set(row["negative_about"])
        # Of the evidence, what is not denied; of evidence that only denies, all.
        there = abnormal(record) & set(derived) or set(derived)
        assert not predicates_of(record, there) & predicates_of(other)
        tags = tags_of(record)
        assert {state["finding"] for state in row["anchor_state"]} <= {tags[name] for name in derived}


@pytest.mark.parametrize("name", TRIPLETS)
def test_splits_and_no_triplet_twice(made: Path, name: str) -> None:
    strings: dict[str, set[str]] = {}
    seen = set()
    for split in SPLITS:
        for row in rows_of(made / name, split):
            texts = tuple(row[key] for key in ("anchor", "positive", "negative"))
            assert len(set(texts)) == 3
            assert texts not in seen
            seen.add(texts)
            for text in texts:
                strings.setdefault(normalise(text), set()).add(split)
            assert {SPLITTER.of(row[f"{key}_report"]) for key in ("anchor", "negative")} == {split}
    assert all(len(found) == 1 for found in strings.values())


def test_nodule_and_mass_are_one_and_history_is_only_mentioned(tmp_path: Path) -> None:
    lines = [
        ("r1", ["finding(f1,pulmonary_nodule)", "assertion(f1,present)"]),
        ("r2", ["finding(f1,lung_mass)", "assertion(f1,absent)", "finding(f2,atelectasis)",
                "assertion(f2,present)"]),
        ("r3", ["finding(f1,atelectasis)", "assertion(f1,present)"]),
        ("r4", ["finding(f1,pneumothorax)", "assertion(f1,absent)"]),
        ("r5", ["finding(f1,pneumonia)", "assertion(f1,present)", "temporality(f1,historical)"]),
    ]  # fmt: skip
    path = tmp_path / "records.jsonl"
    path.write_bytes(b"\n".join(orjson.dumps(record_of(*line)) for line in lines) + b"\n")
    thoughts = read_thoughts(path, POLICY, settings())
    marks = Marks(thoughts)
    everyone = np.arange(5)
    pool = Pool(thoughts, marks, everyone, thoughts.tags, everyone, np.uint64(1))
    wanted = sought(marks, everyone, thoughts.tags, everyone, denials=False)

    def free(_: Any, places: Any) -> Any:
        return np.ones(len(places), bool)

    found: dict[int, set[int]] = {anchor: set() for anchor in range(5)}
    for _ in range(20):
        for anchor, place in enumerate(pool.seek(wanted, np.zeros(5, bool), 8, 2, free).tolist()):
            found[anchor].add(place)
    # r1 (nodule): r2 denies a mass, which is of its continuum; r2 and r3 share atelectasis;
    # r4 and r5 have nothing abnormal, so their negatives must have.
    assert found == {0: {2, 3, 4}, 1: {0, 3, 4}, 2: {0, 3, 4}, 3: {0, 1, 2}, 4: {0, 1, 2}}
    hard = pool.seek(wanted, np.ones(5, bool), 8, 2, free)
    assert hard[0] == 2  # nodule and atelectasis: the lung
    assert hard[2] == 0


def record_of(identifier: str, predicates: list[str]) -> dict[str, Any]:
    count = sum(text.startswith("finding(") for text in predicates)
    first = [f"Sentence {place} of {identifier}." for place in range(1, count + 1)]
    conclusion = {
        "level": "synthesis", "text": f"As {identifier}.", "rule": None, "derived": ["f1"], "about": "x",
        "assertion": None, "certainty": None, "severity": None, "acuity": None, "temporal": None,
        "mechanism": None, "significance": None,
    }  # fmt: skip
    return {
        "id": identifier, "predicates": predicates, "first_order": first, "second_order": [],
        "third_order": [], "synthesis": f"As {identifier}.", "conclusions": [conclusion], "backend": "test",
    }  # fmt: skip


def test_a_family_alone_is_the_same_as_among_all(small: Path, records: Path, tmp_path: Path) -> None:
    for name in ("coherence", "derivation"):
        alone = make_thought_triplets(ThoughtOrder(records, rows=200), name, tmp_path)[0]
        for file in ("train.jsonl", "validation.jsonl", "test.jsonl", "manifest.json", "README.md"):
            assert (alone.folder / file).read_bytes() == (small / name / file).read_bytes()


def test_a_findings_section_that_is_a_level_of_another_split(tmp_path: Path) -> None:
    train = next(name for name in map(str, range(99)) if SPLITTER.of(name) == "train")
    test = next(name for name in map(str, range(99)) if SPLITTER.of(name) == "test")
    lines = [
        record_of(name, ["finding(f1,pulmonary_edema)", "assertion(f1,present)"]) for name in (train, test)
    ]
    path, reports = tmp_path / "records.jsonl", tmp_path / "reports.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)) + b"\n")
    # The findings of the first report are, word for word, the first order of the second.
    texts = {train: lines[1]["first_order"][0], test: "Something else is seen."}
    reports.write_bytes(
        b"\n".join(orjson.dumps({"id": name, "findings": text}) for name, text in texts.items()) + b"\n"
    )
    sections = FindingsSections(path, reports, ONTOLOGY)
    thoughts = read_thoughts(path, POLICY, settings(), sections)
    assert thoughts.owned_text("findings").tolist() == [False, True]
    assert thoughts.owned_text("first_order").tolist() == [True, True]
    # Both records have the same scene graph: one split has it, the one that its hash says.
    graph = [
        SPLITTER.of("finding(f1,pulmonary_edema); assertion(f1,present)") == split
        for split in ("train", "test")
    ]
    assert thoughts.owned_text("scene_graph").tolist() == graph


def test_reports_from_a_file_and_made_again(made: Path, records: Path, tmp_path: Path) -> None:
    reports = tmp_path / "reports.jsonl"
    write_synthetic(300, reports)
    order = ThoughtOrder(records, reports)
    again = make_thought_triplets(order, "findings_alignment", tmp_path)[0]
    for split in SPLITS:
        name = f"{split}.jsonl"
        assert (again.folder / name).read_bytes() == (made / "findings_alignment" / name).read_bytes()
    sections = {row["id"]: " ".join(row["findings"].split()) for row in map(orjson.loads, reports.open("rb"))}
    assert all(row["anchor"] == sections[row["anchor_report"]] for row in rows_of(again.folder))
    # Records of a file say nothing of where it is.
    plain = tmp_path / "plain"
    plain.mkdir()
    shutil.copy(records / "records.jsonl", plain)
    with pytest.raises(DatasetError, match="give them with --reports"):
        make_thought_triplets(ThoughtOrder(plain), "findings_alignment", tmp_path / "x")
    other = tmp_path / "other.jsonl"
    write_synthetic(3, other, seed=7)
    with pytest.raises(DatasetError, match="no report of it has the id of a record"):
        make_thought_triplets(ThoughtOrder(plain, other), "findings_alignment", tmp_path / "x")
    assert make_thought_triplets(ThoughtOrder(plain, rows=100), "coherence", tmp_path / "x")[0].fresh


# --- verify --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRIPLETS)
def test_verify_passes_on_what_was_made(small: Path, name: str) -> None:
    assert verify_folder(small / name, ONTOLOGY).problems == []


def take_over(row: dict[str, Any]) -> None:
    """The negative gets a finding of the anchor."""
    row["negative_state"] = [*row["negative_state"], row["anchor_state"][0]]


def target(row: dict[str, Any]) -> None:
    row["negative_target"] -= 0.01


CHANGES: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("coherence", target, "but the row's findings give"),
    ("coherence", lambda row: row.update(positive_target=0.9), "positive_target: expected 1"),
    ("coherence", lambda row: row.update(level=row["anchor_level"]), "do not make a row of coherence"),
    ("coherence", lambda row: row.update(negative_state=row["anchor_state"]), "is above 0.2"),
    ("coherence", lambda row: row.update(positive=row["anchor"]), "two of its texts are the same"),
    ("coherence", lambda row: row.update(hard=not row["hard"]), "shared_organs"),
    ("findings_alignment", lambda row: row["positive_state"].pop(), "rest on different findings"),
    ("findings_alignment", lambda row: row.update(shared_organs=["bones", "lung"]), "but the findings share"),
    ("findings_alignment", lambda row: row.update(negative_report=row["anchor_report"]), "anchor's report"),
    ("derivation", take_over, "with the anchor"),
    ("derivation", lambda row: row.update(negative_about=row["positive_about"]), "conclude the same process"),
    ("derivation", lambda row: row.update(anchor_level="findings"), "do not make a row of derivation"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "reason"), CHANGES)
def test_verify_finds_a_changed_row(
    small: Path, tmp_path: Path, name: str, change: Callable[[dict[str, Any]], None], reason: str
) -> None:
    folder = Path(shutil.copytree(small / name, tmp_path / name))
    path = folder / "validation.jsonl"
    lines = path.read_bytes().splitlines()
    row = orjson.loads(lines[2])
    change(row)
    row["id"] = ""
    head, tail = orjson.dumps(row).split(b',"id":"",')
    lines[2] = b'%b,"id":"%b",%b' % (head, row_id(name, head[1:], tail[:-1]), tail)
    path.write_bytes(b"\n".join(lines) + b"\n")
    found = "\n".join(problem.line() for problem in verify_folder(folder, ONTOLOGY).problems)
    assert "validation.jsonl:3: " in found
    assert reason in found


# --- as users have it ----------------------------------------------------------------------------


def test_the_command(records: Path, tmp_path: Path) -> None:
    done = radgen("radthought", "triplets", records, "--family", "derivation", "--n", 200, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "data/radthought/derivation: train 180, validation 10, test 10" in done.stdout
    assert "--family" in one_line(radgen("radthought", "triplets", records, "--family", "x", cwd=tmp_path))
    many = radgen("radthought", "triplets", records, "--family", "coherence", "--n", 9000, cwd=tmp_path)
    assert "these records give only train" in one_line(many)


def test_datasets_loads_the_folder(small: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets (extra dev) loads the folders")
    loaded = datasets.load_dataset(str(small / "derivation"), cache_dir=str(tmp_path))
    row = rows_of(small / "derivation", "train")[0]
    assert loaded["train"].column_names == list(row)
    assert loaded["train"][0]["positive_about"] == row["positive_about"]
    assert len(loaded["train"]) == len(rows_of(small / "derivation", "train"))
