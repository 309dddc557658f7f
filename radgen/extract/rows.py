"""Raw rows of reports from JSONL, CSV and Parquet files, one at a time.

Every source yields :class:`Row` objects: data, or the reason why there is none. One broken row never
stops the rest; only a file that cannot be read at all raises.
"""

from __future__ import annotations

import csv
import functools
import gzip
import json
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, BinaryIO, Literal

import orjson
from pydantic import BaseModel, ConfigDict

from radgen.errors import RadgenError
from radgen.yamlfile import read_yaml, validate

BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Limits(BaseModel):
    """Sizes that no honest file reaches; bytes and lines."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    row_bytes: int
    row_lines: int
    document_bytes: int
    header_bytes: int
    archive_bytes: int


class ReadersFile(BaseModel):
    """``data/readers.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    columns: dict[str, list[str]]
    missing: list[str]
    suffixes: dict[Literal["jsonl", "csv", "parquet", "archive", "document"], list[str]]
    limits: Limits
    peek_rows: int


@functools.cache
def settings() -> ReadersFile:
    """Return the packaged settings of the readers."""
    with resources.as_file(resources.files("radgen.extract").joinpath("data", "readers.yaml")) as path:
        source = read_yaml(Path(path), name="radgen/extract/data/readers.yaml", careful=False)
    return validate(ReadersFile, source.data, [source])


@dataclass(slots=True)
class Row:
    """One raw row.

    Attributes:
        line: line of a file (from 1), row of a Parquet file (from 1), or ``None`` for a document.
        file: name of the document inside a folder or archive, or of the file.
        data: values by column, or ``None`` if the row is broken.
        problem: why it is broken; it never holds text of the report.
        latin1: the bytes were no UTF-8 and were read as Latin-1.
    """

    file: str
    line: int | None
    data: dict[str, Any] | None
    problem: str = ""
    latin1: bool = False


@dataclass
class Source:
    """A source of rows.

    Attributes:
        columns: the names that the rows' data may have.
        rows: the rows, read when they are asked for.
        skipped: files that are no reports (pictures, read-me files), counted while reading.
    """

    columns: list[str]
    rows: Iterable[Row]
    skipped: int = 0


def decode(raw: bytes) -> tuple[str, bool]:
    """Decode UTF-8, or else Latin-1 as Windows writes it; return the text and whether it was Latin-1."""
    try:
        return raw.decode("utf-8"), False
    except UnicodeDecodeError:
        pass
    try:
        return raw.decode("cp1252"), True
    except UnicodeDecodeError:
        return raw.decode("latin-1"), True


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file or a ``.gz`` file for reading bytes; a damaged ``.gz`` raises RadgenError."""
    opener: Any = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "rb") as handle:
        try:
            yield handle
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise RadgenError(f"{path}: the compressed file is damaged or ends early") from None


def lines(path: Path, limit: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield (number, line) without a byte-order mark; ``None`` stands for a line over the limit."""
    with open_file(path) as handle:
        number = 0
        while line := handle.readline(limit + 1):
            number += 1
            if number == 1:
                if line.startswith(_UTF16):
                    raise RadgenError(f"{path}: the file is UTF-16; save it as UTF-8")
                line = line.removeprefix(BOM)
            if len(line) > limit:
                while line and not line.endswith(b"\n"):
                    line = handle.readline(limit)
                yield number, None
            else:
                yield number, line


# --------------------------------------------------------------------------------------- JSONL


def jsonl_rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSONL file."""
    limit = settings().limits.row_bytes
    for number, raw in lines(path, limit):
        if raw is None:
            yield Row(path.name, number, None, f"the line is longer than {limit} bytes")
        elif raw.strip():
            yield _json_row(path.name, number, raw)


def _json_row(name: str, number: int, raw: bytes) -> Row:
    text, latin1 = decode(raw)
    try:
        data = orjson.loads(text)
    except orjson.JSONDecodeError:
        data = _json_with_nan(text) if "NaN" in text else None
        if data is None:
            return Row(name, number, None, "not valid JSON", latin1)
    if not isinstance(data, dict):
        return Row(name, number, None, f"expected a JSON object, found {json_type(data)}", latin1)
    return Row(name, number, data, latin1=latin1)


def _json_with_nan(text: str) -> Any:
    """Python's own writers put NaN where a value is missing; strict JSON has no such word."""
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None


def json_type(value: Any) -> str:
    """Name a value's type as JSON does, for messages."""
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def jsonl_source(path: Path) -> Source:
    """Return the rows of a JSONL file; its columns are the keys of the first rows."""
    columns: dict[str, None] = {}
    good = 0
    for row in jsonl_rows(path):
        if row.data is not None:
            columns.update(dict.fromkeys(row.data))
            good += 1
        if good >= settings().peek_rows:
            break
    if not good:
        raise RadgenError(f"{path}: no line is a JSON object; expected JSONL, one object a line")
    return Source(list(columns), jsonl_rows(path))


