"""Scored pairs of RadThought records (spec §6): every score worked out again, and what verify finds."""

from __future__ import annotations

import random
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
from radgen.generators.radthought.pair_settings import LEVELS, PAIRS, settings
from radgen.generators.radthought.pairs import make_thought_pairs
from radgen.generators.radthought.pairs_folder import ThoughtOrder
from radgen.generators.radthought.predicates import parse, renumbered
from radgen.generators.radthought.records import RecordOrder
from radgen.generators.radthought.records_folder import make_records
from radgen.generators.radthought.scores import conclusion_score
from radgen.generators.radthought.source import Source
from radgen.generators.splits import SPLITS, Splitter, normalise
from radgen.generators.verify import verify_folder
from radgen.ontology import load_ontology

ONTOLOGY = load_ontology()
POLICY = load_policy(ONTOLOGY)
SPLITTER = Splitter(ONTOLOGY.axes.splits)
SHORT = {"second_order": "second", "third_order": "third", "synthesis": "synthesis"}
WEIGHTS = dict(zip(LEVELS, (0.10, 0.30, 0.22, 0.18, 0.20), strict=True))


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
    out = tmp_path_factory.mktemp("pairs")
    make_thought_pairs(ThoughtOrder(records, rows=400), "all", out)
    return out / "radthought"


def text_of(row: dict[str, Any], name: str) -> str:
    if name == "scene_graph":
        return "; ".join(row["predicates"])
    return row[name] if isinstance(row[name], str) else " ".join(row[name])


def without_ids(row: dict[str, Any]) -> Counter[str]:
    """The predicates of a record with the tag in the place of each id, by text alone."""
    tags = {}
    for text in row["predicates"]:
        if text.startswith("finding("):
            number, tag = text[len("finding(") : -1].split(",")
            tags[number] = tag
    out: Counter[str] = Counter()
    for text in row["predicates"]:
        name, _, rest = text[:-1].partition("(")
        terms = [tags.get(term, term) for term in rest.split(",")]
        if name == "finding":
            terms = terms[:1]
        elif name in ("adjacent_to", "differential"):
            terms.sort()
        out[f"{name}({','.join(terms)})"] += 1
    return out


def level_score(a: dict[str, Any], b: dict[str, Any], row: dict[str, Any], level: str) -> float:
    """The score of two records at one level, from the records."""
    if level == "scene_graph":
        x, y = without_ids(a), without_ids(b)
        return 2.0 * (x & y).total() / (x | y).total() - 1.0
    if level == "first_order":
        return radsim(row["state1"], row["state2"], POLICY).value
    lists = [
        [item for item in row[key] if item["level"] == SHORT[level]]
        for key in ("conclusions1", "conclusions2")
    ]
    return conclusion_score(lists[0], lists[1], settings().conclusions, POLICY).value


@pytest.mark.parametrize("name", PAIRS)
def test_every_score_comes_out_again(made: Path, by_id: dict[str, dict[str, Any]], name: str) -> None:
    rows = rows_of(made / name)
    assert len(rows) == 400
    assert {(row["family"], row["level"]) for row in rows} == {("radthought", name)}
    assert len({frozenset((row["sentence1"], row["sentence2"])) for row in rows}) == 400
    for row in rows:
        a, b = by_id[row["report1"]], by_id[row["report2"]]
        assert a is not b
        if name == "fused":
            levels = {level: level_score(a, b, row, level) for level in LEVELS}
            for level in LEVELS:
                assert row[level] == pytest.approx(
                    levels[level], abs=1e-6 if level == "first_order" else 1e-9
                )
            assert row["score"] == pytest.approx(sum(WEIGHTS[x] * row[x] for x in LEVELS), abs=1e-9)
            assert row["weights"] == [WEIGHTS[level] for level in LEVELS]
            for record, text in ((a, row["sentence1"]), (b, row["sentence2"])):
                order = ("synthesis", "third_order", "second_order", "first_order", "scene_graph")
                assert text == "\n".join(text_of(record, level) for level in order if text_of(record, level))
        else:
            expected = level_score(a, b, row, name)
            assert row["score"] == pytest.approx(expected, abs=1e-6 if name == "first_order" else 1e-9)
            assert (row["sentence1"], row["sentence2"]) == (text_of(a, name), text_of(b, name))


