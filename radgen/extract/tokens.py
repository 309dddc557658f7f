"""Words and their places in a text; linear in its length, whatever it holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product

#: Letters, a number with its decimals, a run of underscores (a mask), or one other sign.
_TOKEN = re.compile(r"[^\W\d_]+|[0-9]+(?:\.[0-9]+)?|_+|\S")
_HYPHENS = "-\u2010\u2011"
_OPTION = re.compile(r"\(([^()]*)\)")


@dataclass(slots=True)
class Tokens:
    """The words of one sentence.

    Attributes:
        words: as written.
        lower: in lower case.
        starts: positions in the text.
        joined: indexes of words that follow a hyphen inside a word ("ground-glass", "8-mm").
    """

    words: list[str]
    lower: list[str]
    starts: list[int]
    joined: frozenset[int] | set[int]

    def end(self, index: int) -> int:
        """Return the position after a word."""
        return self.starts[index] + len(self.words[index])


_NONE: frozenset[int] = frozenset()


def tokenize(text: str, start: int, end: int) -> Tokens:
    """Split ``text[start:end]``; hyphens inside a word are dropped and remembered in ``joined``."""
    found = list(_TOKEN.finditer(text, start, end))
    words = [match[0] for match in found]
    starts = [match.start() for match in found]
    if "-" not in words and "\u2010" not in words and "\u2011" not in words:
        return Tokens(words, [word.lower() for word in words], starts, _NONE)
    joined: set[int] = set()
    kept: list[int] = []
    last = len(words) - 1
    for index, word in enumerate(words):
        if word in _HYPHENS and 0 < index < last and kept and kept[-1] == index - 1:
            at = starts[index]
            if starts[index - 1] + len(words[index - 1]) == at and starts[index + 1] == at + 1:
                if words[index - 1][-1].isalnum() and words[index + 1][0].isalnum():
                    joined.add(len(kept))
                    continue
        kept.append(index)
    words = [words[index] for index in kept]
    return Tokens(words, [word.lower() for word in words], [starts[index] for index in kept], joined)


def phrase_words(phrase: str) -> list[str]:
    """Split a phrase of the vocabulary as a text is split.

    >>> phrase_words("part-solid nodule")
    ['part', 'solid', 'nodule']
    """
    return tokenize(phrase, 0, len(phrase)).words


def expand(pattern: str) -> list[str]:
    """Write out every alternative of ``(a|b|)``; an empty one makes the group optional.

    >>> expand("no (interval |)change")
    ['no interval change', 'no change']
    """
    parts = _OPTION.split(pattern)
    choices = [part.split("|") if index % 2 else [part] for index, part in enumerate(parts)]
    return list(dict.fromkeys(" ".join("".join(pick).split()) for pick in product(*choices)))