# ----------------------------------------------------------------------------------------- CSV


class _Records:
    """Records of a CSV file; an unclosed quote costs one line and not the rest of the file."""

    def __init__(self, path: Path, delimiter: str | None) -> None:
        limits = settings().limits
        self.name = path.name
        self.row_lines, self.row_bytes = limits.row_lines, limits.row_bytes
        self.lines = lines(path, limits.row_bytes)
        self.pending: deque[tuple[int, bytes | None]] = deque()
        self.taken: list[tuple[int, bytes | None]] = []
        self.delimiter = delimiter
        self.latin1 = False
        csv.field_size_limit(max(csv.field_size_limit(), limits.row_bytes))

    def _next_line(self) -> tuple[int, bytes | None] | None:
        return self.pending.popleft() if self.pending else next(self.lines, None)

    def _feed(self) -> Iterator[str]:
        size = 0
        while len(self.taken) < self.row_lines:
            item = self._next_line()
            if item is None:
                return
            self.taken.append(item)
            raw = item[1]
            if raw is None or (size := size + len(raw)) > self.row_bytes:
                return  # the parser then misses the closing quote, or gets an empty record
            text, latin1 = decode(raw)
            self.latin1 |= latin1
            if self.delimiter is None:
                self.delimiter = _delimiter(text)
            yield text

    def __iter__(self) -> Iterator[tuple[int, list[str] | None, str, bool]]:
        """Yield (line, fields, problem, latin1)."""
        while True:
            self.taken, self.latin1 = [], False
            feed = self._feed()
            first = next(feed, None)
            if first is None:
                if not self.taken:
                    return
                yield self.taken[0][0], None, f"the line is longer than {self.row_bytes} bytes", False
                continue
            if not first.strip():
                continue
            start = self.taken[0][0]
            try:
                reader = csv.reader(_chain(first, feed), delimiter=self.delimiter or ",", strict=True)
                fields = next(reader)
            except csv.Error:
                self.pending.extendleft(reversed(self.taken[1:]))
                yield start, None, "the quotes of the record do not match", self.latin1
                continue
            yield start, fields, "", self.latin1


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _delimiter(header: str) -> str:
    return max(",;\t|", key=header.count)


def csv_source(path: Path) -> Source:
    """Return the rows of a CSV file; the first line names the columns."""
    tab = "\t" if path.name.lower().removesuffix(".gz").endswith(".tsv") else None
    records = iter(_Records(path, tab))
    first = next(records, None)
    if first is None or first[1] is None:
        raise RadgenError(f"{path}:1: expected a line with the names of the columns")
    header = [name.strip() for name in first[1]]
    twice = {name for name in header if name and header.count(name) > 1}
    if twice:
        raise RadgenError(f"{path}:1: column '{sorted(twice)[0]}' stands twice")
    return Source(header, _csv_rows(path.name, header, records))


def _csv_rows(
    name: str, header: list[str], records: Iterator[tuple[int, list[str] | None, str, bool]]
) -> Iterator[Row]:
    for number, fields, problem, latin1 in records:
        if fields is None:
            yield Row(name, number, None, problem, latin1)
        elif len(fields) != len(header):
            yield Row(name, number, None, f"expected {len(header)} columns, found {len(fields)}", latin1)
        else:
            yield Row(name, number, dict(zip(header, fields, strict=True)), latin1=latin1)


# ------------------------------------------------------------------------------------- Parquet


def parquet_source(path: Path) -> Source:
    """Return the rows of a Parquet file.

    Raises:
        RadgenError: pyarrow is not installed, or the file is no Parquet file.
    """
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise RadgenError(
            f"{path}: reading Parquet needs pyarrow, which is not installed: pip install 'radgen[parquet]'"
        ) from None
    try:
        file = parquet.ParquetFile(path, pre_buffer=False)
    except arrow.ArrowInvalid:
        raise RadgenError(f"{path}: not a Parquet file, or damaged") from None
    return Source(list(file.schema_arrow.names), _parquet_rows(path, file, arrow))


def _parquet_rows(path: Path, file: Any, arrow: Any) -> Iterator[Row]:
    number = 0
    try:
        for batch in file.iter_batches(batch_size=256):
            for data in batch.to_pylist():
                number += 1
                yield Row(path.name, number, data)
    except (arrow.ArrowInvalid, OSError):
        raise RadgenError(f"{path}: the file is damaged after row {number}") from None
    finally:
        file.close()
