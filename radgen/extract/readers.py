"""Reports from anywhere in one shape: ``id``, ``findings``, ``impression``, ``abnormalities``,
``prominence``, ``truth`` (spec §9), the same columns in every row, ``null`` where a source does not know.

``abnormalities`` is a list of labels, ``prominence`` a list of numbers ≥ 0, one for each abnormality,
``truth`` a list of canonical findings (synthetic reports have it).
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radgen.errors import RadgenError, did_you_mean, unknown
from radgen.extract.documents import archive_source, document_source, folder_source
from radgen.extract.rows import Row, Source, csv_source, json_type, jsonl_source, parquet_source, settings
from radgen.extract.sections import findings_and_impression

#: Columns of a report, in their order in the file.
REPORT_COLUMNS = ("id", "findings", "impression", "abnormalities", "prominence", "truth")
#: What a source's column may be.
ROLES = ("id", "findings", "impression", "text", "abnormalities", "prominence", "truth")

_CONTROL = {code: " " for code in (*range(32), 127) if chr(code) not in "\n\t"} | {12: "\n", 11: "\n"}
_LONGEST_LIST = 100_000


class _BrokenError(Exception):
    """Why a row is rejected; without any text of the report."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report: where it stands, and its values by the names of ``REPORT_COLUMNS``."""

    file: str
    line: int | None
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that is no report: where it stands and why."""

    file: str
    line: int | None
    reason: str


@dataclass
class ReportSource:
    """Reports of one file, folder or archive.

    Attributes:
        format: a key of ``FORMATS``.
        columns: the source's column of each role that it has.
        latin1: rows that were no UTF-8, counted while reading.
    """

    path: Path
    format: str
    columns: dict[str, str]
    source: Source
    latin1: int = 0

    @property
    def skipped(self) -> int:
        """Files that are no reports, counted while reading."""
        return self.source.skipped

    def __iter__(self) -> Iterator[Report | Reject]:
        """Yield a report, or the reason why a row is none; memory stays flat."""
        for row in self.source.rows:
            self.latin1 += row.latin1
            if row.data is None:
                yield Reject(row.file, row.line, row.problem)
                continue
            try:
                yield Report(row.file, row.line, report_values(row, self.columns))
            except _BrokenError as broken:
                yield Reject(row.file, row.line, str(broken))


FORMATS: dict[str, Callable[[Path], Source]] = {
    "jsonl": jsonl_source,
    "csv": csv_source,
    "parquet": parquet_source,
    "folder": folder_source,
    "archive": archive_source,
    "document": document_source,
}


def guess_format(path: Path) -> str:
    """Return the format of a path: a folder, or what its name ends in.

    Raises:
        RadgenError: there is no such file, or its name says nothing known.
    """
    if path.is_dir():
        return "folder"
    if not path.exists():
        near = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
        raise RadgenError(f"{path}: no such file or folder{did_you_mean(path.name, near)}")
    name = path.name.lower()
    for kind, suffixes in settings().suffixes.items():
        zipped = [f"{suffix}.gz" for suffix in suffixes] if kind in ("jsonl", "csv") else []
        if name.endswith((*suffixes, *zipped)):
            return kind
    known = ", ".join(suffix for suffixes in settings().suffixes.values() for suffix in suffixes)
    raise RadgenError(f"{path}: unknown kind of file; expected a folder or a name that ends in {known}")


def open_reports(path: Path, asked: Mapping[str, str] | None = None, kind: str | None = None) -> ReportSource:
    """Open a source of reports and settle which column is what, before anything is read through.

    Args:
        asked: columns that the user named, by role (``{"findings": "Befund"}``); the others are guessed.
        kind: a key of ``FORMATS``; guessed from the name if absent.

    Raises:
        RadgenError: no such file, format or column, or no column with text.
    """
    found = guess_format(path)
    if kind is not None and kind not in FORMATS:
        raise RadgenError(unknown("format", kind, FORMATS))
    kind = kind or found
    if (kind == "folder") != path.is_dir():
        wanted = "folder" if kind == "folder" else "file"
        raise RadgenError(f"{path}: expected a {wanted} for format '{kind}'")
    asked = {role: name for role, name in (asked or {}).items() if name}
    if kind in ("folder", "archive", "document"):
        if asked:
            raise RadgenError(f"{path}: documents have no columns; leave --{next(iter(asked))} out")
        source = FORMATS[kind](path)
        return ReportSource(path, kind, {name: name for name in source.columns}, source)
    source = FORMATS[kind](path)
    return ReportSource(path, kind, choose_columns(source.columns, asked, path), source)


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.casefold()).strip("_")


def choose_columns(names: list[str], asked: Mapping[str, str], path: Path) -> dict[str, str]:
    """Return the column of each role: the ones asked for, and guesses for the others.

    Raises:
        RadgenError: a column that was asked for is not there, or no column holds text.
    """
    chosen: dict[str, str] = {}
    for role, name in asked.items():
        if name not in names:
            raise RadgenError(f"{path}: {unknown(f'column for --{role}', name, names)}")
        chosen[role] = name
    plain: dict[str, str] = {}
    for name in names:
        plain.setdefault(_plain(name), name)
    for role in ROLES:
        for candidate in settings().columns[role]:
            if role not in chosen and candidate in plain and plain[candidate] not in chosen.values():
                chosen[role] = plain[candidate]
    if not {"findings", "impression", "text"} & set(chosen):
        shown = ", ".join(f"'{name}'" for name in names[:20]) + (", …" if len(names) > 20 else "")
        raise RadgenError(
            f"{path}: no column looks like findings, impression or text (found {shown}); "
            "name one with --findings, --impression or --text"
        )
    return {role: chosen[role] for role in ROLES if role in chosen}


# ---------------------------------------------------------------------------------------- rows


def report_values(row: Row, columns: Mapping[str, str]) -> dict[str, Any]:
    """Turn a raw row into the values of every column of ``REPORT_COLUMNS``."""
    data = row.data or {}

    def value(role: str) -> Any:
        return data.get(columns[role]) if role in columns else None

    findings, impression = (_text(value(role), role) for role in ("findings", "impression"))
    if findings is None and impression is None:
        text = _text(value("text"), "text")
        if text is not None:
            findings, impression = findings_and_impression(text)
    if findings is None and impression is None:
        raise _BrokenError("neither findings nor impression has text")
    abnormalities, prominence = _labels(value("abnormalities"), value("prominence"))
    return {
        "id": _identifier(value("id")) or f"{Path(row.file).name.split('.')[0]}-{row.line or 1}",
        "findings": findings,
        "impression": impression,
        "abnormalities": abnormalities,
        "prominence": prominence,
        "truth": _truth(value("truth")),
    }


def _missing(value: Any) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    return isinstance(value, str) and (not value.strip() or value.strip().lower() in settings().missing)


def clean(text: str) -> str:
    """Return a text with plain line ends and no control characters, without outer white space."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROL).strip()


