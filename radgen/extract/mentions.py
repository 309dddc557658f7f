"""Findings named in a sentence, with what the sentence says of each."""

from __future__ import annotations

from typing import Any

from radgen.extract.matching import Item
from radgen.extract.places import Place


class Mention:
    """A finding named in a sentence, and everything that the sentence says of it."""

    __slots__ = (
        "attrs",
        "certainty",
        "definite",
        "dropped",
        "end",
        "find",
        "item",
        "negated",
        "normal",
        "places",
        "plural",
        "site",
        "start",
    )

    def __init__(self, item: Item | None, find: tuple[str, dict[str, Any], bool]) -> None:
        self.item = item
        self.find = find
        self.attrs: dict[str, Any] = dict(find[1])
        self.places: list[Place] = []
        self.site: str | None = None
        self.negated = False
        self.certainty: str | None = None
        self.normal = False
        self.dropped: str | None = None
        self.definite = False
        self.plural = find[2]
        self.start = item.start if item else 0
        self.end = item.end if item else 0

    @property
    def tag(self) -> str:
        """Return the canonical finding."""
        return self.find[0]

    def again(self) -> Mention:
        """Return another mention by the same word, with the scopes of this one and nothing else."""
        other = Mention(self.item, self.find)
        other.negated, other.certainty, other.dropped = self.negated, self.certainty, self.dropped
        other.start, other.end = self.start, self.end
        return other

    def cover(self, item: Item) -> None:
        """Extend the evidence to an item."""
        self.start = min(self.start, item.start)
        self.end = max(self.end, item.end)


def add_places(mention: Mention, places: list[Place], joined: bool) -> None:
    """Combine what two places say: "left" and "lower lobe" are one, two lobes are two."""
    if not places:
        return
    if not mention.places:
        mention.places = list(places)
        return
    if len(places) == 1 and len(mention.places) == 1:
        old, new = mention.places[0], places[0]
        agree = all(a is None or b is None or a == b for a, b in zip(old, new, strict=True))
        apart = joined and ((old[1] and new[2]) or (old[2] and new[1]))  # a lobe and a zone
        if agree and not apart:
            mention.places = [(old[0] or new[0], old[1] or new[1], old[2] or new[2])]
            return
    if joined:
        mention.places += [place for place in places if place not in mention.places]


def merge_orphan(mention: Mention, orphan: Mention) -> None:
    """Give a finding what a later clause says of "it"."""
    for name, value in orphan.attrs.items():
        mention.attrs.setdefault(name, value)
    if orphan.places:
        add_places(mention, orphan.places, False)
    if orphan.certainty and mention.certainty is None:
        mention.certainty = orphan.certainty
    if orphan.negated:
        mention.negated = True
    if orphan.item is not None:
        mention.start = min(mention.start, orphan.start)
        mention.end = max(mention.end, orphan.end)
