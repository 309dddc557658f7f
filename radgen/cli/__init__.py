"""The command line: thin commands that hand over to the package; heavy imports wait for the command.

Every mistake of the user ends in one line on stderr, ``radgen: …``, and exit code 2.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, NoReturn

import typer

from radgen import __version__
from radgen.cli import (
    codebook,
    datasets,
    demo,
    evaluate,
    ontology,
    radthought,
    similarity,
    states,
    texts,
    train,
)
from radgen.errors import RadgenError, did_you_mean

app = typer.Typer(
    name="radgen",
    help="Synthetic supervision for radiology text encoders, with targets that can be inspected.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"radgen {__version__}")
        raise typer.Exit


@app.callback()
def radgen(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and end.", callback=_print_version, is_eager=True),
    ] = False,
) -> None:
    """Synthetic supervision for radiology text encoders, with targets that can be inspected."""


app.add_typer(ontology.app, name="ontology")
app.add_typer(radthought.app, name="radthought", help="Predicates, three orders and a synthesis of reports.")
app.add_typer(codebook.app, name="codebook", help="States of findings by codebook vectors, with no training.")
for group in (texts, datasets, similarity, states, train, evaluate, demo):
    app.add_typer(group.app)  # no name: their commands stand beside the others

#: The usage errors of Typer (and of Click, in versions that still use it): their common base.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]

_OS_ERRORS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file became larger than the disk or a limit allows",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.ENOENT: "no such file or folder",
    errno.EISDIR: "is a folder, expected a file",
    errno.ENOTDIR: "is a file, expected a folder",
    errno.EEXIST: "exists already",
}


def _fail(message: str, code: int = 2) -> NoReturn:
    """Print every line of the message after ``radgen:`` and end with the exit code."""
    for line in message.splitlines() or ["failed"]:
        typer.echo(f"radgen: {line}", err=True)
    sys.exit(code)


def _usage_line(error: Exception) -> str:
    """Turn a usage error into one line that ends with where to read on."""
    text = " ".join(str(getattr(error, "format_message", error.__str__)()).split())
    context = getattr(error, "ctx", None)
    option = getattr(error, "option_name", None)
    if option and context is not None and text.lower().startswith("no such option"):
        known = [name for parameter in context.command.params for name in parameter.opts]
        text = f"no such option '{option}'{did_you_mean(option, known)}"
    text = text[:1].lower() + text[1:]
    if context is not None:
        text = f"{text.rstrip('.')} (see {context.command_path} --help)"
    return text


def _os_line(error: OSError) -> str:
    """Turn an error of the operating system into one line: the path, then what is wrong with it."""
    what = _OS_ERRORS.get(error.errno or 0) or error.strerror or str(error) or type(error).__name__
    names = [str(name) for name in (error.filename, error.filename2) if name is not None]
    return f"{' -> '.join(names)}: {what}" if names else what


def main() -> None:
    """Run the command line and end the process: 0 done, 2 the user can mend it, 130 stopped by Ctrl-C."""
    # Read when torch loads: OpenMP threads that spin while they wait take the cores from other work.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        code = app(prog_name="radgen", standalone_mode=False)
    except RadgenError as error:
        _fail(str(error))
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]  # only the base class is typed
            sys.exit(2)
        _fail(_usage_line(error))
    except typer.Abort:
        _fail("stopped", 130)
    except KeyboardInterrupt:
        _fail("stopped", 130)
    except OSError as error:
        if error.errno is None:
            raise  # no error of the operating system: a mistake of ours keeps its traceback
        _fail(_os_line(error))
    if code == 130:  # Typer turned Ctrl-C into this code
        _fail("stopped", 130)
    sys.exit(code if isinstance(code, int) else 0)