def _text(value: Any, role: str) -> str | None:
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        value = "\n".join(value)
    if _missing(value):
        return None
    if not isinstance(value, str):
        raise _BrokenError(f"{role}: expected text, found {json_type(value)}")
    text = clean(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _BrokenError(f"{role}: not valid Unicode") from None
    return text or None


def _identifier(value: Any) -> str | None:
    if _missing(value):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise _BrokenError(f"id: expected text or a whole number, found {json_type(value)}")
    return _text(str(value), "id")


def _parsed(value: Any, role: str) -> Any:
    """Read a list or mapping that a table holds as text: JSON, or as Python prints it."""
    if not isinstance(value, str) or value.strip()[:1] not in ("[", "{"):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        pass
    try:
        if len(value) <= _LONGEST_LIST:
            return ast.literal_eval(value.strip())  # literals alone: it runs nothing
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        pass
    raise _BrokenError(f"{role}: not a readable list")


def _split(value: str) -> list[str]:
    separator = next((mark for mark in (";", "|", "\n", ",") if mark in value), ";")
    return [part.strip() for part in value.split(separator) if part.strip()]


def _labels(labels: Any, weights: Any) -> tuple[list[str] | None, list[float] | None]:
    labels = None if _missing(labels) else _parsed(labels, "abnormalities")
    weights = None if _missing(weights) else _parsed(weights, "prominence")
    if isinstance(labels, str):
        labels = _split(labels)
    if isinstance(labels, dict):  # a label and whether it is there
        labels = [name for name, there in labels.items() if there and not _missing(there)]
    if labels is not None and not (isinstance(labels, list) and all(isinstance(x, str) for x in labels)):
        raise _BrokenError("abnormalities: expected a list of names")
    if isinstance(weights, dict):
        labels = list(weights) if labels is None else labels
        if set(weights) != set(labels):
            raise _BrokenError("prominence: its names are not those of the abnormalities")
        weights = [weights[name] for name in labels]
    if isinstance(weights, str):
        weights = _split(weights)
    if isinstance(weights, (int, float)) and not isinstance(weights, bool):
        weights = [weights]
    if weights is None:
        return labels, None
    numbers = _numbers(weights)
    if labels is None or len(labels) != len(numbers):
        raise _BrokenError(f"prominence: {len(numbers)} numbers for {len(labels or [])} abnormalities")
    return labels, numbers


def _numbers(values: Any) -> list[float]:
    try:
        if not isinstance(values, list) or any(isinstance(value, bool) for value in values):
            raise TypeError
        numbers = [float(value) for value in values]
    except (TypeError, ValueError):
        raise _BrokenError("prominence: expected a list of numbers") from None
    if not all(math.isfinite(number) and number >= 0 for number in numbers):
        raise _BrokenError("prominence: expected numbers of at least 0")
    return numbers


def _truth(value: Any) -> list[dict[str, Any]] | None:
    if _missing(value):
        return None
    value = _parsed(value, "truth")
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _BrokenError("truth: expected a list of findings")
    return value
