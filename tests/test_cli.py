"""The program itself: a quick start, one line a mistake, the right exit codes."""

from __future__ import annotations

import errno
import subprocess
import sys
from pathlib import Path

import pytest

import radgen
from radgen import cli
from radgen.errors import OntologyError, RadgenError

ROOT = Path(__file__).resolve().parents[1]


def run(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "radgen", *arguments], capture_output=True, text=True, cwd=ROOT, **options
    )


def test_version() -> None:
    result = run("--version")
    assert (result.returncode, result.stdout) == (0, f"radgen {radgen.__version__}\n")


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom radgen.cli import main\nsys.argv = ['radgen', '--help']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 0, end.code\n"
        "heavy = {'torch', 'spacy', 'numpy', 'openai', 'pydantic', 'aiohttp', 'jinja2', 'transformers',\n"
        "         'sentence_transformers', 'pyarrow', 'datasets'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    assert "Usage: radgen" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--vrsion"], "no such option '--vrsion'; did you mean '--version'?"),
        (["nothing-like-it"], "no such command 'nothing-like-it'"),
    ],
)
def test_usage_errors_are_one_line(arguments: list[str], said: str) -> None:
    result = run(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("radgen: ")
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


def ending(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException
) -> tuple[int, str]:
    """Run main() with a command that raises the error; return the exit code and stderr."""

    def command(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", command)
    with pytest.raises(SystemExit) as end:
        cli.main()
    code = end.value.code
    assert isinstance(code, int)
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (RadgenError("no axis 'x'"), 2, "radgen: no axis 'x'\n"),
        (OntologyError(["a.yaml:1: x", "a.yaml:2: y"]), 2, "radgen: a.yaml:1: x\nradgen: a.yaml:2: y\n"),
        (OSError(errno.ENOSPC, "No space left on device", "/d/f"), 2, "radgen: /d/f: the disk is full\n"),
        (OSError(errno.EROFS, "Read-only", "/d/f"), 2, "radgen: /d/f: the file system is read-only\n"),
        (PermissionError(errno.EACCES, "Permission denied", "/d"), 2, "radgen: /d: permission denied\n"),
        (OSError(errno.ENOSPC, "No space left on device"), 2, "radgen: the disk is full\n"),
        (OSError(errno.EIO, "Input/output error", "f"), 2, "radgen: f: Input/output error\n"),
        (KeyboardInterrupt(), 130, "radgen: stopped\n"),
    ],
)
def test_errors_end_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: BaseException,
    code: int,
    said: str,
) -> None:
    assert ending(monkeypatch, capsys, error) == (code, said)


def test_our_own_mistakes_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def command(**_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(cli, "app", command)
    with pytest.raises(ZeroDivisionError):
        cli.main()
