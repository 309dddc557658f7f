"""The command line: thin commands that hand over to the package; heavy imports wait for the command.

Every mistake of the user ends in one line on stderr, ``radgen: …``, and exit code 2.
"""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from radgen import __version__
from radgen.errors import RadgenError, did_you_mean

app = typer.Typer(
    name="radgen",
    help="Synthetic supervision for radiology text encoders, with targets that can be inspected.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

# ---------------------------------------------------------------------------------------------------
# the program itself


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


# ---------------------------------------------------------------------------------------------------
# ontology

ontology_app = typer.Typer(no_args_is_help=True, help="Look things up in the ontology, check your own file.")
app.add_typer(ontology_app, name="ontology")

OntologyFiles = Annotated[
    list[Path] | None,
    typer.Option("--ontology", help="Your own YAML file over the packaged ontology; may be given again."),
]


@ontology_app.command("list")
def ontology_list(
    kind: Annotated[
        str | None, typer.Option(help="Only this kind: disease, device, procedure, quality, anatomy.")
    ] = None,
    system: Annotated[str | None, typer.Option(help="Only this organ system, e.g. lung.")] = None,
    axis: Annotated[str | None, typer.Option(help="Only findings that have this axis, e.g. size.")] = None,
    modality: Annotated[str | None, typer.Option(help="Only findings of xr or ct.")] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Also tags that mean another finding, and tags that are none.")
    ] = False,
    ontology: OntologyFiles = None,
) -> None:
    """List the findings: tag, name, kind, organ system, axes, modalities, reports in the papers' tables."""
    from radgen.ontology.browse import select
    from radgen.ontology.load import load_ontology
    from radgen.ontology.show import print_list

    loaded = load_ontology(ontology or ())
    print_list(
        loaded, select(loaded, kind=kind, system=system, axis=axis, modality=modality), every_tag=every
    )


@ontology_app.command("show")
def ontology_show(
    tag: Annotated[str, typer.Argument(help="A tag or a name, e.g. pleural_effusion or 'pleural fluid'.")],
    ontology: OntologyFiles = None,
) -> None:
    """Show everything about one finding."""
    from radgen.ontology.browse import describe, find_tag
    from radgen.ontology.load import load_ontology
    from radgen.ontology.show import print_description

    loaded = load_ontology(ontology or ())
    print_description(describe(loaded, find_tag(loaded, tag)))


@ontology_app.command("check")
def ontology_check(
    file: Annotated[Path, typer.Argument(help="Your YAML file of findings, phrasings and constants.")],
) -> None:
    """Check your own YAML file; every mistake with its line, what was expected and the nearest right name."""
    from radgen.errors import OntologyError
    from radgen.templates.check import check_file

    problems = check_file(file)
    if problems:
        count = f"{len(problems)} mistake{'s' if len(problems) > 1 else ''} in {file}"
        raise OntologyError([*problems, count])
    typer.echo(f"{file}: no mistakes")


# ---------------------------------------------------------------------------------------------------
# reports


@app.command()
def reports(
    path: Annotated[
        Path | None,
        typer.Argument(help="JSONL, CSV or Parquet file, folder of text files, or Open-I archive (.tgz)."),
    ] = None,
    out: Annotated[Path, typer.Option(help="The JSONL file to write.")] = Path("reports.jsonl"),
    rejects: Annotated[
        Path | None, typer.Option(help="Where broken rows go (rejects.jsonl beside --out if not given).")
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option("--format", help="jsonl, csv, parquet, folder, archive, document; else guessed."),
    ] = None,
    identifier: Annotated[str | None, typer.Option("--id", help="Column with the id.")] = None,
    findings: Annotated[str | None, typer.Option(help="Column with the findings.")] = None,
    impression: Annotated[str | None, typer.Option(help="Column with the impression.")] = None,
    text: Annotated[str | None, typer.Option(help="Column with whole reports; headings split them.")] = None,
    abnormalities: Annotated[str | None, typer.Option(help="Column with labels.")] = None,
    prominence: Annotated[str | None, typer.Option(help="Column with a number for each label.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the files that are there.")] = False,
) -> None:
    """Bring reports of any source into one shape: id, findings, impression, abnormalities, prominence."""
    from radgen.console import counter, messages
    from radgen.extract.reports import convert, summary

    if path is None:
        raise typer.BadParameter("expected a file, folder or archive of reports", param_hint="PATH")
    asked = {
        "id": identifier,
        "findings": findings,
        "impression": impression,
        "text": text,
        "abnormalities": abnormalities,
        "prominence": prominence,
    }
    columns = {role: name for role, name in asked.items() if name is not None}
    rejects = rejects or out.with_name("rejects.jsonl")
    with counter("reports read") as show:
        source, counts = convert(path, out, rejects, columns=columns, kind=kind, force=force, progress=show)
    for line in summary(source, counts, out, rejects):
        messages().print(line, markup=False)


# ---------------------------------------------------------------------------------------------------
# errors and the entry point

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
    try:
        code = app(prog_name="radgen", standalone_mode=False)
    except RadgenError as error:
        _fail(str(error))
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]
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
