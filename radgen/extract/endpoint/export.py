"""From the store to the files: one row a report, in input order, parsed anew (spec §9)."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from radgen.errors import RadgenError
from radgen.extract.endpoint.answer import ANSWERED, EXPLAIN, Kind
from radgen.extract.endpoint.judge import judge
from radgen.extract.endpoint.reading import Item, chunks
from radgen.extract.endpoint.request import Parsed, Requests
from radgen.extract.endpoint.store import DEAD, Attempt, Store


@dataclass(slots=True)
class Exported:
    """What an export wrote: rows, the failed ones by reason, what was dropped and salvaged, sha256."""

    rows: int = 0
    failed: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    salvaged: int = 0
    sha256: str = ""


def read_attempts(
    requests: Requests, item: Item, attempts: list[Attempt]
) -> tuple[Parsed | None, Kind, Attempt]:
    """Return what a report's attempts say now: the newest that this parser can read, or why none can.

    Args:
        attempts: the attempts in force, oldest first, the last one final.
    """
    last = attempts[-1]
    reason = last.kind
    for attempt in reversed(attempts):
        if attempt.kind not in ANSWERED or attempt.status != 200 or attempt.raw is None:
            continue
        outcome, parsed = judge(
            attempt.raw,
            lambda value: requests.task.parse(value, item.report),
            requests.settings.runaway_white_space,
        )
        if parsed is not None:
            return parsed, outcome.kind, attempt
        if attempt is last:
            reason = outcome.kind
    return None, reason, last


def explain(kind: Kind, attempt: Attempt) -> str:
    """Return the reason of a dead letter in words that quote no report."""
    status = f" (HTTP {attempt.status})" if attempt.status not in (None, 200) else ""
    return f"{kind}: {EXPLAIN.get(kind, kind)}{status}"


def export(
    path: Path,
    out: BinaryIO,
    dead: BinaryIO,
    requests: Requests,
    store: Store,
    backend: str,
    limit: int | None = None,
) -> Exported:
    """Write a row for every report, and every dead letter with its raw answer to the second file.

    A row has ``id``, ``extracted``, ``backend``, ``error`` (``null``, or the reason), ``salvaged`` (the
    answer stood in the reasoning field) and ``dropped`` (how many things lacked evidence).
    """
    result, digest = Exported(), hashlib.sha256()
    for group in chunks(path, requests, requests.settings.read_rows, limit):
        keys = [item.key for item in group if item.key is not None]
        finals = store.finals(keys)
        again = store.attempts([key for key, attempt in finals.items() if attempt.final == DEAD])
        lines = []
        for item in group:
            row: dict[str, Any] = {
                "id": item.report["id"], "extracted": [], "backend": backend,
                "error": None, "salvaged": False, "dropped": 0,
            }  # fmt: skip
            if item.key is not None:
                if item.key not in finals:
                    raise RadgenError(f"{path}:{item.line}: changed during the run; the same command goes on")
                attempts = again.get(item.key) or [finals[item.key]]
                parsed, kind, attempt = read_attempts(requests, item, attempts)
                if parsed is not None:
                    row["extracted"] = parsed.items
                    row["salvaged"] = kind is Kind.salvaged
                    row["dropped"] = sum(parsed.dropped.values())
                    result.dropped.update(parsed.dropped)
                    result.salvaged += row["salvaged"]
                else:
                    row["error"] = explain(kind, attempt)
                    result.failed[str(kind)] += 1
                    dead.write(_dead_letter(item, row["error"], attempt))
            lines.append(orjson.dumps(row))
        data = b"\n".join(lines) + b"\n" if lines else b""
        digest.update(data)
        out.write(data)
        result.rows += len(lines)
    result.sha256 = digest.hexdigest()
    return result


def _dead_letter(item: Item, error: str, attempt: Attempt) -> bytes:
    return orjson.dumps(
        {
            "id": item.report["id"],
            "error": error,
            "detail": attempt.detail,
            "status": attempt.status,
            "step": attempt.step,
            "key": attempt.key.hex(),
            "raw": attempt.raw.decode("utf-8", "replace") if attempt.raw is not None else None,
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


@contextlib.contextmanager
def replaced(path: Path) -> Iterator[BinaryIO]:
    """Open a file under a temporary name, and give it its own once all is written."""
    temporary = path.with_name(f".{path.name}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with open(temporary, "wb") as file:
            yield file
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
