"""What CONTRIBUTING.md shows of a user's own YAML is what happens: its blocks are read from there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from dataset_runs import ROOT, TEXTS, dataset, one_line, radgen, rows_of, texts_of

from radgen.generators.contrasts import schedule
from radgen.generators.stream import Order
from radgen.generators.verify import verify_folder
from radgen.ontology.load import load_ontology
from radgen.templates.check import check_file

BLOCKS = re.findall(r"```yaml\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
NAMES = ("finding", "frame", "word", "constant", "axis")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("yaml")
    out = {}
    for name, block in zip(NAMES, BLOCKS, strict=True):
        (folder / f"{name}.yaml").write_text(block)
        out[name] = str(folder / f"{name}.yaml")
    return out


@pytest.mark.parametrize("name", NAMES)
def test_the_example_is_right(files: dict[str, str], name: str) -> None:
    assert check_file(Path(files[name])) == []


def made(tmp_path: Path, axis: str, file: str, rows: int = 200) -> Path:
    folder = dataset(tmp_path, "contrasts", axis, rows, ontology_files=(file,))
    assert verify_folder(folder, load_ontology([file])).problems == []
    return folder


def test_a_finding(files: dict[str, str]) -> None:
    ontology = load_ontology([files["finding"]])
    assert "tracheal_web" in ontology.on_axis("size")
    recipe = Order("contrasts", "size", 40, ontology_files=(files["finding"],)).recipe()
    job = next(job for job in schedule(recipe) if job.finding == "tracheal_web")
    rows = [row.line.decode().lower() for row in recipe.block(job).rows]
    assert len(rows) > 20
    assert all("tracheal web" in row or "of the trachea" in row for row in rows)


def test_a_phrasing(files: dict[str, str], tmp_path: Path) -> None:
    folder = made(tmp_path, "distribution", files["frame"], 400)
    used = [
        row[name]
        for row in rows_of(folder)
        for name, frame in zip(TEXTS[:3], row["phrasings"], strict=True)
        if frame == "appreciated"
    ]
    assert used
    assert all(re.search(r" (is|are) appreciated\.$", text) for text in used)


def test_a_word(files: dict[str, str], tmp_path: Path) -> None:
    texts = texts_of(made(tmp_path, "margin", files["word"], 2000))
    assert any("spiky" in text for text in texts)
    assert not any(
        "spiky" in text for text in texts_of(dataset(tmp_path / "plain", "contrasts", "margin", 2000))
    )


def test_a_constant(files: dict[str, str], tmp_path: Path) -> None:
    rows = rows_of(made(tmp_path, "severity", files["constant"]))
    found = {round(row["negative_target"], 5) for row in rows}
    # 2 exp(-d²/2) - 1 for d = 1, 2, 3
    assert found == {0.21306, -0.72933, -0.97778}


def test_an_axis(files: dict[str, str], tmp_path: Path) -> None:
    rows = rows_of(made(tmp_path, "acuity", files["axis"]))
    said = {"chronic": "chronic|long-standing", "subacute": "subacute|recent", "acute": r"\bacute"}
    levels = list(said)
    for row in rows:
        states = [row[f"{name}_state"] for name in ("anchor", "positive", "negative")]
        assert {state["finding"] for state in states} == {"rib_fracture"}
        for name, state in zip(("anchor", "positive", "negative"), states, strict=True):
            found = {level for level, pattern in said.items() if re.search(pattern, row[name], re.IGNORECASE)}
            assert found == {state["acuity"]}, row[name]
        steps = abs(levels.index(states[0]["acuity"]) - levels.index(states[2]["acuity"]))
        assert row["negative_target"] == pytest.approx({1: 0.601475, 2: -0.177775}[steps], abs=1e-6)
    assert {row["anchor_state"]["acuity"] for row in rows} == set(levels)


def test_the_commands(files: dict[str, str], tmp_path: Path) -> None:
    options = ["--ontology", files["axis"]]
    made = radgen("contrasts", "--axis", "acuity", "--n", 60, "--out", "d", *options, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert radgen("verify", "d", *options, cwd=tmp_path).returncode == 0
    assert "unknown dataset contrasts/acuity" in radgen("verify", "d", cwd=tmp_path, COLUMNS="200").stdout
    assert "unknown axis 'acuity'" in one_line(radgen("contrasts", "--axis", "acuity", cwd=tmp_path))


def test_a_group_that_is_no_field(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("words:\n  acuty:\n    acute: {adj: [acute]}\n")
    (problem,) = check_file(path)
    assert problem.startswith(f"{path}:2: words.acuty: unknown field 'acuty'; did you mean 'acuity'?")


def test_an_ordinal_axis_has_the_name_of_its_field(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "axes:\n  age:\n    kind: ordinal\n    fields: [acuity]\n    levels: [chronic, acute]\n"
        "    sigma: 1\n    train_rows: 10\n"
    )
    (problem,) = check_file(path)
    assert problem.startswith(f"{path}:4: axes.age.fields: an ordinal axis has the name of its field")