@pytest.mark.parametrize("name", PAIRS)
def test_no_string_and_no_report_is_in_two_splits(made: Path, name: str) -> None:
    strings: dict[str, set[str]] = {}
    for split in SPLITS:
        for row in rows_of(made / name, split):
            for key in ("sentence1", "sentence2"):
                strings.setdefault(normalise(row[key]), set()).add(split)
            assert {SPLITTER.of(row["report1"]), SPLITTER.of(row["report2"])} == {split}
    assert all(len(found) == 1 for found in strings.values())


def test_what_a_row_says_of_its_conclusions_is_in_the_records(
    made: Path, by_id: dict[str, dict[str, Any]]
) -> None:
    for row in rows_of(made / "fused")[::5]:
        for side in "12":
            record = by_id[row[f"report{side}"]]
            told = Counter(
                (item["level"], item["about"], item["assertion"]) for item in row[f"conclusions{side}"]
            )
            assert told == Counter(
                (item["level"], item["about"], item["assertion"]) for item in record["conclusions"]
            )
            assert row[f"predicates{side}"] == record["predicates"]
            tags = Counter(
                text.split(",")[1][:-1] for text in record["predicates"] if text.startswith("finding(")
            )
            assert set(tags) >= {state["finding"] for state in row[f"state{side}"]}


@pytest.mark.parametrize("name", PAIRS)
def test_scores_are_spread(made: Path, name: str) -> None:
    fifths = Counter(min(4, int((row["score"] + 1) / 2 * 5)) for row in rows_of(made / name))
    assert len(fifths) >= (3 if name == "scene_graph" else 4)
    assert max(fifths.values()) <= 0.65 * 400


def test_numbers_and_order_change_no_score(by_id: dict[str, dict[str, Any]], tmp_path: Path) -> None:
    draw = random.Random(3)
    plain, other = tmp_path / "plain.jsonl", tmp_path / "other.jsonl"
    with plain.open("wb") as one, other.open("wb") as two:
        for row in list(by_id.values())[:60]:
            one.write(orjson.dumps(row) + b"\n")
            two.write(orjson.dumps(shuffled(row, draw)) + b"\n")
    first, second = (read_thoughts(path, POLICY, settings()) for path in (plain, other))
    a, b = np.triu_indices(60)
    before, after = first.scores(a, b), second.scores(a, b)
    for level in LEVELS:
        assert after[level] == pytest.approx(before[level], abs=1e-9), level
    assert (
        sum(x != y for x, y in zip(first.hashes["first_order"], second.hashes["first_order"], strict=True))
        > 50
    )


