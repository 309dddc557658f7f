"""Texts of RadThought records: levels, the whole hierarchy, evidence; records read again by their place."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, get_args

import orjson

from radgen.errors import DatasetError
from radgen.generators.radthought.pair_settings import LEVELS, LevelName
from radgen.generators.radthought.record import Record, RecordError, read_record

#: What a text of a dataset can be.
TextName = Literal[
    "fused", "scene_graph", "first_order", "second_order", "third_order", "synthesis", "findings"
]
TEXTS: tuple[TextName, ...] = get_args(TextName)
RECORDS = "records.jsonl"
_KEPT = 4096


def level_text(row: Mapping[str, Any], level: LevelName) -> str:
    """Return the text of one level of a record as ``records.jsonl`` has it; empty where it has none.

    >>> level_text({"predicates": ["finding(f1,edema)", "assertion(f1,present)"]}, "scene_graph")
    'finding(f1,edema); assertion(f1,present)'
    """
    if level == "scene_graph":
        return "; ".join(row["predicates"])
    value = row[level]
    return " ".join((value if isinstance(value, str) else " ".join(value)).split())


def fused_text(row: Mapping[str, Any], order: Sequence[LevelName]) -> str:
    """Return the text of the whole hierarchy, a level a line."""
    return "\n".join(text for level in order if (text := level_text(row, level)))


def evidence_text(row: Mapping[str, Any], derived: Sequence[str]) -> str:
    """Return the sentences of the first order about some findings (``f1``, …), in the report's order."""
    return " ".join(" ".join(row["first_order"][int(name[1:]) - 1].split()) for name in derived)


@dataclass(frozen=True, slots=True)
class Step:
    """One sentence that concludes, with all that it concludes.

    Attributes:
        derived: the findings (``f1``, …) that it rests on, in the report's order.
        abouts: the processes concluded.
    """

    level: str
    text: str
    derived: tuple[str, ...]
    abouts: tuple[str, ...]


def steps_of(row: Mapping[str, Any]) -> list[Step]:
    """Return the conclusions of a record by their text: several may stand in one sentence.

    >>> both = [{"level": "third", "text": "No A or B.", "derived": [f], "about": f} for f in ("f2", "f1")]
    >>> steps_of({"conclusions": both})
    [Step(level='third', text='No A or B.', derived=('f1', 'f2'), abouts=('f1', 'f2'))]
    """
    found: dict[tuple[str, str], tuple[set[str], set[str]]] = {}
    for item in row["conclusions"]:
        derived, abouts = found.setdefault((item["level"], item["text"]), (set(), set()))
        derived.update(item["derived"])
        abouts.add(item["about"])
    return [
        Step(level, text, tuple(sorted(derived, key=lambda name: int(name[1:]))), tuple(sorted(abouts)))
        for (level, text), (derived, abouts) in found.items()
    ]


def texts_of(row: Mapping[str, Any], order: Sequence[LevelName]) -> dict[TextName, str]:
    """Return the texts of a record, without the report's findings section."""
    texts: dict[TextName, str] = {level: level_text(row, level) for level in LEVELS}
    texts["fused"] = fused_text(row, order)
    return texts


def records_path(path: Path) -> Path:
    """Return the file of records: the one that is named, or the one in the folder that is named.

    Raises:
        DatasetError: there is none.
    """
    found = path / RECORDS if path.is_dir() else path
    if not found.is_file():
        hint = " (radgen radthought REPORTS --out FOLDER makes one)" if path.is_dir() else ""
        raise DatasetError(f"{found}: no such file{hint}")
    return found


class RecordFile:
    """``records.jsonl``: read once from the first record to the last, then single records by their place."""

    def __init__(self, path: Path, tags: Sequence[str] | None = None) -> None:
        self.path = path
        self.tags = None if tags is None else frozenset(tags)
        self._at = functools.lru_cache(maxsize=_KEPT)(self._read)
        self._file: BinaryIO | None = None

    def __iter__(self) -> Iterator[tuple[int, Record, dict[str, Any]]]:
        """Yield each record's place in the file, the record, and its row.

        Raises:
            DatasetError: a row is no record; with its line.
        """
        place = 0
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        row = orjson.loads(line)
                        record = read_record(row, self.tags)
                    except orjson.JSONDecodeError:
                        raise DatasetError(f"{self.path}:{number}: not JSON") from None
                    except RecordError as error:
                        raise DatasetError(f"{self.path}:{number}: {error}") from None
                    yield place, record, row
                place += len(line)

    def at(self, place: int) -> dict[str, Any]:
        """Return the row of the record at a place."""
        return self._at(place)

    def _read(self, place: int) -> dict[str, Any]:
        if self._file is None:
            self._file = self.path.open("rb")
        self._file.seek(place)
        row: dict[str, Any] = orjson.loads(self._file.readline())
        return row

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
