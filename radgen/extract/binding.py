"""What the words around a finding state of it: attributes, places, sizes, predicates."""

from __future__ import annotations

from itertools import pairwise

from radgen.extract.lexicon import Lexicon
from radgen.extract.matching import Item
from radgen.extract.mentions import Mention, add_places
from radgen.extract.regions import MODIFIERS, each_side, is_degree, other_side, two_sides

#: Prepositions that say that a finding is inside its place.
_INSIDE = frozenset(("in", "of", "within", "involving", "at", "throughout", "affecting", "from"))
#: What the first of two coordinated findings shares with the second: "unchanged right and left effusions".
_SHARED = ("temporal_change", "acuity")
_STATING = frozenset(("attribute", "size", "level", "place", "site", "count"))
_VERDICTS = frozenset(("post_negation", "history_after", "relation"))
#: Kinds that begin a clause about the finding of the clause before: "but not entirely excluded".
_POINTING_BACK = frozenset(("attribute", "post_negation"))
_POINTING = frozenset(("the", "this", "these", "that", "those", "its", "their"))


class Binder:
    """Gives mentions what the items before and after them state."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon

    def before(self, region: list[Item], group: list[Mention], listed: bool) -> None:
        """Give mentions what stands before their noun; ``listed``: there are joins in the clause."""
        cut = two_sides(region) if listed and len(region) > 2 and len(group) == 1 else None
        if cut is None:
            self._modifiers(region, group)
            return
        first, second = group[0], group[0].again()
        self._modifiers(region[: cut - 1], [first])
        self._modifiers(region[cut:], [second])
        for name in _SHARED:
            if name in first.attrs:
                second.attrs.setdefault(name, first.attrs[name])
        group.append(second)

    def _modifiers(self, region: list[Item], group: list[Mention]) -> None:
        denied = False
        negation = -1
        for index, item in enumerate(region):
            if item.kind == "negation":
                negation = index
        for position, item in enumerate(region):
            kind = item.kind
            if kind == "negation":
                denied = True
            elif position < negation and kind != "place":
                continue  # "the chest is stable without effusion"
            if kind == "det" and item.phrase.words[0] in _POINTING:
                near = all(later.kind in MODIFIERS for later in region[position + 1 :])
                if near:
                    for mention in group:
                        mention.definite = True
            if kind in _STATING or kind == "number":
                following = region[position + 1] if position + 1 < len(region) else None
                if is_degree(item, following):
                    continue
                if denied and "certainty" in item.attrs:
                    continue
                if (
                    kind == "size"
                    and group[0].plural
                    and "size_mm" in group[0].attrs
                    and "size_mm" in item.attrs
                ):
                    group.append(group[0].again())  # "5 mm and 8 mm nodules"
                    self._give(group[-1], item, before=True)
                    continue
                for mention in group:
                    self._give(mention, item, before=True)

    def after(
        self, items: list[Item], start: int, stop: int, group: list[Mention], linked: list[list[Mention]]
    ) -> None:
        """Give mentions what follows their noun; predicates reach back along coordinated mentions.

        Args:
            group: the mentions of the noun that the items follow.
            linked: the groups that are coordinated with it, itself the last.
        """
        tail = _Tail(len(linked) > 1 and not any(mention.negated for mention in group))
        for index in range(start, stop):
            item = items[index]
            kind = item.kind
            following = items[index + 1] if index + 1 < stop else None
            if kind in ("comma", "and") and group and other_side(items, index, stop, group[0]):
                other = group[0].again()
                group.append(other)
                self.after(items, index + 1, stop, [other], [[other]])
                return
            if kind == "comma" and len(group) == 1 and group[0].places == [("bilateral", None, None)]:
                sides = each_side(items, index + 1, stop)
                if sides is not None:
                    self._split(group, sides)
                    self.after(items, items.index(sides[1][-1]) + 1, stop, group, [group])
                    return
            if kind in ("hypothetical", "history"):
                return
            if kind in _STATING:
                if not tail.passes(item, following):
                    for mention in self._targets(item, tail, group, linked):
                        self._give(mention, item, before=False, joined=tail.joined)
            elif kind == "year":
                if items[start].phrase.words[:1] in (("was",), ("were",)) and items[index - 1].kind != "verb":
                    for mention in group:
                        mention.dropped = mention.dropped or "historical"
            elif kind in _VERDICTS:
                last = stop == len(items)
                for mention in everyone(linked):
                    _judge(mention, item, last)
            else:
                tail.note(item, following)
        for mention in group:
            gone = mention.negated or mention.attrs.get("temporal_change") == "resolved"
            if gone and mention.dropped == "historical":  # "was present before and is not seen today"
                mention.dropped = None

    def _split(self, group: list[Mention], sides: list[list[Item]]) -> None:
        """Read a bilateral finding as two, each with what is said of its side."""
        first = group[0]
        second = first.again()
        second.attrs = dict(first.attrs)
        group.append(second)
        for mention, items in zip(group, sides, strict=True):
            mention.places = []
            for item in items:
                for name in item.attrs:
                    mention.attrs.pop(name, None)
                self._give(mention, item, before=False)

    def _targets(
        self, item: Item, tail: _Tail, group: list[Mention], linked: list[list[Mention]]
    ) -> list[Mention]:
        """Return the mentions that an item after a noun speaks of."""
        if item.kind == "size" or len(linked) == 1:
            return group
        if tail.finite or item.phrase.predicate:
            return [m for m in everyone(linked) if m in group or m.negated == group[0].negated]
        if item.kind == "place" and (tail.preposition or tail.alternatives):
            unsided = self.lexicon.unsided
            return [m for m in everyone(linked) if m in group or (not m.places and m.tag not in unsided)]
        return group

    def share_place(
        self,
        items: list[Item],
        previous: int,
        start: int,
        head: int,
        first: list[Mention],
        second: list[Mention],
    ) -> None:
        """Give alternatives one place: "left basilar atelectasis or scarring"."""
        kinds = {item.kind for item in items[previous + 1 : start]}
        if kinds.isdisjoint(("or", "versus", "slash")) or any(
            item.kind in ("det", "there") for item in items[start:head]
        ):
            return
        places = first[0].places
        for mention in second:
            if (
                places
                and not mention.places
                and mention.tag not in self.lexicon.unsided
                and not mention.normal
            ):
                mention.places = list(places)

    def _give(self, mention: Mention, item: Item, before: bool, joined: bool = False) -> None:
        """Let a mention have what an item states."""
        attrs = mention.attrs
        kind = item.kind
        if mention.normal:
            if kind == "place" and item.places and item.places[0][0] in ("left", "right"):
                mention.places = [(item.places[0][0], None, None)]
                mention.cover(item)
            return
        if kind == "place":
            add_places(mention, item.places, joined)
            mention.cover(item)
            return
        if kind == "site":
            self._locate(mention, item)
            return
        if kind in ("count", "number"):
            value = item.attrs["count"]
            if before and (mention.plural or value == 1):
                attrs.setdefault("count", value)
                mention.cover(item)
            return
        if not item.attrs:
            return
        if kind == "level" and "rib" in item.attrs.get("level", ""):
            self._refine(mention, "rib")
        if kind == "size" and mention.tag in self.lexicon.devices and "size_mm" in item.attrs:
            attrs.setdefault("distance_mm", item.attrs["size_mm"])
            mention.cover(item)
            return
        for name, value in item.attrs.items():
            if name == "certainty":
                if mention.certainty is None or not before or value == "cannot_exclude":
                    mention.certainty = value
            elif name == "morphology":
                known = attrs.setdefault("morphology", [])
                attrs["morphology"] = [*known, *(word for word in value if word not in known)]
            elif name == "asymmetry":
                attrs[name] = value
                if not mention.places:
                    mention.places = [("bilateral", None, None)]
                elif len(mention.places) == 1 and mention.places[0][0] == value:
                    mention.places = [("bilateral", *mention.places[0][1:])]  # "right greater than left"
            elif name in ("severity", "severity_min", "density") and mention.tag in self.lexicon.devices:
                continue
            elif name not in attrs:
                attrs[name] = value
        mention.cover(item)

    def _locate(self, mention: Mention, item: Item) -> None:
        site = item.phrase.place.get("anatomy")
        if site is not None and mention.site is None:
            mention.site = site
            self._refine(mention, site)

    def _refine(self, mention: Mention, site: str) -> None:
        """Let the organ say which finding a general word means."""
        if mention.item is not None and len(mention.item.phrase.words) == 1:
            tag = self.lexicon.refine.get((mention.item.phrase.words[0], site))
            if tag is not None:
                mention.find = (tag, *mention.find[1:])

    def orphan(self, items: list[Item], named: bool) -> Mention | None:
        """Read a clause without a finding: what it says of the finding before it, if it points back.

        Args:
            named: whether the same sentence names a finding before: "the effusion is small but increasing".
        """
        kinds = {item.kind for item in items}
        points = not kinds.isdisjoint(("pronoun", "largest")) or items[0].kind in ("verb", "size")
        if not points and named:
            tight = all(left.end == right.start for left, right in pairwise(items))
            governs = items[-1].phrase.words[-1:] in (("of",), ("in",))
            points = items[0].kind in _POINTING_BACK and tight and not governs
        if not points or not kinds.isdisjoint(("negation", "hypothetical", "history", "site")):
            return None
        orphan = Mention(items[0], ("", {}, False))
        self.after(items, 0, len(items), [orphan], [[orphan]])
        return orphan


class _Tail:
    """What has been passed among the words after a noun."""

    __slots__ = ("alternatives", "denied", "finite", "inside", "joined", "largest", "preposition")

    def __init__(self, alternatives: bool) -> None:
        self.alternatives = alternatives
        self.finite = False
        self.preposition = False
        self.inside = True
        self.largest = False
        self.denied = False
        self.joined = False

    def note(self, item: Item, following: Item | None) -> None:
        """Take note of a word that states nothing by itself."""
        kind = item.kind
        if kind == "verb":
            self.finite = True
        elif kind == "prep":
            self.preposition = True
            self.inside = item.phrase.words[-1] in _INSIDE
        elif kind == "with":
            self.preposition = True
        elif kind == "comma":
            self.preposition = False
            if following is not None and following.kind not in ("size", "verb"):
                self.largest = False
        elif kind in ("and", "or"):
            self.joined = True
        elif kind == "largest":
            self.largest = True
        elif kind == "negation":
            self.denied = True

    def passes(self, item: Item, following: Item | None) -> bool:
        """Whether an item that states something does not state it of the noun."""
        kind = item.kind
        if is_degree(item, following) or kind == "count" or (self.largest and kind != "size"):
            return True
        if kind == "site":
            return self.preposition and not self.inside
        if self.denied and kind == "attribute":
            self.denied = False
            return True
        return False


def _judge(mention: Mention, item: Item, last: bool) -> None:
    """Apply a verdict that follows its findings: "is not seen", "was seen on the prior study"."""
    if item.kind == "post_negation":
        mention.negated = True
        mention.cover(item)
    elif item.kind == "history_after":
        mention.dropped = "historical"
    elif last and item.attrs["certainty"] == "cannot_exclude":
        mention.certainty = "cannot_exclude"
        mention.cover(item)


def everyone(linked: list[list[Mention]]) -> list[Mention]:
    """Return the mentions of all groups."""
    return [mention for group in linked for mention in group]
