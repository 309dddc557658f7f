"""``radgen collection`` and the judging sets, at a small scale: complete, disjoint, verified, loadable."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import orjson
import pytest
from dataset_runs import ROOT, dataset, radgen, rows_of, split_of, texts_of

from radgen.generators.collection import make_collection
from radgen.generators.judging import make_judging
from radgen.generators.verify import verify
from radgen.ontology.load import load_ontology

TEN = {
    *("size", "count", "laterality", "location", "severity"),
    *("temporal_change", "density", "margin", "certainty", "distribution"),
}
EIGHT = {
    *("size_laterality", "size_location", "severity_laterality", "severity_location"),
    *("density_laterality", "count_laterality", "severity_temporal_change", "density_margin"),
}


@pytest.fixture(scope="module")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("overlay") / "small.yaml"
    path.write_text("judging: {contrast_10: 205, crossaxis_8: 82}\n")
    return str(path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, overlay: str) -> Path:
    out = tmp_path_factory.mktemp("collection")
    make_collection(out, ontology_files=(overlay,), scale=0.002)
    return out


def test_everything_is_there(made: Path, overlay: str) -> None:
    names = {path.parent.relative_to(made).as_posix() for path in made.rglob("manifest.json")}
    assert names == {
        *(f"contrasts/{name}" for name in [*TEN, "laterality_controlled", "presence", "finding"]),
        "pairs/size_pairs", "pairs/count_pairs", *(f"crossaxis/{name}" for name in EIGHT),
        "judging/contrast_10", "judging/crossaxis_8", "judging/probe_13",
    }  # fmt: skip
    # 0.2 % of 81,000 / 0.9 rows is 180
    assert len(rows_of(made / "contrasts" / "size")) == 180
    assert [verdict.problems for verdict in verify(made, (overlay,)) if verdict.problems] == []
    summary = orjson.loads((made / "collection.json").read_bytes())
    assert set(summary["datasets"]) == names


def test_no_string_of_validation_test_or_judging_in_any_training_file(made: Path) -> None:
    found: dict[str, set[str]] = {"train": set(), "rest": set()}
    for path in made.rglob("*.jsonl"):
        found["train" if path.stem == "train" else "rest"].update(texts_of(path.parent, path.stem))
    assert len(found["train"]) > 2000
    assert not found["train"] & found["rest"]


def test_sizes_and_groups_of_the_judging_sets(made: Path) -> None:
    judging = made / "judging"
    ten = Counter(row["axis"] for row in rows_of(judging / "contrast_10", "test"))
    eight = Counter(row["combination"] for row in rows_of(judging / "crossaxis_8", "test"))
    probe = Counter(row["axis"] for row in rows_of(judging / "probe_13", "test"))
    assert (set(ten), ten.total(), max(ten.values()) - min(ten.values())) == (TEN, 205, 1)
    assert (set(eight), eight.total(), max(eight.values()) - min(eight.values())) == (EIGHT, 82, 1)
    assert probe == dict.fromkeys([*TEN, "presence", "synonym", "zone"], 50)


def test_the_recipe_s_volumes() -> None:
    assert load_ontology().axes.judging == {"contrast_10": 29_500, "crossaxis_8": 2_774, "probe_13": 650}


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_judging_string_in_a_training_file_of_any_seed(made: Path, tmp_path: Path, seed: int) -> None:
    judged = {text for path in (made / "judging").iterdir() for text in texts_of(path, "test")}
    assert {split_of(text) for text in judged} == {"test"}
    for family, name in (
        ("contrasts", "severity"),
        ("contrasts", "finding"),
        ("crossaxis", "severity_laterality"),
    ):
        assert not judged & set(texts_of(dataset(tmp_path, family, name, 300, seed), "train"))


def test_again_keeps_all_and_says_so(made: Path, overlay: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()}
    assert not any(one.fresh for one in make_collection(made, ontology_files=(overlay,), scale=0.002))
    assert {path: path.stat().st_mtime_ns for path in made.rglob("*") if path.is_file()} == before


def test_verify_finds_a_changed_judging_set(made: Path, overlay: str, tmp_path: Path) -> None:
    for name, old, new in (
        ("contrast_10", b'"axis":"size"', b'"axis":"count"'),
        ("probe_13", b'"kind":"match"', b'"kind":"ordinal"'),
    ):
        folder = tmp_path / name
        folder.mkdir()
        source = made / "judging" / name
        (folder / "manifest.json").write_bytes((source / "manifest.json").read_bytes())
        (folder / "test.jsonl").write_bytes((source / "test.jsonl").read_bytes().replace(old, new, 1))
        (verdict,) = verify(folder, (overlay,))
        assert any(problem.row is not None for problem in verdict.problems)
        assert any(problem.reason.startswith("sha256") for problem in verdict.problems)


def test_the_card_loads(made: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason="datasets (extra dev) loads the folders")
    (code,) = re.findall(r"```python\n(.*?)```", (made / "README.md").read_text(), re.DOTALL)
    code = code.replace("path/to/collection", str(made))
    exec(code, {"__builtins__": __builtins__})
    assert len(datasets.get_dataset_config_names(str(made))) == 26


def test_the_lines_of_the_readme_load(made: Path) -> None:
    pytest.importorskip("datasets", reason="datasets (extra dev) loads the folders")
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code.replace('"data"', repr(str(made))), names)
    assert set(names["triplets"]) == set(names["pairs"]) == {"train", "validation", "test"}
    assert names["train"].column_names == ["anchor", "positive", "negative"]


@pytest.mark.slow
def test_the_whole_judging_sets(tmp_path: Path) -> None:
    made = {one.name: one.rows["test"] for one in make_judging(tmp_path)}
    assert made == {"contrast_10": 29_500, "crossaxis_8": 2_774, "probe_13": 650}
    result = radgen("verify", tmp_path, cwd=tmp_path)
    assert result.returncode == 0, result.stdout
