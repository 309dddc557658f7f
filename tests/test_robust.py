"""What must hold when things go wrong: kills, full disks, wrong arguments, folders of other people."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from dataset_runs import ROOT, dataset, one_line, radgen

COMMAND = ["contrasts", "--axis", "distribution", "--n", "1500", "--out", "d"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def start(cwd: Path, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "radgen", *COMMAND, *more],
        cwd=cwd, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def living(group: int) -> bool:
    """Whether a process of the group still runs (zombies do not)."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            return True
    return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")
def test_killed_at_any_moment_the_same_command_finishes_the_work(tmp_path: Path) -> None:
    whole = tmp_path / "whole"
    whole.mkdir()
    begun = time.monotonic()
    process = start(whole, "--workers", "2")
    assert process.wait() == 0, process.communicate()[1]
    took = time.monotonic() - begun
    expected = contents(whole / "d" / "contrasts" / "distribution")

    rng = random.Random(1)
    cut = tmp_path / "cut"
    cut.mkdir()
    family = cut / "d" / "contrasts"
    killed = 0
    for share in (0.3, 0.6, 0.75, 0.9):
        process = start(cut, "--workers", "2")
        time.sleep(took * (share + rng.uniform(-0.1, 0.1)))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
        seen = {path.name for path in family.iterdir()} if family.exists() else set()
        # Under its final name there is the whole dataset or nothing.
        assert seen <= {".distribution.partial", "distribution"}
        if "distribution" in seen:
            assert contents(family / "distribution") == expected
        for _ in range(100):  # the workers end with the process that started them
            if not living(process.pid):
                break
            time.sleep(0.1)
        assert not living(process.pid)
    assert killed >= 2
    last = start(cut, "--workers", "2")
    assert last.wait() == 0, last.communicate()[1]
    assert contents(family / "distribution") == expected
    assert [path.name for path in family.iterdir()] == ["distribution"]


def test_interrupted_by_the_user(tmp_path: Path) -> None:
    process = start(tmp_path, "--n", "40000", "--workers", "1")
    family = tmp_path / "d" / "contrasts"
    for _ in range(600):
        if family.exists() and any(family.iterdir()):
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert (process.returncode, said.decode()) == (130, "radgen: stopped\n")
    assert list(family.iterdir()) == []


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Path]:
    """A small file system of its own, where this is allowed."""
    place = tmp_path / "small"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("only root may mount a small file system")
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(place)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("mounting is not allowed here")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_full_disk(mounted: Path) -> None:
    dataset(mounted, "contrasts", "distribution", 40)
    before = contents(mounted / "contrasts" / "distribution")
    result = radgen(*COMMAND[:-1], mounted, "--force", "--workers", 1, cwd=mounted.parent)
    assert "the disk is full" in one_line(result)
    assert contents(mounted / "contrasts" / "distribution") == before  # what stood there stands
    assert [path.name for path in (mounted / "contrasts").iterdir()] == ["distribution"]


def test_read_only_file_system(mounted: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)
    assert "read-only" in one_line(radgen(*COMMAND[:-1], mounted, cwd=mounted.parent))


def test_a_limit_on_the_size_of_files(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "radgen", *COMMAND, "--workers", "1"],
        cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )  # fmt: skip
    assert "cannot be written" in one_line(result)
    assert list((tmp_path / "d" / "contrasts").iterdir()) == []


def test_read_only_folder(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    tmp_path.chmod(0o555)
    assert "permission" in one_line(radgen(*COMMAND, cwd=tmp_path))


@pytest.mark.parametrize("place", ["d", "d/contrasts", "d/contrasts/distribution"])
def test_a_file_where_a_folder_should_be(tmp_path: Path, place: str) -> None:
    path = tmp_path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("mine")
    for more in ([], ["--force"]):
        one_line(radgen(*COMMAND, *more, cwd=tmp_path))
        assert path.read_text() == "mine"


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_a_folder_of_somebody_else_is_never_overwritten(tmp_path: Path, force: list[str]) -> None:
    folder = tmp_path / "d" / "contrasts" / "distribution"
    folder.mkdir(parents=True)
    (folder / "thesis.txt").write_text("mine")
    assert "nothing was changed" in one_line(radgen(*COMMAND, *force, cwd=tmp_path))
    assert contents(folder) == {"thesis.txt": b"mine"}


def test_a_readme_of_somebody_else_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    assert "README.md" in one_line(radgen("collection", "--scale", 0.001, "--out", ".", cwd=tmp_path))
    assert contents(tmp_path) == {"README.md": b"mine"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["contrasts", "--axis", "laterallity"], "unknown axis 'laterallity'; did you mean 'laterality'?"),
        (["contrasts", "--axis", "margin", "--n", "0"], "--n 0: expected at least 1 row"),
        (["contrasts", "--axis", "margin", "--n", "-3"], "--n -3: expected at least 1 row"),
        (["contrasts", "--axis", "presence", "--n", "10000000"], "10,000,000 were asked for"),
        (["contrasts", "--axis", "margin", "--n", "10000000"], "10,000,000 were asked for"),
        (["contrasts", "--axis", "margin", "--preview", "0"], "--preview"),
        (["contrasts", "--axis", "margin", "--workers", "0"], "--workers"),
        (
            ["contrasts", "--axis", "margin", "--holdout", "sates"],
            "unknown holdout 'sates'; did you mean 'states'?",
        ),
        (["contrasts", "--axis", "margin", "--ontology", "no.yaml"], "no.yaml: no such file"),
        (["contrasts", "--axis", "margin", "--n", "many"], "--n"),
        (["crossaxis", "--combination", "size_lateralty"], "did you mean 'size_laterality'?"),
        (["collection", "--scale", "2"], "--scale"),
        (["explain", "no.jsonl", "1"], "no.jsonl"),
    ],
)
def test_mistakes_of_the_user_are_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    assert said in one_line(radgen(*arguments, cwd=tmp_path))
    assert list(tmp_path.iterdir()) == []
