"""Splits: a string's split is a pure function of its normalised text (spec §2)."""

from __future__ import annotations

from hashlib import blake2b
from typing import Literal

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


def normalise(text: str) -> str:
    """Return what counts as the same string: lower case, single spaces, no closing full stop.

    >>> normalise("Small  left effusion.")
    'small left effusion'
    """
    return " ".join(text.lower().split()).rstrip(". ")


def text_hash(text: str) -> int:
    """Return the 64-bit hash of a normalised text: the same on every machine and in every process."""
    return int.from_bytes(blake2b(normalise(text).encode(), digest_size=8).digest(), "big")


class Splitter:
    """Maps texts to splits by the shares of ``axes.yaml``.

    The shares are cut into the range of a 64-bit hash, so that the splits of any two datasets agree,
    whenever and wherever they were made, as long as the shares are the same.
    """

    def __init__(self, shares: dict[Split, float]) -> None:
        self.shares = dict(shares)
        #: Hashes below the first are train, below the second validation, the rest test.
        self.bounds = (
            int(shares["train"] * 2**64),
            int((shares["train"] + shares["validation"]) * 2**64),
        )

    @property
    def digest_bounds(self) -> tuple[bytes, bytes]:
        """The same bounds as 8-byte digests, which compare like the hashes they are."""
        first, second = (min(bound, 2**64 - 1).to_bytes(8, "big") for bound in self.bounds)
        return first, second

    def of_hash(self, value: int) -> Split:
        """Return the split of a 64-bit hash."""
        if value < self.bounds[0]:
            return "train"
        return "validation" if value < self.bounds[1] else "test"

    def of(self, text: str) -> Split:
        """Return the split of a text."""
        return self.of_hash(text_hash(text))

    def quotas(self, rows: int) -> dict[Split, int]:
        """Return how many of ``rows`` each split gets; they add up to ``rows``.

        >>> Splitter({"train": 0.9, "validation": 0.05, "test": 0.05}).quotas(1000)
        {'train': 900, 'validation': 50, 'test': 50}
        """
        small: dict[Split, int] = {name: int(rows * self.shares[name] + 0.5) for name in SPLITS[1:]}
        return {"train": rows - sum(small.values()), **small}
