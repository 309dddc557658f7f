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
            found = _longest(self.tree, lower)
        else:
            keys = list(lower)
            for quantity in masked.values():
                for index in range(quantity.start, quantity.end):
                    keys[index] = "\u00a4"
            found = _longest(self.tree, keys)
        if not self.cased_words.isdisjoint(tokens.words):
            found = _merge(found, _abbreviations(self.cased, tokens.words, lower))
        items = [Item(phrase.kind, phrase, start, end, phrase.attrs) for phrase, start, end in found]
        if masked:
            items = [item for item in items if item.start not in masked]
            items += [Item(q.kind, _BLANK, q.start, q.end, q.attrs) for q in masked.values()]
            items.sort(key=lambda item: item.start)
        return items


def _longest(root: dict[str, Any], words: list[str]) -> list[tuple[Phrase, int, int]]:
    """Return the longest phrases from left to right."""
    found = []
    size = len(words)
    index = 0
    while index < size:
        node = root.get(words[index])
        if node is None:
            index += 1
            continue
        best = node.get(_END)
        at = end = index + 1
        while at < size:
            node = node.get(words[at])
            if node is None:
                break
            at += 1
            phrase = node.get(_END)
            if phrase is not None:
                best, end = phrase, at
        if best is None:
            index += 1
            continue
        if end > index + 1 and best.find and not best.strong:
            best, end = _shorter(root, words, index, best, end)
        found.append((best, index, end))
        index = end
    return found


def _shorter(
    root: dict[str, Any], words: list[str], index: int, best: Phrase, end: int
) -> tuple[Phrase, int]:
    """Cut a phrase where a longer one begins inside it: "generalized | edema of the soft tissues"."""
    for later in range(index + 1, end):
        if words[later] in root:
            other, far = _match(root, words, words, later, len(words))
            if far - later > end - index - (other is not None and other.strong):
                first, stop = _match(root, words, words, index, later)
                return (first, stop) if first is not None else (best, end)
    return best, end


def _abbreviations(root: dict[str, Any], words: list[str], lower: list[str]) -> list[tuple[Phrase, int, int]]:
    found = []
    index = 0
    while index < len(words):
        best, end = _match(root, words, lower, index, len(words)) if words[index] in root else (None, index)
        if best is not None:
            found.append((best, index, end))
        index = end if best is not None else index + 1
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
    taken: dict[int, int] = {}
    for index, (_, start, end) in enumerate(plain):
        for at in range(start, end):
            taken[at] = index
    dropped: set[int] = set()
    added = []
    for found in cased:
        clash = {taken[at] for at in range(found[1], found[2]) if at in taken}
        if all(plain[index][2] - plain[index][1] <= found[2] - found[1] for index in clash):
            dropped |= clash
            added.append(found)
    kept = [found for index, found in enumerate(plain) if index not in dropped]
    return sorted([*kept, *added], key=lambda found: found[1])
