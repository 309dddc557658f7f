"""What the words around a finding state of it: attributes, places, sizes, predicates."""

from __future__ import annotations

from radgen.extract.lexicon import Lexicon
from radgen.extract.matching import Item
from radgen.extract.mentions import Mention, add_places
from radgen.extract.regions import MODIFIERS, is_degree, other_side, two_sides

#: Prepositions that say that a finding is inside its place.
_INSIDE = frozenset(("in", "of", "within", "involving", "at", "throughout", "affecting", "from"))
#: What the first of two coordinated findings shares with the second: "unchanged right and left effusions".
_SHARED = ("temporal_change", "acuity")
_POINTING = frozenset(("the", "this", "these", "that", "those", "its", "their"))


class Binder:
    """Gives mentions what the items before and after them state."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon

    def before(self, region: list[Item], group: list[Mention]) -> None:
        """Give mentions what stands before their noun."""
        cut = two_sides(region) if len(region) > 2 and len(group) == 1 else None
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
        for position, item in enumerate(region):
            kind = item.kind
            if kind == "negation":
                denied = True
            if kind == "det" and item.phrase.words[0] in _POINTING:
                near = all(later.kind in MODIFIERS for later in region[position + 1 :])
                if near:
                    for mention in group:
                        mention.definite = True
            if kind in ("attribute", "size", "level", "count", "number", "place", "site"):
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
        finite = False
        preposition = False
        inside = True
        largest = False
        denied = False
        joined = False
        alternatives = len(linked) > 1 and not any(mention.negated for mention in group)
        for index in range(start, stop):
            item = items[index]
            kind = item.kind
            following = items[index + 1] if index + 1 < stop else None
            if kind in ("comma", "and") and group and other_side(items, index, stop, group[0]):
                other = group[0].again()
                group.append(other)
                self.after(items, index + 1, stop, [other], [[other]])
                return
            if kind == "verb":
                finite = True
            elif kind == "prep":
                preposition = True
                inside = item.phrase.words[-1] in _INSIDE
            elif kind == "year":
                if (
                    index
                    and items[index - 1].kind != "verb"
                    and items[start].phrase.words[0] in ("was", "were")
                ):
                    for mention in group:
                        mention.dropped = mention.dropped or "historical"
            elif kind == "site" and preposition and not inside:
                continue
            elif kind == "largest":
                largest = True
            elif kind == "comma":
                preposition = False
                if largest and following is not None and following.kind not in ("size", "verb"):
                    largest = False
            elif kind == "with":
                preposition = True
            elif kind in ("and", "or"):
                joined = True
            elif kind == "negation":
                denied = True
            elif kind == "post_negation":
                for mention in everyone(linked):
                    mention.negated = True
                    mention.cover(item)
            elif kind == "history_after":
                for mention in everyone(linked):
                    mention.dropped = "historical"
            elif kind in ("hypothetical", "history"):
                return
            elif kind == "relation":
                if item.attrs["certainty"] == "cannot_exclude" and stop == len(items):
                    for mention in everyone(linked):
                        mention.certainty = "cannot_exclude"
                        mention.cover(item)
            elif kind in ("attribute", "size", "level", "place", "site", "count"):
                if is_degree(item, following):
                    continue
                if denied and kind == "attribute":
                    denied = False
                    continue
                if largest and kind != "size":
                    continue
                if kind == "count":
                    continue
                spread = finite or item.phrase.predicate
                targets = everyone(linked) if spread else group
                if kind == "place" and (preposition or alternatives) and not spread:
                    targets = [
                        mention
                        for mention in everyone(linked)
                        if mention in group
                        or (not mention.places and mention.tag not in self.lexicon.unsided)
                    ]
                if kind == "size":
                    targets = group
                for mention in targets:
                    if spread and mention not in group and mention.negated != group[0].negated:
                        continue
                    self._give(mention, item, before=False, joined=joined)
        if any(mention.dropped == "historical" for mention in group):
            for mention in group:
                if mention.negated or mention.attrs.get("temporal_change") == "resolved":
                    mention.dropped = None

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
                    mention.places = [
                        ("bilateral", *mention.places[0][1:])
                    ]  # "right effusion greater than left"
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

    def orphan(self, items: list[Item]) -> Mention | None:
        """Read a clause without a finding: what it says of the finding before it, if it points back."""
        first = items[0].kind
        points = (
            any(item.kind in ("pronoun", "largest") for item in items) or first == "verb" or first == "size"
        )
        if not points or any(item.kind in ("negation", "hypothetical", "history", "site") for item in items):
            return None
        orphan = Mention(items[0], ("", {}, False))
        self.after(items, 0, len(items), [orphan], [[orphan]])
        return orphan


def everyone(linked: list[list[Mention]]) -> list[Mention]:
    return [mention for group in linked for mention in group]
