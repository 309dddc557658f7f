"""Phrases of the vocabulary in a sentence: the longest at each place, from left to right."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from radgen.extract.lexicon import Lexicon, Phrase
from radgen.extract.quantities import ORDINALS, Quantity, QuantityWords, quantities
from radgen.extract.tokens import Tokens

_DIGIT = re.compile("[0-9]")


#: A tree of words: what a word ends, if anything, and the words that may follow it.
Tree = dict[str, "Node"]
Node = list[Any]  # [Phrase | None, Tree | None]
#: The places of everything that is no place; shared, so it is never changed.
_NOWHERE: list[tuple[str | None, str | None, str | None]] = []


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
        self.places = _NOWHERE

    def __repr__(self) -> str:
        return f"{self.kind}[{self.start}:{self.end}]{self.attrs or ''}{self.places or ''}"


_BLANK = Phrase()


class Matcher:
    """Finds phrases with a tree of words; the time is linear in the length of the sentence."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.say = QuantityWords(lexicon.cues["quantities"])
        self.tree: Tree = {}
        self.cased: Tree = {}
        for words, phrase in lexicon.phrases.items():
            plain = all(word == word.lower() for word in words)
            plant(self.tree if plain else self.cased, words, phrase)
        self.cased_words = frozenset(self.cased)

    def items(self, tokens: Tokens) -> list[Item]:
        """Return the items of a sentence in order; words outside the vocabulary have none."""
        lower = tokens.lower
        masked: dict[int, Quantity] = {}
        if _DIGIT.search(tokens.text) or not ORDINALS.isdisjoint(lower):
            masked = quantities(tokens, self.say)
        if not masked:
            found = longest(self.tree, lower)
        else:
            keys = list(lower)
            for quantity in masked.values():
                for index in range(quantity.start, quantity.end):
                    keys[index] = "\u00a4"
            found = longest(self.tree, keys)
        if not self.cased_words.isdisjoint(tokens.words):
            found = _merge(found, _abbreviations(self.cased, tokens.words, lower))
        items = [Item(phrase.kind, phrase, start, end, phrase.attrs) for phrase, start, end in found]
        if masked:
            items = [item for item in items if item.start not in masked]
            items += [Item(q.kind, _BLANK, q.start, q.end, q.attrs) for q in masked.values()]
            items.sort(key=lambda item: item.start)
        return items


def plant(tree: Tree, words: Iterable[str], phrase: Phrase) -> None:
    """Add a phrase to a tree of words."""
    node: Node = [None, tree]
    for word in words:
        if node[1] is None:
            node[1] = {}
        node = node[1].setdefault(word, [None, None])
    node[0] = phrase


def longest(tree: Tree, words: list[str]) -> list[tuple[Phrase, int, int]]:
    """Return the longest phrases from left to right, each with its first word and the word after it."""
    found = []
    size = len(words)
    after = 0
    for index in [place for place, word in enumerate(words) if word in tree]:
        if index < after:
            continue
        best, following = tree[words[index]]
        at = end = index + 1
        while following is not None and at < size:
            node = following.get(words[at])
            if node is None:
                break
            at += 1
            phrase, following = node
            if phrase is not None:
                best, end = phrase, at
        if best is None:
            continue
        if end > index + 1 and best.find and not best.strong:
            best, end = _shorter(tree, words, index, best, end)
        found.append((best, index, end))
        after = end
    return found


def _shorter(tree: Tree, words: list[str], index: int, best: Phrase, end: int) -> tuple[Phrase, int]:
    """Cut a phrase where a longer one begins inside it: "generalized | edema of the soft tissues"."""
    for later in range(index + 1, end):
        if words[later] in tree:
            other, far = _match(tree, words, words, later, len(words))
            if far - later > end - index - (other is not None and other.strong):
                first, stop = _match(tree, words, words, index, later)
                return (first, stop) if first is not None else (best, end)
    return best, end


def _abbreviations(tree: Tree, words: list[str], lower: list[str]) -> list[tuple[Phrase, int, int]]:
    found = []
    index = 0
    while index < len(words):
        best, end = _match(tree, words, lower, index, len(words)) if words[index] in tree else (None, index)
        if best is not None:
            found.append((best, index, end))
        index = end if best is not None else index + 1
    return found


def _match(
    tree: Tree, words: list[str], other: list[str], index: int, size: int
) -> tuple[Phrase | None, int]:
    """Return the longest phrase at a place that ends before ``size``, and its end."""
    best, following = tree[words[index]]
    at = end = index + 1
    while following is not None and at < size:
        node = following.get(words[at]) or following.get(other[at])
        if node is None:
            break
        at += 1
        phrase, following = node
        if phrase is not None:
            best, end = phrase, at
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
