"""Phrases of the vocabulary in a sentence: the longest at each place, from left to right."""

from __future__ import annotations

import re
from typing import Any

from radgen.extract.lexicon import Lexicon, Phrase
from radgen.extract.quantities import ORDINALS, Quantity, QuantityWords, quantities
from radgen.extract.tokens import Tokens

_END = ""
_DIGIT = re.compile("[0-9]")


class Item:
    """One matched stretch of a sentence.

    Attributes:
        kind: its part in the grammar, see ``lexicon.ROLES``; also "size", "count" and "level".
        phrase: what the vocabulary says of it.
        start, end: words covered, end exclusive.
        attrs: canonical fields that it states.
        places: for a place, its (laterality, lobe, zone) alternatives.
    """

    __slots__ = ("attrs", "end", "kind", "phrase", "places", "start")

    def __init__(self, kind: str, phrase: Phrase, start: int, end: int, attrs: dict[str, Any]) -> None:
        self.kind = kind
        self.phrase = phrase
        self.start = start
        self.end = end
        self.attrs = attrs
        self.places: list[tuple[str | None, str | None, str | None]] = []

    def __repr__(self) -> str:
        return f"{self.kind}[{self.start}:{self.end}]{self.attrs or ''}{self.places or ''}"


_BLANK = Phrase()


class Matcher:
    """Finds phrases with a tree of words; the time is linear in the length of the sentence."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.say = QuantityWords(lexicon.cues["quantities"])
        self.tree: dict[str, Any] = {}
        self.cased: dict[str, Any] = {}
        for words, phrase in lexicon.phrases.items():
            plain = all(word == word.lower() for word in words)
            node = self.tree if plain else self.cased
            for word in words:
                node = node.setdefault(word, {})
            node[_END] = phrase
        self.cased_words = frozenset(self.cased)

    def items(self, tokens: Tokens) -> list[Item]:
        """Return the items of a sentence in order; words outside the vocabulary have none."""
        lower = tokens.lower
        masked: dict[int, Quantity] = {}
        if _DIGIT.search(tokens.text) or not ORDINALS.isdisjoint(lower):
            masked = quantities(tokens, self.say)
        if not masked:
            found = self._longest(self.tree, lower, lower)
        else:
            keys = list(lower)
            for quantity in masked.values():
                for index in range(quantity.start, quantity.end):
                    keys[index] = "\u00a4"
            found = self._longest(self.tree, keys, keys)
        if not self.cased_words.isdisjoint(tokens.words):
            found = _merge(found, self._longest(self.cased, tokens.words, lower))
        items = [Item(phrase.kind, phrase, start, end, phrase.attrs) for phrase, start, end in found]
        if masked:
            items = [item for item in items if item.start not in masked]
            items += [Item(q.kind, _BLANK, q.start, q.end, q.attrs) for q in masked.values()]
            items.sort(key=lambda item: item.start)
        return items

    @staticmethod
    def _longest(root: dict[str, Any], words: list[str], other: list[str]) -> list[tuple[Phrase, int, int]]:
        found = []
        size = len(words)
        index = 0
        while index < size:
            if words[index] not in root:
                index += 1
                continue
            best, end = _match(root, words, other, index, size)
            if best is None:
                index += 1
                continue
            for later in range(index + 1, end) if best.find and not best.strong else ():
                if words[later] in root:
                    _, far = _match(root, words, other, later, size)
                    if far - later > end - index:  # "generalized | edema of the subcutaneous tissues"
                        first, stop = _match(root, words, other, index, later)
                        if first is not None:
                            best, end = first, stop
                        break
            found.append((best, index, end))
            index = end
        return found


def _match(
    root: dict[str, Any], words: list[str], other: list[str], index: int, size: int
) -> tuple[Phrase | None, int]:
    """Return the longest phrase at a place that ends before ``size``, and its end."""
    node = root[words[index]]
    at = index + 1
    best = node.get(_END)
    end = at
    while at < size:
        step = node.get(words[at])
        if step is None:
            step = node.get(other[at])
            if step is None:
                break
        node = step
        at += 1
        phrase = node.get(_END)
        if phrase is not None:
            best = phrase
            end = at
    return best, end


def _merge(
    plain: list[tuple[Phrase, int, int]], cased: list[tuple[Phrase, int, int]]
) -> list[tuple[Phrase, int, int]]:
    """Put abbreviations over what they cover, unless a longer phrase holds them."""
    for phrase, start, end in cased:
        clash = [found for found in plain if found[1] < end and start < found[2]]
        if all(found[2] - found[1] <= end - start for found in clash):
            plain = [found for found in plain if found not in clash]
            plain.append((phrase, start, end))
    return sorted(plain, key=lambda found: found[1])