def shuffled(row: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """A record with other numbers for its findings, and everything in another order."""
    count = len(row["first_order"])
    order = draw.sample(range(1, count + 1), count)
    numbers = {old: new for new, old in enumerate(order, 1)}
    predicates = [str(item) for item in renumbered([parse(text) for text in row["predicates"]], numbers)]
    conclusions = [
        {
            **item,
            "derived": draw.sample(found := [f"f{numbers[int(x[1:])]}" for x in item["derived"]], len(found)),
        }
        for item in row["conclusions"]
    ]
    lists = {key: draw.sample(row[key], len(row[key])) for key in ("second_order", "third_order")}
    return {
        **row,
        "predicates": draw.sample(predicates, len(predicates)),
        "first_order": [row["first_order"][old - 1] for old in order],
        **lists,
        "conclusions": draw.sample(conclusions, len(conclusions)),
    }


def test_the_same_order_gives_the_same_bytes_and_nothing_is_overwritten(
    made: Path, records: Path, tmp_path: Path
) -> None:
    again = make_thought_pairs(ThoughtOrder(records, rows=400), "third_order", tmp_path)[0]
    for name in ("train.jsonl", "validation.jsonl", "test.jsonl", "manifest.json", "README.md"):
        assert (again.folder / name).read_bytes() == (made / "third_order" / name).read_bytes()
    assert not make_thought_pairs(ThoughtOrder(records, rows=400), "third_order", tmp_path)[0].fresh
    other = ThoughtOrder(records, rows=400, seed=7)
    with pytest.raises(DatasetError, match="holds another dataset"):
        make_thought_pairs(other, "third_order", tmp_path)
    replaced = make_thought_pairs(other, "third_order", tmp_path, force=True)[0]
    assert (replaced.folder / "train.jsonl").read_bytes() != (
        made / "third_order" / "train.jsonl"
    ).read_bytes()


def test_what_so_many_reports_give(records: Path, tmp_path: Path) -> None:
    found = make_thought_pairs(ThoughtOrder(records), "second_order", tmp_path)[0]
    texts = found.counts["texts"]
    assert sum(found.rows.values()) <= 10 * texts <= 3000
    assert sum(found.rows.values()) > 2000
    assert any("no more of the recipe's 40,000" in note for note in found.notes)
    with pytest.raises(DatasetError, match=r"these records give only (validation|test) \d+ of 300"):
        make_thought_pairs(ThoughtOrder(records, rows=6_000), "second_order", tmp_path / "more")


def test_a_mistake_is_one_line_with_its_place(records: Path, tmp_path: Path) -> None:
    line = (records / "records.jsonl").read_bytes().splitlines()[0]
    row = orjson.loads(line)

    def refused(*rows: bytes) -> str:
        path = tmp_path / "bad.jsonl"
        path.write_bytes(b"\n".join(rows) + b"\n")
        with pytest.raises(DatasetError) as error:
            make_thought_pairs(ThoughtOrder(path), "all", tmp_path / "out")
        assert not (tmp_path / "out").exists()
        return str(error.value)

    assert refused(line, b"{").endswith("bad.jsonl:2: not JSON")
    assert "stands twice" in refused(line, line)
    wrong = {**row, "predicates": [*row["predicates"], "severity(f1,huge)"]}
    assert "bad.jsonl:1: predicate 'severity(f1,huge)': unknown value 'huge'" in refused(orjson.dumps(wrong))
    assert refused(b"").endswith("no record")
    with pytest.raises(DatasetError, match="did you mean 'third_order'"):
        make_thought_pairs(ThoughtOrder(records), "third_ordr", tmp_path)
    with pytest.raises(DatasetError, match=r"records\.jsonl: no such file \(radgen radthought REPORTS"):
        make_thought_pairs(ThoughtOrder(tmp_path), "all", tmp_path)


# --- verify --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAIRS)
def test_verify_passes_on_what_was_made(made: Path, name: str) -> None:
    verdict = verify_folder(made / name, ONTOLOGY)
    assert verdict.problems == []
    assert verdict.rows.total() == 400


def rewritten(
    folder: Path, number: int, change: Callable[[dict[str, Any]], None], split: str = "train"
) -> None:
    """Change a row, with the id that the changed row should have: only its content is wrong."""
    path = folder / f"{split}.jsonl"
    lines = path.read_bytes().splitlines()
    row = orjson.loads(lines[number])
    change(row)
    row["id"] = ""
    head, tail = orjson.dumps(row).split(b',"id":"",')
    name = orjson.loads((folder / "manifest.json").read_bytes())["name"]
    lines[number] = b'%b,"id":"%b",%b' % (head, row_id(name, head[1:], tail[:-1]), tail)
    path.write_bytes(b"\n".join(lines) + b"\n")


def reasons(folder: Path) -> str:
    verdict = verify_folder(folder, ONTOLOGY)
    return "\n".join(problem.line() for problem in verdict.problems)


def more(key: str, step: float = 0.01) -> Callable[[dict[str, Any]], None]:
    return lambda row: row.__setitem__(key, row[key] + (step if row[key] < 0.5 else -step))


def other_assertion(row: dict[str, Any]) -> None:
    item = row["conclusions1"][0]
    item["assertion"] = "present" if item["assertion"] == "absent" else "absent"


CHANGES: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("fused", more("score"), "the weighted sum of its levels is"),
    *[("fused", more(level), f"{level} ") for level in LEVELS],
    ("fused", lambda row: row["weights"].reverse(), "weights: expected"),
    ("fused", other_assertion, "but the row's conclusions give"),
    ("fused", lambda row: row["predicates1"].pop(), "predicates"),
    ("fused", lambda row: row["state2"].pop(), "state2: not the findings that predicates2 state"),
    ("scene_graph", more("score"), "score"),
    ("scene_graph", lambda row: row.update(sentence1="finding(f1,edema)"), "predicates1: not those of its"),
    ("scene_graph", lambda row: row["predicates1"].append("side(f1"), "cannot be read: predicate 'side(f1'"),
    ("first_order", more("score"), "but the row's findings give"),
    ("first_order", more("jitter"), "do not add up"),
    ("first_order", lambda row: row["state1"][0].update(presence="here"), "outside the canonical finding"),
    ("second_order", more("score"), "but the row's conclusions give"),
    ("second_order", lambda row: row["conclusions2"].append(row["conclusions2"][0]), "conclusions give"),
    ("third_order", other_assertion, "but the row's conclusions give"),
    ("synthesis", lambda row: row.update(level="third_order"), "family and level: expected"),
    ("synthesis", lambda row: row.update(report2=row["report1"]), "both texts are of one report"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "reason"), CHANGES)
