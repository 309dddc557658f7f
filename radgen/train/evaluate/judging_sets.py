"""The judging sets of ``radgen benchmark`` as rows: all of them, or a seeded sample."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from radgen.errors import RadgenError
from radgen.train.evaluate.outcome import SkippedError

Row = dict[str, Any]
_TEXTS = {
    "contrast_10": ("anchor", "positive", "negative"),
    "crossaxis_8": ("sentence1", "sentence2"),
    "probe_13": ("anchor", "positive", "negative"),
}


@dataclass(frozen=True)
class JudgingSet:
    """Rows of one set, in the file's order.

    Attributes:
        total: rows in the file; ``rows`` are those that are judged.
        sha256: of the file.
        empty: rows left out because a text is empty.
    """

    name: str
    rows: list[Row]
    total: int
    sha256: str
    empty: int

    @property
    def notes(self) -> list[str]:
        """Remarks for the table: what was sampled and left out."""
        out = []
        if len(self.rows) + self.empty < self.total:
            out.append(f"{len(self.rows):,} of {self.total:,} rows, a seeded sample; --full judges all")
        if self.empty:
            out.append(f"{self.empty:,} rows with an empty text left out")
        return out

    def by(self, column: str) -> dict[str, list[int]]:
        """Return the row numbers by the value of a column, in the order in which values first occur."""
        groups: dict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(self.rows):
            groups[str(row[column])].append(number)
        return dict(groups)


def find(folder: Path, name: str) -> Path:
    """Return the file of a set in ``folder`` (or its ``judging``).

    Raises:
        SkippedError: it is not there.
    """
    for place in (folder / name, folder / "judging" / name):
        if (place / "test.jsonl").is_file():
            return place / "test.jsonl"
    raise SkippedError(f"no {name} in {folder}: make it with 'radgen benchmark', name it with --judging")


def read(folder: Path, name: str, most: int, seed: int) -> JudgingSet:
    """Read a set.

    Args:
        most: rows that are kept of each axis or combination, those with the smallest seeded hash of their
            ids; 0 keeps all.

    Raises:
        SkippedError: the set is not there.
        RadgenError: a row is not what a judging set holds.
    """
    path = find(folder, name)
    data = path.read_bytes()
    group = "combination" if name == "crossaxis_8" else "axis"
    needed = (*_TEXTS[name], "id", group)
    rows: list[Row] = []
    empty = 0
    for number, line in enumerate(data.splitlines(), 1):
        row = _row(path, number, line, needed)
        if all(row[key].strip() for key in _TEXTS[name]):
            rows.append(row)
        else:
            empty += 1
    total = len(rows) + empty
    return JudgingSet(name, sample(rows, group, most, seed), total, hashlib.sha256(data).hexdigest(), empty)


def _row(path: Path, number: int, line: bytes, needed: Sequence[str]) -> Row:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise RadgenError(f"{path}:{number}: not valid JSON") from None
    if not isinstance(row, dict) or not all(isinstance(row.get(key), str) for key in needed):
        raise RadgenError(f"{path}:{number}: expected text in the columns {', '.join(needed)}")
    return row


def sample(rows: list[Row], group: str, most: int, seed: int) -> list[Row]:
    """Keep ``most`` rows of each group, those with the smallest hash of seed and id, in the file's order."""
    if not most:
        return rows
    by: dict[str, list[tuple[bytes, int]]] = defaultdict(list)
    for number, row in enumerate(rows):
        key = hashlib.blake2b(f"{seed}:{row['id']}".encode(), digest_size=8).digest()
        by[row[group]].append((key, number))
    kept = sorted(number for items in by.values() for _, number in sorted(items)[:most])
    return [rows[number] for number in kept]
