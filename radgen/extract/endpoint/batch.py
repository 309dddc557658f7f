"""OpenAI batch files out and in: the way beyond one machine (``vllm run-batch``, the batch API, Ray Data)."""

from __future__ import annotations

import contextlib
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from radgen.errors import RadgenError
from radgen.extract.endpoint import answer
from radgen.extract.endpoint.client import Row
from radgen.extract.endpoint.judge import history, read_outcome
from radgen.extract.endpoint.request import Abilities, Requests
from radgen.extract.endpoint.steps import Answered, Send, Step, Verdict, decide
from radgen.extract.endpoint.store import DEAD, GOOD, OPEN, Attempt, Store
from radgen.extract.endpoint.transport import Reply


@dataclass(slots=True)
class ExportedBatch:
    """How many requests were written to which files."""

    requests: int = 0
    files: list[str] = field(default_factory=list)


def export_batch(
    rows: Iterator[Row], folder: Path, requests: Requests, abilities: Abilities
) -> ExportedBatch:
    """Write what is missing as ``requests-00001.jsonl`` and so on; ``custom_id`` is the key.

    A row whose answer was cut off or invalid gets the longer or the repair request.

    Raises:
        RadgenError: the folder holds something already, or one request is above the limit of a file.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise RadgenError(f"--export-batch {folder}: is no empty folder; give another")
    numbers = requests.settings.batch
    most = int(numbers.megabytes * 1_000_000)
    temporary = folder.with_name(f".{folder.name}.tmp")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    result = ExportedBatch()
    with contextlib.ExitStack() as stack:
        stack.callback(shutil.rmtree, temporary, ignore_errors=True)
        file, lines, size = None, 0, 0
        for row in rows:
            line = _request_line(row, requests, abilities)
            if len(line) > most:
                raise RadgenError(f"a request of {len(line)} bytes: a batch file may hold {most}")
            if file is None or lines == numbers.lines or size + len(line) > most:
                if file is not None:
                    file.close()
                result.files.append(f"requests-{len(result.files) + 1:05}.jsonl")
                file = stack.enter_context(open(temporary / result.files[-1], "wb"))
                lines, size = 0, 0
            file.write(line)
            lines, size, result.requests = lines + 1, size + len(line), result.requests + 1
        if file is not None:
            file.close()
        if folder.exists():
            folder.rmdir()
        temporary.rename(folder)
    return result


def _request_line(row: Row, requests: Requests, abilities: Abilities) -> bytes:
    step = decide(row.history)
    assert isinstance(step, Send), "a row that is missing has a next step"
    body = requests.encode_step(row.user, step, abilities)
    head = {"custom_id": row.key.hex(), "method": "POST", "url": requests.settings.batch.url}
    return orjson.dumps({**head, "body": orjson.Fragment(body)}, option=orjson.OPT_APPEND_NEWLINE)


@dataclass(slots=True)
class Imported:
    """What an import found.

    Attributes:
        stored: new results, by what they came to.
        known: results that the store has already, or whose report is finished.
        foreign: lines that answer no request of radgen's.
        broken: lines that are no result, as ``file:line``.
        cut_off: files whose last line is cut off.
    """

    stored: Counter[str] = field(default_factory=Counter)
    known: int = 0
    foreign: int = 0
    broken: list[str] = field(default_factory=list)
    cut_off: list[str] = field(default_factory=list)


def import_batch(files: Sequence[Path], requests: Requests, store: Store) -> Imported:
    """Store results in any order; importing again changes nothing.

    A failure (a 5xx, an expired request) is stored as an attempt and leaves the report missing.

    Raises:
        RadgenError: a file cannot be read, or the store cannot be written.
    """
    result = Imported()
    for file in files:
        lines = _results(file, result)
        while group := list(islice(lines, requests.settings.read_rows)):
            _import_group(group, requests, store, result)
    return result


def _results(file: Path, result: Imported) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield key and line of every result of a file."""
    try:
        handle = open(file, "rb")  # noqa: SIM115  (`with handle` below closes it; only the error of opening is turned into a line)
    except OSError as error:
        raise RadgenError(f"--import-batch {file}: {error.strerror or error}") from None
    with handle:
        for number, line in enumerate(handle, 1):
            if not line.strip():
                continue
            try:
                data = orjson.loads(line)
            except orjson.JSONDecodeError:
                if line.endswith(b"\n"):
                    result.broken.append(f"{file}:{number}")
                else:  # only a last line has no end: the writer was killed
                    result.cut_off.append(str(file))
                continue
            key = _key(data)
            if key is None:
                result.foreign += 1
            else:
                yield key, data


def _key(data: Any) -> bytes | None:
    name = data.get("custom_id") if isinstance(data, dict) else None
    try:
        key = bytes.fromhex(name) if isinstance(name, str) else b""
    except ValueError:
        return None
    return key if len(key) == 32 else None


def _import_group(
    group: list[tuple[bytes, dict[str, Any]]], requests: Requests, store: Store, result: Imported
) -> None:
    known = store.attempts(list({key for key, _ in group}))
    for key, data in group:
        before = known.setdefault(key, [])
        attempt = _attempt(key, data, before, requests)
        if attempt is None:
            result.known += 1
            continue
        before.append(attempt)
        store.add(attempt)
        result.stored[attempt.kind] += 1
    store.flush()  # the next group has to find these


def _attempt(key: bytes, data: dict[str, Any], before: list[Attempt], requests: Requests) -> Attempt | None:
    """Return the attempt that a result is, or ``None`` if the store has it or does not need it."""
    response = data.get("response")
    response = response if isinstance(response, dict) else {}
    body, status = response.get("body"), response.get("status_code")
    raw = orjson.dumps(body if body is not None else data.get("error"))
    if any(old.final in (GOOD, DEAD) or old.raw == raw for old in before):
        return None
    settings = requests.settings
    reply = Reply(status if isinstance(status, int) else 500, {}, raw)
    outcome = answer.from_reply(reply, settings.statuses, settings.runaway_white_space)
    read_outcome(outcome, requests.task.check)
    past = history(before, settings.runaway_white_space)
    step = decide(past)
    name: Step = step.step if isinstance(step, Send) else "first"
    final = OPEN
    if outcome.kind in answer.ANSWERED:
        after = decide([*past, Answered(name, outcome.kind, outcome.text, outcome.detail)])
        if isinstance(after, Verdict):
            final = GOOD if after.good else DEAD
    return Attempt(
        key, name, outcome.kind, final, reply.status, outcome.detail, raw,
        outcome.input_tokens, outcome.output_tokens, None, "batch",
    )  # fmt: skip
