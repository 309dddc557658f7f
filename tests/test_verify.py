"""``radgen verify``: passes on what was made, and names row and reason of whatever was changed."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

import orjson
import pytest
from dataset_runs import dataset, one_line, radgen, rows_of, split_of

from radgen.generators.verify import verify_folder
from radgen.ontology.load import load_ontology

ONTOLOGY = load_ontology()
FAMILIES = {
    "contrasts": ("contrasts", "severity"),
    "controlled": ("contrasts", "laterality_controlled"),
    "presence": ("contrasts", "presence"),
    "finding": ("contrasts", "finding"),
    "pairs": ("pairs", "count_pairs"),
    "crossaxis": ("crossaxis", "severity_laterality"),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("verify")
    return {key: dataset(out, family, name, 120) for key, (family, name) in FAMILIES.items()}


@pytest.fixture
def copy(made: dict[str, Path], tmp_path: Path) -> Callable[[str], Path]:
    return lambda key: Path(shutil.copytree(made[key], tmp_path / key))


def problems(folder: Path) -> list[tuple[str, int | None, str]]:
    found = verify_folder(folder, ONTOLOGY).problems
    return [(Path(problem.file).name, problem.row, problem.reason) for problem in found]


@pytest.mark.parametrize("key", FAMILIES)
def test_what_was_made_passes(made: dict[str, Path], key: str) -> None:
    verdict = verify_folder(made[key], ONTOLOGY)
    assert verdict.problems == []
    assert dict(verdict.rows) == {"train": 108, "validation": 6, "test": 6}


def change_byte(folder: Path, name: str, row: int, find: bytes, offset: int = 0) -> None:
    """Change one byte of a row: the one at ``offset`` after the first occurrence of ``find``."""
    path = folder / name
    lines = path.read_bytes().splitlines(keepends=True)
    line = bytearray(lines[row - 1])
    place = line.index(find) + len(find) + offset
    line[place] = line[place] ^ 1 if chr(line[place]).isalnum() else ord("x")
    lines[row - 1] = bytes(line)
    path.write_bytes(b"".join(lines))


TARGETS = {
    "contrasts": b'"negative_target":',
    "pairs": b'"score":',
    "crossaxis": b'"score":',
    "finding": b'"positive_target":',
}
STATES = {
    "contrasts": b'"anchor_state":{"finding":"',
    "pairs": b'"state1":{"finding":"',
    "crossaxis": b'"state2":{"finding":"',
    "finding": b'"negative_state":{"finding":"',
}
TEXTS = {
    "contrasts": b'"positive":"',
    "pairs": b'"sentence2":"',
    "crossaxis": b'"sentence1":"',
    "finding": b'"anchor":"',
}
WHERE = {
    "target": (TARGETS, 1), "state": (STATES, 2), "text": (TEXTS, 4),
    "context": (dict.fromkeys(TARGETS, b'"context":"'), 3), "id": (dict.fromkeys(TARGETS, b'"id":"'), 30),
}  # fmt: skip


@pytest.mark.parametrize(("key", "what"), list(itertools.product(TARGETS, WHERE)))
@pytest.mark.parametrize("file", ["train.jsonl", "test.jsonl"])
def test_one_byte_of_a_row(copy: Callable[[str], Path], key: str, what: str, file: str) -> None:
    folder = copy(key)
    marks, offset = WHERE[what]
    if what == "id":
        offset = len(FAMILIES[key][1])  # the second byte of the hash
    change_byte(folder, file, 3, marks[key], offset)
    found = problems(folder)
    assert any(name == file and row == 3 for name, row, _ in found), found
    assert any(name == file and reason.startswith("sha256") for name, _, reason in found)


def forge(folder: Path, split: str, row: int, change: Callable[[dict[str, Any]], None]) -> None:
    """Change a row as a careful forger would: its id, and the manifest's hashes, fit the change."""
    path = folder / f"{split}.jsonl"
    lines = path.read_bytes().splitlines()
    found = orjson.loads(lines[row - 1])
    change(found)
    name = found["id"].rsplit("-", 1)[0]
    lines[row - 1] = signed(found, name)
    path.write_bytes(b"\n".join(lines) + b"\n")
    sign(folder)


def signed(row: dict[str, Any], name: str) -> bytes:
    """Return a row's line with the id that fits: the name and a hash of what stands after and before it."""
    line = orjson.dumps(row)
    before, _, rest = line.partition(b',"id":"')
    after = rest.partition(b'",')[2]
    value = blake2b(after[:-1] + b"," + before[1:], digest_size=8).hexdigest()
    return b'%b,"id":"%b-%b",%b' % (before, name.encode(), value.encode(), after)