def test_verify_finds_a_changed_row(
    made: Path, tmp_path: Path, name: str, change: Callable[[dict[str, Any]], None], reason: str
) -> None:
    folder = Path(shutil.copytree(made / name, tmp_path / name))
    rewritten(folder, 3, change)
    found = reasons(folder)
    assert "train.jsonl:4: " in found
    assert reason in found
    assert "its id is no hash" not in found


def test_verify_finds_texts_splits_counts_and_hashes(made: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(made / "second_order", tmp_path / "a"))
    data = (folder / "test.jsonl").read_bytes()
    (folder / "test.jsonl").write_bytes(data.replace(b"The ", b"Thy ", 1))
    found = reasons(folder)
    assert "test.jsonl:1: its id is no hash of the row" in found
    assert "sha256" in found

    folder = Path(shutil.copytree(made / "second_order", tmp_path / "b"))
    moved = (folder / "train.jsonl").read_bytes().splitlines()[0]
    (folder / "test.jsonl").write_bytes(data + moved + b"\n")
    found = reasons(folder)
    assert "belongs to another split" in found
    assert "a string of it is in another split too" in found
    assert "its id stands twice" in found
    assert "rows: the manifest says 20, the file has 21" in found

    folder = Path(shutil.copytree(made / "second_order", tmp_path / "c"))
    manifest = orjson.loads((folder / "manifest.json").read_bytes())
    manifest["files"]["train.jsonl"]["sha256"] = "0" * 64
    manifest["targets"][next(iter(manifest["targets"]))] += 1
    (folder / "manifest.json").write_bytes(orjson.dumps(manifest))
    found = reasons(folder)
    assert "sha256: the manifest says 0000" in found
    assert "targets: the counts are not those of the rows" in found

    manifest["constants"]["conclusions"]["weights"]["assertion"] = 1.0
    (folder / "manifest.json").write_bytes(orjson.dumps(manifest))
    assert "but the row's conclusions give" in reasons(folder)
    del manifest["constants"]["fused"]
    (folder / "manifest.json").write_bytes(orjson.dumps(manifest))
    assert "constants: cannot be read" in reasons(folder)


# --- as users have it ----------------------------------------------------------------------------


def test_the_command(records: Path, tmp_path: Path) -> None:
    done = radgen("radthought", "pairs", records, "--level", "fused", "--n", 200, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "data/radthought/fused: train 180, validation 10, test 10" in done.stdout
    assert "made by rules" in (tmp_path / "data/radthought/fused/README.md").read_text()
    verified = radgen("verify", "data", cwd=tmp_path)
    assert verified.returncode == 0, verified.stdout
    assert "--level" in one_line(radgen("radthought", "pairs", records, "--level", "x", cwd=tmp_path))


@pytest.mark.parametrize("name", ["fused", "first_order"])
def test_datasets_loads_the_folder(made: Path, tmp_path: Path, name: str) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets (extra dev) loads the folders")
    loaded = datasets.load_dataset(str(made / name), cache_dir=str(tmp_path))
    assert {split: len(loaded[split]) for split in loaded} == {"train": 360, "validation": 20, "test": 20}
    row = rows_of(made / name, "train")[0]
    assert loaded["train"].column_names == list(row)
    assert loaded["train"][0]["sentence1"] == row["sentence1"]
    if name == "fused":
        assert loaded["train"][0]["conclusions1"] == row["conclusions1"]
