"""radgen demo: what each step depends on, what is refused, and a whole run with a tiny encoder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from radgen.errors import RadgenError

pytest.importorskip("sentence_transformers", reason="sentence-transformers (extra train)")
pytest.importorskip("vl_convert", reason="vl-convert-python (extra train)")
from train_runs import bert

from radgen.train.demo import RECORD, run, steps_of
from radgen.train.demo_settings import DemoSettings, assignments, load_demo
from radgen.train.settings import load_stage

_SMALL = """
model: {model}
collection: {{scale: 0.0005}}
reports: {{number: 30}}
stages:
  stage2: {{steps: 3, batch: 4, validation.evaluations: 1, validation.rows: 4}}
  stage3: {{steps: 2, batch: 4, validation.evaluations: 1, validation.rows: 4}}
evaluate:
  suites: [contrasts, crossaxis, retrieval]
  settings: {{sample: {{contrasts: 4, crossaxis: 40, tsne: 20}}, bootstrap: {{repeats: 100}}}}
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Settings of a demo that takes seconds."""
    folder = tmp_path_factory.mktemp("settings")
    path = folder / "small.yaml"
    path.write_text(_SMALL.format(model=bert(folder / "tiny")))
    return path


def folders(settings: DemoSettings, out: Path = Path("demo")) -> dict[str, str]:
    return {step.title: step.folder.name for step in steps_of(out, settings, "radgen demo", 1, print)}


def changed(settings: DemoSettings, other: DemoSettings) -> set[str]:
    before, after = folders(settings), folders(other)
    return {title for title in before if before[title] != after[title]}


COLLECTION, REPORTS, SECOND, THIRD, JUDGED = (
    "collection", "synthetic reports", "training, stage2", "training, stage3", "evaluation",
)  # fmt: skip


def test_a_change_reaches_what_depends_on_it(tmp_path: Path) -> None:
    settings = load_demo()
    assert changed(settings, load_demo()) == set()
    assert changed(settings, load_demo(seed=7)) == {COLLECTION, REPORTS, SECOND, THIRD, JUDGED}
    assert changed(settings, load_demo(scale=0.5)) == {COLLECTION, SECOND, THIRD, JUDGED}

    def over(text: str) -> DemoSettings:
        path = tmp_path / "own.yaml"
        path.write_text(text)
        return load_demo([path])

    assert changed(settings, over("reports: {number: 31}")) == {REPORTS, JUDGED}
    assert changed(settings, over("stages: {stage2: {lr: 1.0e-6}}")) == {SECOND, THIRD, JUDGED}
    assert changed(settings, over("stages: {stage3: {lr: 1.0e-6}}")) == {THIRD, JUDGED}
    assert changed(settings, over("evaluate: {suites: [probe]}")) == {JUDGED}


def test_packaged_sizes_are_small() -> None:
    settings = load_demo()
    assert settings.collection.scale <= 0.05
    for name, number in (("stage2", "2"), ("stage3", "3")):
        sets = assignments(settings.stages[name])
        assert load_stage(number, settings.preset, sets=sets).settings.steps == settings.stages[name]["steps"]


def test_settings_as_assignments() -> None:
    tree = {
        "steps": 9,
        "validation": {"rows": 4},
        "lr": 1e-5,
        "compute.tf32": False,
        "lengths": [{"share": 1.0, "tokens": 64}],
    }
    assert assignments(tree) == (
        "steps=9",
        "validation.rows=4",
        "lr=1.0e-05",
        "compute.tf32=false",
        "lengths=[{share: 1.0, tokens: 64}]",
    )
    stage = load_stage("2", "laptop", sets=assignments(tree)).settings
    assert (stage.steps, stage.validation.rows, stage.lr, stage.compute.tf32) == (9, 4, 1e-5, False)
    assert stage.max_tokens == 64


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "collection: {scales: 0.1}",
            "own.yaml:1: collection.scales: unknown key 'scales'; did you mean 'scale'?",
        ),
        ("reports: {modality: mr}", "own.yaml:1: reports.modality"),
        ("stages: {stage4: {steps: 3}}", "own.yaml:1: stages: unknown stage 'stage4'; did you mean 'stage"),
    ],
)
def test_a_mistake_in_the_settings_is_named(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(RadgenError) as error:
        load_demo([path])
    assert line in str(error.value)


def test_files_of_a_user_are_left_alone(tmp_path: Path, small: Path) -> None:
    settings = load_demo([small])
    out = tmp_path / "mine"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    with pytest.raises(RadgenError, match="holds files that are no radgen demo"):
        run(out, settings, "radgen demo", 1, print)
    assert [file.name for file in out.iterdir()] == ["notes.txt"]

    (out / RECORD).write_text('{"my": "demo"}')
    with pytest.raises(RadgenError, match="is not radgen's"):
        run(out, settings, "radgen demo", 1, print)
    assert (out / RECORD).read_text() == '{"my": "demo"}'

    with pytest.raises(RadgenError, match="is a file, expected a folder"):
        run(out / "notes.txt", settings, "radgen demo", 1, print)


def test_a_model_that_is_not_there_ends_it_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("model: ./no-such-model")
    with pytest.raises(RadgenError, match="no such folder"):
        run(tmp_path / "demo", load_demo([path]), "radgen demo", 1, print)
    assert not (tmp_path / "demo").exists()


def test_two_at_once_in_one_folder_are_refused(tmp_path: Path, small: Path) -> None:
    fcntl = pytest.importorskip("fcntl", reason="no such locks on Windows")
    out = tmp_path / "demo"
    out.mkdir()
    (out / RECORD).write_bytes(b'{"radgen": "demo", "seconds": {}}')
    with (out / ".lock").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(RadgenError, match="another radgen demo works in this folder now"):
            run(out, load_demo([small]), "radgen demo", 1, print)
    assert sorted(path.name for path in out.iterdir()) == [".lock", RECORD]


def test_the_page_opens_where_there_is_a_screen(tmp_path: Path) -> None:
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n')
    browser.chmod(0o755)
    page = tmp_path / "page.html"
    code = "import pathlib, sys, radgen.train.demo as demo; print(demo.open_page(pathlib.Path(sys.argv[1])))"
    screen = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")

    def opened(**more: str) -> str:
        env = {key: value for key, value in os.environ.items() if key not in screen} | more
        started = [sys.executable, "-c", code, str(page)]
        result = subprocess.run(started, env=env, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        return result.stdout.strip()

    assert opened(DISPLAY=":0", BROWSER=f"{browser} %s") == "True"
    assert seen.read_text() == page.as_uri()
    if sys.platform.startswith("linux"):
        assert opened(BROWSER=f"{browser} %s") == "False"


def command(out: Path, small: Path) -> list[str]:
    options = ["--out", str(out), "--settings", str(small), "--no-open", "--workers", "2"]
    return [sys.executable, "-m", "radgen", "demo", *options]


def state(folder: Path) -> dict[str, int]:
    """Return when each file under the folder was written."""
    return {
        str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()
    }


@pytest.mark.slow
def test_killed_it_goes_on_and_what_is_done_is_not_repeated(tmp_path: Path, small: Path) -> None:
    out = tmp_path / "demo"
    process = subprocess.Popen(
        command(out, small), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "stage2, step" in line:
            process.send_signal(signal.SIGKILL)  # in the middle of step 3
            break
    process.wait()
    finished = set(orjson.loads((out / RECORD).read_bytes())["seconds"])
    assert {name.partition("-")[0] for name in finished} == {"collection", "reports"}
    before = {name: state(out / name) for name in finished}

    result = subprocess.run(command(out, small), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    kept = [line for line in result.stderr.splitlines() if "done before" in line]
    assert [line.partition(",")[0] for line in kept] == ["radgen: step 1 of 5", "radgen: step 2 of 5"]
    assert {name: state(out / name) for name in finished} == before
    (page,) = out.glob("evaluation-*/page.html")
    assert result.stdout == f"page: {page} (open it in a browser)\n"

    found = orjson.loads(page.with_name("results.json").read_bytes())
    assert [model["name"] for model in found["models"]] == ["tiny", "stage2", "stage3"]
    assert found["models"][2]["curriculum"]["stages"] == [2, 3]
    assert {entry["status"] for entry in found["results"]} == {"done"}
    assert "stage3" in page.read_text(encoding="utf-8")

    again = state(out)
    time.sleep(0.01)
    result = subprocess.run(command(out, small), capture_output=True, text=True)
    assert result.stderr.count("done before") == 5
    assert state(out) == again

    page.unlink()
    result = subprocess.run(command(out, small), capture_output=True, text=True)
    assert result.stderr.count("done before") == 4
    assert page.is_file()
