"""The wheel: every file of the package is in it, and it works away from the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("hatchling", reason="hatchling (extra dev) builds the wheel")
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(ROOT)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    (path,) = out.glob("radgen-*.whl")
    return path


def test_every_file_is_in_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        inside = set(archive.namelist())
    package = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "radgen").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert package - inside == set()
    assert any(name.endswith("licenses/NOTICE") for name in inside)
    assert not [name for name in inside if name.startswith(("tests", "benchmarks"))]


def test_it_works_away_from_the_repository(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    (tmp_path / "in.csv").write_text("id,findings\n1,Clear lungs.\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "site"), "PYTHONSAFEPATH": "1"}
    here = f"assert radgen.__file__.startswith({str(tmp_path)!r})"
    code = f"import radgen; from radgen.cli import main; {here}; main()"
    for arguments in (["ontology", "show", "pleural_effusion"], ["reports", "in.csv", "--out", "out.jsonl"]):
        result = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment,
        )
        assert result.returncode == 0, result.stderr
    assert (tmp_path / "out.jsonl").read_text().startswith('{"id":"1","findings":"Clear lungs."')
