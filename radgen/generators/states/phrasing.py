"""The phrasing of a sentence: what is left of it without findings, places, sizes, counts and adjectives.

Two sentences of one phrasing differ in what they speak of, not in how they say it: "no evidence of a small
effusion" and "no evidence of pneumothorax" are both "no evidence of _". Splits follow phrasings, so that a
test on them is a test on wording that training has not seen.
"""

from __future__ import annotations

import re
from hashlib import blake2b

from radgen.extract.matching import Item
from radgen.extract.rules import RulesExtractor
from radgen.extract.tokens import tokenize
from radgen.generators.splits import Split, Splitter, normalise

GAP = "_"
_MASKED = frozenset(("find", "place", "size", "count", "level", "number", "det"))
_JOINS = frozenset((GAP, ",", "/", "and", "or"))
_NUMBER = re.compile(r"\d+(\.\d+)?")


class Phrasings:
    """Phrasings of sentences, and their splits.

    Args:
        rules: whose vocabulary says what is left out.
        splitter: of the shares of ``states.yaml``.
    """

    def __init__(self, rules: RulesExtractor, splitter: Splitter) -> None:
        self._matcher = rules.matcher
        self.splitter = splitter

    def of(self, text: str) -> str:
        """Return the phrasing of a sentence; a function of its normalised text (``splits.normalise``)."""
        tokens = tokenize(normalise(text))
        words = list(tokens.lower)
        for item in self._matcher.items(tokens):
            if _masks(item):
                words[item.start : item.end] = [GAP] * (item.end - item.start)
        out: list[str] = []
        held: list[str] = []  # joining words after a gap: they belong to it if another gap follows
        for word in words:
            word = GAP if _NUMBER.fullmatch(word) else word
            if out and out[-1] == GAP and word in _JOINS:
                held = [] if word == GAP else [*held, word]
                continue
            out += [*held, word]
            held = []
        return " ".join([*out, *held])

    def split(self, phrasing: str) -> Split:
        """Return the split of every sentence of a phrasing."""
        return self.splitter.of(f"phrasing {phrasing}")


def phrasing_id(phrasing: str) -> str:
    """Return the name of a phrasing in rows: a hash, since the words of reports may be private."""
    return blake2b(phrasing.encode(), digest_size=6).hexdigest()


def _masks(item: Item) -> bool:
    if item.kind in _MASKED or item.phrase.find:
        return True
    return item.kind == "attribute" and item.attrs.get("temporal_change") != "resolved"
