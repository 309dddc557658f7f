"""Reports from a JSONL file, in order and in bounded memory, each with the request it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from radgen.errors import RadgenError
from radgen.extract.endpoint.request import Requests


@dataclass(slots=True)
class Item:
    """One report: its line, its columns, the user message and the key; both ``None`` if it has no text."""

    line: int
    report: Mapping[str, Any]
    user: str | None
    key: bytes | None


def read_reports(path: Path, limit: int | None = None) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield line number and columns of each report (spec §9: ``id``, ``findings``, ``impression``, …).

    Raises:
        RadgenError: a line is no JSON object with an id and a section; nothing of the line is shown.
    """
    count = 0
    try:
        file = open(path, "rb")  # noqa: SIM115  (closed below; the error of opening gets its own line)
    except OSError as error:
        raise RadgenError(f"{path}: {error.strerror or error}") from None
    with file:
        for number, line in enumerate(file, 1):
            if limit is not None and count >= limit:
                return
            if not line.strip():
                continue
            try:
                report = orjson.loads(line.removeprefix(b"\xef\xbb\xbf"))
            except orjson.JSONDecodeError:
                raise RadgenError(
                    f"{path}:{number}: not a line of JSON (`radgen reports` makes them)"
                ) from None
            if not isinstance(report, dict):
                raise RadgenError(f"{path}:{number}: expected an object with id, findings and impression")
            if "id" not in report or not ("findings" in report or "impression" in report):
                raise RadgenError(
                    f"{path}:{number}: expected the columns id, findings and impression, "
                    f"found {', '.join(sorted(map(str, report))[:8]) or 'none'}"
                )
            count += 1
            yield number, report


def chunks(path: Path, requests: Requests, size: int, limit: int | None = None) -> Iterator[list[Item]]:
    """Yield the reports in groups of ``size``, with key and user message.

    Raises:
        RadgenError: a line cannot be used.
    """
    rows = read_reports(path, limit)
    while group := list(islice(rows, size)):
        items = []
        for line, report in group:
            try:
                user = requests.task.user(report)
            except RadgenError as error:
                raise RadgenError(f"{path}:{line}: {error}") from None
            items.append(Item(line, report, user, None if user is None else requests.key(user)))
        yield items
