"""Words of a text: as lists, as bit masks, and the article that goes before one."""

from __future__ import annotations

import re

WORD = re.compile(r"[a-z0-9]+(?:[.'/-][a-z0-9]+)*")
_VOWEL_SOUND = re.compile(
    r"(?:[aeioAEIO]|u(?!ni(?!n|m)|s[aeiu]|t[ei]|r[ei])|hour|8|11(?!\d)|18(?!\d)|[FHLMNRSX](?=[A-Z]))",
    re.ASCII,
)


#: One surface form with the mask of its words. A plain tuple: hundreds are made for a block.
Piece = tuple[str, int]
Pieces = tuple[Piece, ...]


def article(word: str) -> str:
    """Return ``a`` or ``an`` for what follows, by sound.

    >>> [article(w) for w in ("nodule", "effusion", "8 mm nodule", "unilateral", "unchanged", "RUL nodule")]
    ['a', 'an', 'an', 'a', 'an', 'an']
    """
    return "an" if _VOWEL_SOUND.match(word) else "a"


def words_of(text: str) -> list[str]:
    """Return the words of a text for the word Jaccard: lower case, punctuation dropped, "0.8" one word."""
    return WORD.findall(text.lower())


def jaccard(a: str, b: str) -> float:
    """Return the Jaccard similarity of the word sets of two texts, in [0, 1] (spec §2)."""
    left, right = set(words_of(a)), set(words_of(b))
    union = left | right
    return len(left & right) / len(union) if union else 1.0


def overlap(a: int, b: int) -> float:
    """Return the word Jaccard of two texts from the masks of their words."""
    union = (a | b).bit_count()
    return (a & b).bit_count() / union if union else 1.0