def sign(folder: Path) -> None:
    """Make the manifest's rows, bytes and hashes those of the files."""
    manifest = orjson.loads((folder / "manifest.json").read_bytes())
    for name, entry in manifest["files"].items():
        data = (folder / name).read_bytes()
        entry.update(rows=data.count(b"\n"), bytes=len(data), sha256=sha256(data).hexdigest())
    (folder / "manifest.json").write_bytes(orjson.dumps(manifest))


def test_the_forger_knows_how_ids_are_made(made: dict[str, Path]) -> None:
    for row in rows_of(made["crossaxis"]):
        assert b'"id":"%b"' % row["id"].encode() in signed(row, "severity_laterality")


def set_to(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(row: dict[str, Any]) -> None:
        *outer, last = path.split(".")
        for key in outer:
            row = row[key]
        row[last] = value(row[last]) if callable(value) else value

    return change


def other_split(text: str) -> str:
    """Return nearly the same text whose hash falls into another split."""
    for word in ("indeed", "again", "surely", "well", "there", "here", "now", "so", "then", "thus") * 20:
        text = text[:-1] + f" {word}."
        if split_of(text) != "train":
            return text
    raise AssertionError


def negative_like_positive(row: dict[str, Any]) -> None:
    row.update(negative_state=row["positive_state"], negative_target=row["positive_target"])


def without_place(row: dict[str, Any]) -> None:
    for name in ("anchor_state", "positive_state", "negative_state"):
        row[name] = {key: value for key, value in row[name].items() if key not in ("zone", "lobe")}


FORGERIES: list[tuple[str, Callable[[dict[str, Any]], None], str]] = [
    ("contrasts", set_to("negative_target", lambda value: value - 0.01), "negative_target:"),
    ("contrasts", set_to("positive_target", 0.5), "positive_target:"),
    ("contrasts", set_to("anchor_state.severity", "mildest"), "anchor_state: not a canonical finding"),
    ("contrasts", set_to("anchor_state.finding", "pleural_efusion"), "anchor_state: unknown finding"),
    ("contrasts", set_to("negative_state.presence", "absent"), "negative_state: differs from anchor_state"),
    ("contrasts", set_to("context", "0" * 16), "context:"),
    ("contrasts", set_to("axis", "margin"), "axis:"),
    ("contrasts", set_to("positive", other_split), "positive: the string belongs to"),
    ("contrasts", lambda row: row.update(positive=row["anchor"]), "a text stands twice in the row"),
    ("contrasts", lambda row: row.update(positive=row["anchor"][:-1] + " so."), "word Jaccard"),
    ("contrasts", negative_like_positive, "the targets lie 0.000 apart"),
    ("contrasts", lambda row: row.update(note="new"), "columns:"),
    ("contrasts", set_to("anchor", " "), "a text is empty"),
    ("controlled", without_place, "expected a fixed zone or lobe"),
    ("presence", set_to("negative_target", -0.9), "negative_target:"),
    ("finding", set_to("negative_target", lambda value: value + 0.1), "negative_target:"),
    ("pairs", set_to("score", lambda value: value - 1e-6), "score:"),
    ("pairs", set_to("distance", lambda value: value + 1), "distance:"),
    ("pairs", set_to("sigma", 2.0), "sigma:"),
    ("crossaxis", set_to("score", lambda value: value / 2 - 0.01), "score:"),
    ("crossaxis", set_to("side_penalty", 0.7), "side_penalty:"),
    ("crossaxis", set_to("side_relation", "none"), "side_relation:"),
    ("crossaxis", set_to("distances.severity", 2.5), "distances:"),
    ("crossaxis", set_to("sigmas.severity", 2.5), "sigmas:"),
    ("crossaxis", set_to("combination", "size_laterality"), "combination:"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("key", "change", "reason"), FORGERIES, ids=[f"{f[0]}-{f[2][:30]}-{i}" for i, f in enumerate(FORGERIES)]
)
def test_a_careful_forger(
    copy: Callable[[str], Path], key: str, change: Callable[[dict[str, Any]], None], reason: str
) -> None:
    folder = copy(key)
    forge(folder, "train", 5, change)
    found = problems(folder)
    assert any(row == 5 and text.startswith(reason) for _, row, text in found), found


def test_an_unfitting_id_is_named(copy: Callable[[str], Path]) -> None:
    folder = copy("contrasts")
    path = folder / "train.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[6] = lines[6].replace(b'"id":"severity-', b'"id":"severity-0', 1)
    path.write_bytes(b"".join(lines))
    sign(folder)
    assert [(row, reason[:4]) for _, row, reason in problems(folder)] == [(7, "id: ")]


def test_a_test_row_appended_to_train(copy: Callable[[str], Path]) -> None:
    folder = copy("contrasts")
    line = (folder / "test.jsonl").read_bytes().splitlines(keepends=True)[0]
    with (folder / "train.jsonl").open("ab") as file:
        file.write(line)
    sign(folder)
    found = problems(folder)
    assert {"anchor", "positive", "negative"} == {
        reason.split(":")[0]
        for _, row, reason in found
        if row == 109 and "belongs to test, it stands in train" in reason
    }
    assert any(
        row == 1 and reason == "the same row stands twice"
        for file, row, reason in found
        if file == "test.jsonl"
    )


def test_a_test_text_in_a_train_row(copy: Callable[[str], Path]) -> None:
    folder = copy("contrasts")
    text = rows_of(folder, "test")[0]["positive"]
    forge(folder, "train", 9, lambda row: row.update(positive=text))
    assert ("train.jsonl", 9, "positive: the string belongs to test, it stands in train") in problems(folder)


def test_a_row_doubled(copy: Callable[[str], Path]) -> None:
    folder = copy("contrasts")
    path = folder / "train.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines, lines[3]]))
    sign(folder)
    assert ("train.jsonl", 109, "the same row stands twice") in problems(folder)


def manifest_change(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "manifest.json"
    manifest = orjson.loads(path.read_bytes())
    change(manifest)
    path.write_bytes(orjson.dumps(manifest))


def flip(text: str) -> str:
    return ("0" if text[0] != "0" else "1") + text[1:]


MANIFEST: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (set_to("fingerprint", flip), "fingerprint:"),
    (set_to("seed", 43), "fingerprint:"),
    (set_to("ontology", flip), "fingerprint:"),
    (set_to("phrasings", flip), "phrasings:"),
    (set_to("recipe_version", 0), "fingerprint:"),
    (set_to("constants.min_target_gap", 0.1), "constants:"),
    (set_to("command", "radgen contrasts --axis severity --n 120 --seed 43"), "command:"),
    (set_to("command", "radgen contrasts --axis margin --n 120 --seed 42"), "command:"),
    (set_to("columns", lambda columns: columns[::-1]), "columns:"),
    (set_to("texts.distinct", lambda value: value + 1), "texts.distinct:"),
    (set_to("targets", {"1.00": 1}), "targets:"),
    (lambda manifest: manifest["files"]["test.jsonl"].update(sha256="0" * 64), "sha256:"),
    (lambda manifest: manifest["files"]["train.jsonl"].update(rows=109), "rows:"),
    (lambda manifest: manifest["files"]["validation.jsonl"].update(bytes=1), "bytes:"),
    (lambda manifest: manifest["files"].pop("test.jsonl"), "files:"),
    (set_to("name", "margin"), "fingerprint:"),
    (set_to("family", "contrast"), "unknown dataset"),
]


@pytest.mark.parametrize(("change", "reason"), MANIFEST, ids=[f"{i}-{m[1]}" for i, m in enumerate(MANIFEST)])
def test_a_changed_manifest(
    copy: Callable[[str], Path], change: Callable[[dict[str, Any]], None], reason: str
) -> None:
    folder = copy("contrasts")
    manifest_change(folder, change)
    found = verify_folder(folder, ONTOLOGY)
    assert any(problem.reason.startswith(reason) for problem in found.problems), found.problems


def test_splits_out_of_proportion(copy: Callable[[str], Path]) -> None:
    folder = copy("contrasts")
    path = folder / "test.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    sign(folder)
    assert any("split test has 3 of 117 rows" in reason for _, _, reason in problems(folder))


@pytest.mark.parametrize("broken", [b"", b"[]\n", b"{}\n", b"{\n", b'"x"\n', b"\xff\xfe\n"])
def test_rows_that_are_no_rows(copy: Callable[[str], Path], broken: bytes) -> None:
    folder = copy("contrasts")
    (folder / "test.jsonl").write_bytes(broken)
    assert problems(folder)


def test_the_command_names_row_and_reason(copy: Callable[[str], Path], tmp_path: Path) -> None:
    folder = copy("crossaxis")
    assert radgen("verify", folder, cwd=tmp_path).returncode == 0
    scores = [orjson.loads(line)["score"] for line in (folder / "validation.jsonl").open()]
    row = next(place for place, score in enumerate(scores, 1) if 0.1 < score < 0.9)
    change_byte(folder, "validation.jsonl", row, b'"score":0.')
    result = radgen("verify", folder, cwd=tmp_path, COLUMNS="300")
    assert "problems" in one_line(result)
    assert f"validation.jsonl:{row}: id:" in result.stdout
    assert f"validation.jsonl:{row}: score:" in result.stdout


@pytest.mark.parametrize(("path", "said"), [("nowhere", "no such folder"), (".", "no radgen dataset")])
def test_nothing_to_verify(tmp_path: Path, path: str, said: str) -> None:
    assert said in one_line(radgen("verify", path, cwd=tmp_path))
