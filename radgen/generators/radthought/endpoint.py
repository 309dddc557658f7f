"""``radgen radthought --backend openai``: answers into records, the rest into the rejects (spec §6, §8).

Answers are asked for, kept and repaired as ``radgen extract`` does it: every one is stored before it is read,
and the same command goes on where it stopped. Beside the folder stand the store, the answers
(``NAME.answers.jsonl``), and the dead letters with their raw text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from radgen.errors import DatasetError, RadgenError
from radgen.extract.endpoint.command import Options, extract_with_endpoint
from radgen.extract.endpoint.settings import load_settings
from radgen.generators.folders import finished
from radgen.generators.radthought.record import RecordError, read_record
from radgen.generators.radthought.records import NO_FINDING, Line, RecordOrder
from radgen.generators.radthought.records_folder import MadeRecords, write_records
from radgen.generators.radthought.settings import abouts
from radgen.generators.radthought.task import RadThoughtTask


def endpoint_options(options: Options, folder: Path) -> Options:
    """Return the options of a run whose answers stand beside the folder of records."""
    return dataclasses.replace(options, out=folder.with_name(f"{folder.name}.answers.jsonl"))


def make_with_endpoint(order: RecordOrder, options: Options, folder: Path) -> tuple[MadeRecords | None, int]:
    """Ask for what is missing and write the records; return them, and the exit code (1: some have none).

    No records are written by a dry run, after Ctrl-C, or where answers are still missing.

    Args:
        options: ``reports``, ``base_url``, ``model`` and what else ``radgen extract`` takes; ``out`` is set.

    Raises:
        RadgenError: what the user can mend.
    """
    if order.source.extracted is not None or order.source.truth:
        raise RadgenError(
            "--backend openai reads the findings by the rules; leave --extracted and --truth out"
        )
    model = options.model
    if model is None:
        raise RadgenError("--model is missing: the name that the endpoint serves")
    options = endpoint_options(options, folder)
    order = dataclasses.replace(order, backend=f"openai:{model}")
    ontology = order.ontology()
    load_settings(options.config)  # a mistake in it ends here
    task = RadThoughtTask(order, model)
    fingerprint = order.identity(ontology, prompt=task.version)
    finished(folder, fingerprint, options.force)  # what is not ours ends here, before anything is paid
    code = extract_with_endpoint(options, task)
    dead = options.out.with_name(f"{options.out.stem}.dead-letters.jsonl")
    if options.dry_run or options.export_batch is not None or not options.out.is_file():
        return None, code
    if code == 130 or (code == 1 and not dead.is_file()):
        return None, code
    lines = _lines(options.out, dead, task)
    made = write_records(order, folder, ontology, fingerprint, lines)
    refused = sum(made.rejected.values()) - made.rejected.get(NO_FINDING, 0)
    return made, 1 if refused else code


def _lines(answers: Path, dead: Path, task: RadThoughtTask) -> Iterator[Line]:
    """Yield a line for each answer in order; a dead letter's reason stands beside it, in the same order."""
    tags, processes = task.ontology.findings, abouts(task.ontology)
    with ExitStack() as stack:
        letters: BinaryIO | None = stack.enter_context(dead.open("rb")) if dead.is_file() else None
        for line in stack.enter_context(answers.open("rb")):
            row: dict[str, Any] = orjson.loads(line)
            identifier = str(row["id"])
            if row["error"] is not None:
                yield identifier, None, _reason(letters, identifier, row["error"]), ()
            elif row["extracted"] and "reason" in row["extracted"][0]:
                yield identifier, None, row["extracted"][0]["reason"], ()
            elif not row["extracted"]:
                yield identifier, None, NO_FINDING, ()
            else:
                yield _checked(identifier, row["extracted"][0], tags, processes)


def _checked(identifier: str, row: dict[str, Any], tags: Any, processes: Any) -> Line:
    try:
        record = dataclasses.replace(read_record(row, tags, processes), id=identifier)
    except RecordError as error:  # stored by another version
        return identifier, None, str(error), ()
    counts = (record.first_order, record.second_order, record.third_order, record.conclusions)
    return identifier, orjson.dumps(record.row()), "", tuple(map(len, counts))


def _reason(letters: BinaryIO | None, identifier: str, error: str) -> str:
    """Return why an answer was refused; what the task found wrong says more than the kind of failure."""
    line = letters.readline() if letters is not None else b""
    if not line:
        raise DatasetError(f"{identifier}: the dead letters do not go with the answers; run it again")
    letter = orjson.loads(line)
    detail = letter.get("detail")
    return detail if detail and str(letter.get("error", "")).startswith("schema_mismatch") else error
