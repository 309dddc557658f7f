"""Rows of a dataset file, read where they lie: the file is mapped, a row is parsed when it is used."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from radgen.errors import RadgenError

Ints = NDArray[np.int64]
_BLOCK = 1 << 26


class Rows(Sequence[dict[str, Any]]):
    """The rows of a JSONL file, by number.

    Raises:
        RadgenError: no file, an empty one, or (when a row is read) a line that is no JSON object.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except FileNotFoundError:
            raise RadgenError(f"{path}: no such file") from None
        except ValueError:  # an empty file cannot be mapped
            raise RadgenError(f"{path}: has no rows") from None
        ends = np.concatenate(list(self._newlines()))
        if not len(ends) or ends[-1] != len(self._data) - 1:
            ends = np.append(ends, len(self._data))
        self._starts: Ints = np.concatenate([[0], ends[:-1] + 1])
        self._ends: Ints = ends

    def _newlines(self) -> Iterator[Ints]:
        for start in range(0, len(self._data), _BLOCK):
            block = np.frombuffer(self._data[start : start + _BLOCK], np.uint8)
            yield np.flatnonzero(block == 10).astype(np.int64) + start

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: Any) -> Any:
        line = self._data[self._starts[number] : self._ends[number]]
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise RadgenError(f"{self.path}:{number + 1}: not JSON: {error}") from None
        if not isinstance(row, dict):
            raise RadgenError(f"{self.path}:{number + 1}: expected a JSON object")
        return row

    def texts(self, number: int, row: dict[str, Any], columns: Sequence[str]) -> list[str]:
        """Return the texts of a row.

        Raises:
            RadgenError: a column is missing, empty, or holds no text.
        """
        found = [row.get(column) for column in columns]
        for column, text in zip(columns, found, strict=True):
            if not isinstance(text, str) or not text.strip():
                raise RadgenError(
                    f"{self.path}:{int(number) + 1}: column '{column}': expected text, found {_kind(text)}"
                )
        return [str(text) for text in found]

    def score(self, number: int, row: dict[str, Any], column: str) -> float:
        """Return the score of a row.

        Raises:
            RadgenError: it is no finite number.
        """
        value = row.get(column)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
            raise RadgenError(
                f"{self.path}:{int(number) + 1}: column '{column}': expected a number, found {_kind(value)}"
            )
        return float(value)


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return "an empty text" if isinstance(value, str) and not value.strip() else type(value).__name__
