"""Words and their places in a text; linear in its length, whatever it holds."""

from __future__ import annotations

import re
from itertools import product

#: Letters, a number with its decimals, a run of underscores (a mask), or one other sign.
_TOKEN = re.compile(r"[^\W\d_]+|[0-9]+(?:\.[0-9]+)?|_+|\S")
_HYPHENS = "-\u2010\u2011"
_OPTION = re.compile(r"\(([^()]*)\)")


_NONE: frozenset[int] = frozenset()


class Tokens:
    """The words of one sentence.

    Attributes:
        text: the sentence.
        words: as written.
        lower: in lower case.
        joined: indexes of words that follow a hyphen inside a word ("ground-glass", "8-mm").
    """

    __slots__ = ("_starts", "joined", "lower", "text", "words")

    def __init__(
        self, text: str, words: list[str], joined: frozenset[int] | set[int], starts: list[int] | None
    ) -> None:
        self.text = text
        self.words = words
        self.lower = list(map(str.lower, words))
        self.joined = joined
        self._starts = starts

    @property
    def starts(self) -> list[int]:
        """Positions of the words in the text."""
        if self._starts is None:
            self._starts = _places(self.text, self.words)
        return self._starts

    def end(self, index: int) -> int:
        """Return the position after a word."""
        return self.starts[index] + len(self.words[index])


def _places(text: str, words: list[str]) -> list[int]:
    starts = []
    at = 0
    find = text.index
    for word in words:
        at = find(word, at)
        starts.append(at)
        at += len(word)
    return starts


def tokenize(text: str) -> Tokens:
    """Split a text into words; hyphens inside a word are dropped and remembered in ``joined``."""
    words = _TOKEN.findall(text)
    if "-" not in text and "\u2010" not in text and "\u2011" not in text:
        return Tokens(text, words, _NONE, None)
    starts = _places(text, words)
    joined: set[int] = set()
    kept: list[int] = []
    last = len(words) - 1
    for index, word in enumerate(words):
        if word in _HYPHENS and 0 < index < last and kept and kept[-1] == index - 1:
            at = starts[index]
            tight = starts[index - 1] + len(words[index - 1]) == at and starts[index + 1] == at + 1
            if tight and words[index - 1][-1].isalnum() and words[index + 1][0].isalnum():
                joined.add(len(kept))
                continue
        kept.append(index)
    return Tokens(text, [words[index] for index in kept], joined, [starts[index] for index in kept])


def phrase_words(phrase: str) -> list[str]:
    """Split a phrase of the vocabulary as a text is split.

    >>> phrase_words("part-solid nodule")
    ['part', 'solid', 'nodule']
    """
    return tokenize(phrase).words


def expand(pattern: str) -> list[str]:
    """Write out every alternative of ``(a|b|)``; an empty one makes the group optional.

    >>> expand("no (interval |)change")
    ['no interval change', 'no change']
    """
    parts = _OPTION.split(pattern)
    choices = [part.split("|") if index % 2 else [part] for index, part in enumerate(parts)]
    return list(dict.fromkeys(" ".join("".join(pick).split()) for pick in product(*choices)))
