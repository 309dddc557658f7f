"""One sentence: which items belong to which finding, and what is said of each finding.

A sentence is cut into clauses at full breaks ("; but"). In a clause every finding is a mention; the items
between two mentions are divided: what can stand before a noun goes to the next mention, the rest to the
one before. Negation and hedges reach forward along coordinated mentions, predicates reach back along them.
"""

from __future__ import annotations

from typing import Any

from radgen.extract.lexicon import Lexicon
from radgen.extract.matching import Item
from radgen.extract.places import Place

#: Kinds of item that may stand before the noun they belong to.
_MODIFIERS = frozenset(("attribute", "place", "site", "size", "count", "level", "number", "ignore"))
_JOINS = frozenset(("and", "or", "slash", "versus", "comma"))
_SEPARATORS = frozenset((*_JOINS, "det", "ignore"))
#: Attributes of a listed finding that show that a list of denied findings has ended before it.
_AFFIRMING = frozenset(("severity", "temporal_change", "count", "count_category", "size_mm", "certainty"))
#: Prepositions that say that a finding is inside its place.
_INSIDE = frozenset(("in", "of", "within", "involving", "at", "throughout", "affecting", "from"))
_RESTRICTING = frozenset(("new", "severe", "increased"))


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
        "largest",
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
        self.largest = False
        self.plural = find[2]
        self.start = item.start if item else 0
        self.end = item.end if item else 0

    @property
    def tag(self) -> str:
        """Return the canonical finding."""
        return self.find[0]

    def cover(self, item: Item) -> None:
        """Extend the evidence to an item."""
        self.start = min(self.start, item.start)
        self.end = max(self.end, item.end)


class Reader:
    """Reads the items of one sentence into mentions."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon

    def read(self, items: list[Item]) -> tuple[list[Mention], list[Mention]]:
        """Return the mentions of a sentence, and what it says of something named before it."""
        mentions: list[Mention] = []
        orphans: list[Mention] = []
        first = 0
        for at in range(len(items) + 1):
            if at < len(items) and items[at].kind == "break" and _contrasts_adjectives(items, at):
                items[at].kind = "and"
            if at == len(items) or items[at].kind == "break":
                if at > first:
                    self._clause(items[first:at], mentions, orphans)
                first = at + 1
        return mentions, orphans

    # --- one clause ---

    def _clause(self, items: list[Item], mentions: list[Mention], orphans: list[Mention]) -> None:
        nouns = self._subjects(items)
        _hedge_next(items)
        heads = [
            index for index, item in enumerate(items) if item.kind == "find" or item.kind == "pronoun" or index in nouns
        ]
        heads = self._drop_repeats(items, heads, nouns)
        if not heads:
            orphan = self._orphan(items)
            if orphan is not None:
                if mentions:
                    _merge_orphan(mentions[-1], orphan)
                else:
                    orphans.append(orphan)
            return
        starts = [_first_start(items, heads[0])]
        for previous, head in zip(heads, heads[1:], strict=False):
            starts.append(_start(items, previous, head))
        groups: list[list[Mention]] = []
        state = _State()
        limited = any(item.kind == "limited" for item in items)
        for number, head in enumerate(heads):
            item = items[head]
            if head in nouns:
                group = [Mention(item, (tag, {}, False)) for tag in nouns[head][0]]
                for mention in group:
                    mention.normal = nouns[head][1]
                    mention.negated = nouns[head][1]
                    mention.attrs.update(nouns[head][2])
                    if item.places and item.places[0][0] in ("left", "right"):
                        mention.places = [(item.places[0][0], None, None)]
                    for used in nouns[head][3]:
                        mention.cover(used)
            elif item.kind == "pronoun":
                group = [Mention(item, ("", {}, False))]
            else:
                group = [Mention(item, find) for find in item.phrase.find]
            groups.append(group)
            bare = number > 0 and _is_bare(items, heads[number - 1], starts[number])
            self._scope(items, heads, starts, number, groups, state)
            linked = [group]
            if bare and number > 0 and not item.kind == "pronoun":
                state.linked.append(group)
                linked = state.linked
            else:
                state.linked = [group]
                linked = state.linked
            region = items[starts[number] : head]
            self._before(region, group, item)
            if bare and state.negation is None:
                self._share_place(items, heads[number - 1], starts[number], region, groups[number - 1], group)
            stop = starts[number + 1] if number + 1 < len(heads) else len(items)
            self._after(items, head + 1, stop, group, linked)
        for group in groups:
            for mention in group:
                if mention.tag:
                    if limited and mention.tag in self.lexicon.quality:
                        mention.dropped = "limited"
                    mentions.append(mention)
                elif mentions and not groups.index(group):
                    _merge_orphan(mentions[-1], mention)
                elif not groups.index(group):
                    orphans.append(mention)

    def _drop_repeats(self, items: list[Item], heads: list[int], nouns: dict[int, Any]) -> list[int]:
        """Drop pronouns that a finding in the same clause makes superfluous ("a nodule, which ... it")."""
        real = [head for head in heads if items[head].kind != "pronoun"]
        if not real:
            return heads
        return [head for head in heads if items[head].kind != "pronoun" or head < real[0]]

    def _subjects(self, items: list[Item]) -> dict[int, tuple[list[str], bool, dict[str, Any], list[Item]]]:
        """Pair subjects with what says that they are normal or abnormal; return index to reading."""
        subjects = [
            index
            for index, item in enumerate(items)
            if (item.kind == "subject" or item.phrase.subject and item.kind in ("site", "place") or item.kind == "place" and item.attrs.get("lung") and not _is_modifier(items, index))
            and not _in_phrase(items, index)
        ]
        judged: dict[int, tuple[list[str], bool, dict[str, Any], list[Item]]] = {}
        if subjects:
            marks = [
                index
                for index, item in enumerate(items)
                if item.kind == "normal" or item.phrase.abnormal and item.kind != "subject" and item.kind != "break"
            ]
            taken: set[int] = set()
            for mark in marks:
                self._pair(items, subjects, mark, judged, taken)
            self._spread(items, subjects, judged)
        for index, item in enumerate(items):
            if index in judged:
                continue
            if item.kind in ("subject", "not_normal", "abnormal"):
                item.kind = "site" if item.kind == "subject" else "ignore"
            elif item.kind == "normal":
                if item.phrase.place:
                    item.kind = "place"
                    item.places = [(item.phrase.place.get("laterality"), None, None)]
                else:
                    item.kind = "attribute" if item.attrs and "acuity" not in item.attrs else "ignore"
        return judged

    def _pair(
        self,
        items: list[Item],
        subjects: list[int],
        mark: int,
        judged: dict[int, tuple[list[str], bool, dict[str, Any], list[Item]]],
        taken: set[int],
    ) -> None:
        item = items[mark]
        candidates = []
        left = [index for index in subjects if index < mark and index not in judged]
        right = [index for index in subjects if index > mark and index not in judged]
        if left and _reaches_back(items, left[-1], mark):
            candidates.append(left[-1])
        if right and _reaches_on(items, mark, right[0]):
            candidates.append(right[0])
        for index in candidates:
            subject = items[index]
            tags = subject.phrase.subject or (self._lung_tags() if subject.attrs.get("lung") else [])
            if item.kind == "normal" and tags:
                judged[index] = (tags, True, dict(item.attrs), [item])
            else:
                names = {*subject.phrase.subject, *(name[3:] for name in subject.phrase.abnormal if name[:3] == "of:")}
                if subject.attrs.get("lung"):
                    names |= self._lung_subjects()
                both = sorted(item.phrase.abnormal & names)
                if not both:
                    continue
                judged[index] = (both[:1], False, {}, [item])
            item.kind = "verb"
            taken.add(mark)
            return

    def _lung_tags(self) -> list[str]:
        phrase = self.lexicon.phrases.get(("lungs",))
        return phrase.subject if phrase else []

    def _lung_subjects(self) -> set[str]:
        phrase = self.lexicon.phrases.get(("lungs",))
        return {name[3:] for name in phrase.abnormal if name[:3] == "of:"} if phrase else set()

    def _spread(
        self,
        items: list[Item],
        subjects: list[int],
        judged: dict[int, tuple[list[str], bool, dict[str, Any], list[Item]]],
    ) -> None:
        """Let "normal" reach subjects that are coordinated with one that has it."""
        for order in (list(reversed(subjects)), subjects):
            for near, far in zip(order, order[1:], strict=False):
                if near in judged and far not in judged and judged[near][1]:
                    low, high = min(near, far), max(near, far)
                    used = judged[near][3]
                    backwards = far < near
                    if backwards and used and used[0].start < items[near].start:
                        continue
                    if not backwards and used and used[0].start > items[near].start:
                        continue
                    between = items[low + 1 : high]
                    if all(i.kind in ("and", "or", "slash", "comma", "det", "place", "attribute", "ignore", "site") for i in between) and (
                        len(between) > 0 or items[low].end == items[high].start
                    ):
                        tags = items[far].phrase.subject or (self._lung_tags() if items[far].attrs.get("lung") else [])
                        if tags:
                            judged[far] = (tags, True, dict(judged[near][2]), used)

    # --- scope ---

    def _scope(
        self,
        items: list[Item],
        heads: list[int],
        starts: list[int],
        number: int,
        groups: list[list[Mention]],
        state: _State,
    ) -> None:
        """Decide whether a mention is denied, hedged or no current finding, from what stands before it."""
        group = groups[number]
        region = items[starts[number] : heads[number]]
        if number:
            between = items[heads[number - 1] + 1 : starts[number]]
            separators = _last_separators(between)
            finite = any(item.kind == "verb" or item.kind == "post_negation" or item.phrase.predicate for item in between)
            self._continue(items, heads, starts, number, region, separators, finite, state)
        for item in region:
            kind = item.kind
            if kind == "negation":
                state.negation = item
                state.certainty = None
            elif kind == "relation":
                level = item.attrs["certainty"]
                state.certainty = level
                if level == "cannot_exclude":
                    state.negation = None
                state.hedge = item
            elif kind == "history":
                state.dropped = "historical"
            elif kind == "hypothetical":
                state.dropped = "hypothetical"
            elif kind == "there" and state.negation is not None and item.start < state.negation.start:
                pass
        for mention in group:
            if mention.normal:
                continue
            if state.negation is not None:
                mention.negated = True
                mention.cover(state.negation)
            if state.certainty is not None:
                mention.certainty = state.certainty
                if state.hedge is not None:
                    mention.cover(state.hedge)
            if state.dropped and not (state.dropped == "historical" and mention.tag in self.lexicon.events):
                mention.dropped = state.dropped
        if number and not state.negation:
            kinds = _last_separators(items[heads[number - 1] + 1 : starts[number]])
            if kinds & {"or", "versus"}:
                level = state.certainty or "possible"
                previous = groups[number - 1]
                if not any(mention.normal or mention.negated for mention in previous):
                    for mention in [*previous, *group]:
                        if mention.certainty is None and mention.tag:
                            mention.certainty = level
                    state.certainty = level

    def _continue(
        self,
        items: list[Item],
        heads: list[int],
        starts: list[int],
        number: int,
        region: list[Item],
        separators: set[str],
        finite: bool,
        state: _State,
    ) -> None:
        """End the scopes of the mention before this one that do not reach it."""
        joined = not separators.isdisjoint(("or", "versus", "slash"))
        fresh = any(item.kind in ("there", "pronoun") for item in region) or "with" in separators
        relation = any(item.kind == "relation" for item in region)
        if state.negation is not None:
            ends = False
            if joined and not fresh:
                ends = False
            elif relation:
                ends = not any("suggest" in item.phrase.words or "indicate" in item.phrase.words for item in region)
            elif fresh or finite or not separators & _JOINS and separators:
                ends = True
            elif not self._closed(items, heads, starts, number):
                ends = _affirms(region, "and" in separators)
            if ends:
                state.negation = None
        if state.certainty is not None:
            bare = not any(item.kind in _MODIFIERS or item.kind == "det" for item in region)
            listed = "comma" in separators and (
                self._closed(items, heads, starts, number, ("or", "and", "versus"))
                or state.hedge is not None and not {"include", "includes"}.isdisjoint(state.hedge.phrase.words)
            )
            if fresh or finite or not (joined or listed or "and" in separators and bare or not separators):
                state.certainty = None
                state.hedge = None
        if state.dropped == "historical" and (fresh or finite or "comma" in separators):
            state.dropped = None

    def _closed(
        self,
        items: list[Item],
        heads: list[int],
        starts: list[int],
        number: int,
        joins: tuple[str, ...] = ("or",),
    ) -> bool:
        """Whether the list that this mention stands in is closed by "or" further on."""
        for later in range(number + 1, len(heads)):
            between = items[heads[later - 1] + 1 : starts[later]]
            if any(item.kind not in _SEPARATORS and item.kind not in ("place", "site", "level") for item in between):
                return False
            kinds = _last_separators(between)
            if not kinds.isdisjoint(joins):
                return True
            if any(item.kind in ("there", "negation", "verb") for item in items[starts[later] : heads[later]]):
                return False
        return False

    # --- attributes ---

    def _before(self, region: list[Item], group: list[Mention], head: Item) -> None:
        denied = False
        for position, item in enumerate(region):
            kind = item.kind
            if kind == "negation":
                denied = True
            if kind == "det" and item.phrase.words[0] in ("the", "this", "these", "that", "those", "its", "their"):
                near = all(later.kind in _MODIFIERS for later in region[position + 1 :])
                if near:
                    for mention in group:
                        mention.definite = True
            if kind in ("attribute", "size", "level", "count", "number", "place", "site"):
                following = region[position + 1] if position + 1 < len(region) else None
                if _is_degree(item, following):
                    continue
                if denied and "certainty" in item.attrs:
                    continue
                if kind == "size" and group[0].plural and "size_mm" in group[0].attrs and "size_mm" in item.attrs:
                    group.append(Mention(group[0].item, group[0].find))  # "5 mm and 8 mm nodules"
                    group[-1].negated = group[0].negated
                    self._give(group[-1], item, before=True, head=head)
                    continue
                for mention in group:
                    self._give(mention, item, before=True, head=head)

    def _after(
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
            if kind in ("comma", "and") and group and _other_side(items, index, stop, group[0]):
                other = Mention(group[0].item, group[0].find)
                other.negated = group[0].negated
                group.append(other)
                self._before(items[index + 1 : index + 2], [other], item)
                self._after(items, index + 1, stop, [other], [[other]])
                return
            if kind == "verb":
                finite = True
            elif kind == "prep":
                preposition = True
                inside = item.phrase.words[-1] in _INSIDE
            elif kind == "year":
                if index and items[index - 1].kind != "verb" and items[start].phrase.words[0] in ("was", "were"):
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
                for mention in _all(linked):
                    mention.negated = True
                    mention.cover(item)
            elif kind == "history_after":
                for mention in _all(linked):
                    mention.dropped = "historical"
            elif kind in ("hypothetical", "history"):
                return
            elif kind == "relation":
                if item.attrs["certainty"] == "cannot_exclude" and stop == len(items):
                    for mention in _all(linked):
                        mention.certainty = "cannot_exclude"
                        mention.cover(item)
            elif kind in ("attribute", "size", "level", "place", "site", "count"):
                if _is_degree(item, following):
                    continue
                if denied and kind == "attribute":
                    denied = False
                    continue
                if largest and kind != "size":
                    continue
                if kind == "count":
                    continue
                spread = finite or item.phrase.predicate
                targets = _all(linked) if spread else group
                if kind == "place" and (preposition or alternatives) and not spread:
                    targets = [
                        mention
                        for mention in _all(linked)
                        if mention in group or not mention.places and mention.tag not in self.lexicon.unsided
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

    def _share_place(
        self,
        items: list[Item],
        previous: int,
        start: int,
        region: list[Item],
        first: list[Mention],
        second: list[Mention],
    ) -> None:
        """Give alternatives one place: "left basilar atelectasis or scarring"."""
        kinds = {item.kind for item in items[previous + 1 : start]}
        if kinds.isdisjoint(("or", "versus", "slash")) or any(item.kind in ("det", "there") for item in region):
            return
        places = first[0].places
        for mention in second:
            if places and not mention.places and mention.tag not in self.lexicon.unsided and not mention.normal:
                mention.places = list(places)

    def _give(self, mention: Mention, item: Item, before: bool, head: Item | None = None, joined: bool = False) -> None:
        """Let a mention have what an item states."""
        attrs = mention.attrs
        kind = item.kind
        if mention.normal:
            if kind == "place" and item.places and item.places[0][0] in ("left", "right"):
                mention.places = [(item.places[0][0], None, None)]
                mention.cover(item)
            return
        if kind == "place":
            _add_places(mention, item.places, joined)
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

    def _orphan(self, items: list[Item]) -> Mention | None:
        """Read a clause without a finding: what it says of the finding before it, if it points back."""
        first = items[0].kind
        points = any(item.kind in ("pronoun", "largest") for item in items) or first == "verb" or first == "size"
        if not points or any(item.kind in ("negation", "hypothetical", "history", "site") for item in items):
            return None
        orphan = Mention(items[0], ("", {}, False))
        self._after(items, 0, len(items), [orphan], [[orphan]])
        return orphan


class _State:
    """The scopes that are open while the mentions of a clause are read."""

    __slots__ = ("certainty", "dropped", "hedge", "linked", "negation")

    def __init__(self) -> None:
        self.negation: Item | None = None
        self.certainty: str | None = None
        self.hedge: Item | None = None
        self.dropped: str | None = None
        self.linked: list[list[Mention]] = []


def _other_side(items: list[Item], index: int, stop: int, mention: Mention) -> bool:
    """Whether the same finding on the other side follows: "the left effusion is small, the right is large"."""
    at = index + 1
    while at < stop and items[at].kind in ("and", "det", "attribute", "size") and not items[at].phrase.predicate:
        at += 1
    if at >= stop or items[at].kind != "place" or len(items[at].places) != 1 or len(mention.places) != 1:
        return False
    side, lobe, zone = items[at].places[0]
    if lobe or zone or {side, mention.places[0][0]} != {"left", "right"}:
        return False
    return at + 1 == stop or items[at + 1].kind == "verb" or items[at + 1].phrase.predicate


def _hedge_next(items: list[Item]) -> None:
    """Read "is likely" before a noun as "likely represents"."""
    for item, following in zip(items, items[1:], strict=False):
        if item.kind == "attribute" and "certainty" in item.attrs and item.phrase.words[0] in ("is", "are"):
            if following.start == item.end and following.kind in ("find", "det", "attribute", "place", "size"):
                item.kind = "relation"


def _contrasts_adjectives(items: list[Item], at: int) -> bool:
    """Whether "but" stands between two adjectives of one noun: "small but increasing effusion"."""
    if not 0 < at < len(items) - 1 or items[at].phrase.words[0] not in ("but", "though", "although"):
        return False
    before, after = items[at - 1], items[at + 1]
    if before.kind != "attribute" or after.kind != "attribute" or after.phrase.predicate:
        return False
    return before.end == items[at].start and after.start == items[at].end


def _all(linked: list[list[Mention]]) -> list[Mention]:
    return [mention for group in linked for mention in group]


def _is_degree(item: Item, following: Item | None) -> bool:
    """Whether a degree word grades the next word and not the finding: "slightly increased"."""
    if "severity" not in item.attrs or following is None or following.start != item.end:
        return False
    if following.kind != "attribute" or not following.attrs:
        return False
    return item.phrase.words[-1].endswith("ly") and "severity" not in following.attrs


def _add_places(mention: Mention, places: list[Place], joined: bool) -> None:
    """Combine what two places say: "left" and "lower lobe" are one, two lobes are two."""
    if not places:
        return
    if not mention.places:
        mention.places = list(places)
        return
    if len(places) == 1 and len(mention.places) == 1:
        old, new = mention.places[0], places[0]
        if all(a is None or b is None or a == b for a, b in zip(old, new, strict=True)):
            if not (old[1] and new[2] or old[2] and new[1]) or joined is False:
                mention.places = [(old[0] or new[0], old[1] or new[1], old[2] or new[2])]
                return
    if joined:
        mention.places += [place for place in places if place not in mention.places]


def _merge_orphan(mention: Mention, orphan: Mention) -> None:
    """Give a finding what a later clause says of "it"."""
    for name, value in orphan.attrs.items():
        mention.attrs.setdefault(name, value)
    if orphan.places:
        _add_places(mention, orphan.places, False)
    if orphan.certainty and mention.certainty is None:
        mention.certainty = orphan.certainty
    if orphan.negated:
        mention.negated = True
    if orphan.item is not None:
        mention.start = min(mention.start, orphan.start)
        mention.end = max(mention.end, orphan.end)


def _last_separators(between: list[Item]) -> set[str]:
    """Return the kinds of the separators that stand last before a mention's own words."""
    kinds: set[str] = set()
    for item in reversed(between):
        if item.kind in _JOINS or item.kind == "with":
            kinds.add(item.kind)
        elif item.kind not in ("det", "ignore"):
            break
    return kinds


def _is_bare(items: list[Item], previous: int, start: int) -> bool:
    return all(item.kind in _SEPARATORS for item in items[previous + 1 : start]) and start > previous + 1


def _affirms(region: list[Item], after_and: bool) -> bool:
    """Whether the words of a listed finding show that it is there: "No pneumothorax, small left effusion"."""
    for item in region:
        if item.kind == "place" and not after_and and item.places:
            return True
        if item.kind == "size" or item.kind == "det" and item.phrase.words[0] in ("a", "an", "the"):
            return True
        if item.kind == "attribute" and any(
            name in _AFFIRMING and value not in _RESTRICTING for name, value in item.attrs.items()
        ):
            return True
        if item.kind in ("relation", "count", "number"):
            return True
    return False


def _in_phrase(items: list[Item], index: int) -> bool:
    """Whether a subject is only the place of something else: "in the lungs", "of the aorta"."""
    at = index - 1
    while at >= 0 and items[at].kind in ("det", "place", "attribute", "site", "ignore"):
        if items[at].end != items[at + 1].start:
            return False
        at -= 1
    return at >= 0 and items[at].kind == "prep" and items[at].end == items[at + 1].start


def _is_modifier(items: list[Item], index: int) -> bool:
    """Whether a place stands before a noun: "the right lung nodule"."""
    if index + 1 >= len(items) or items[index + 1].start != items[index].end:
        return False
    return items[index + 1].kind in ("find", *_MODIFIERS)


def _reaches_back(items: list[Item], subject: int, mark: int) -> bool:
    """Whether "normal" is said of a subject before it."""
    for item in items[subject + 1 : mark]:
        if item.kind in ("find", "with", "there", "negation", "pronoun", "relation", "break", "subject"):
            return False
        if item.kind == "comma" and items[mark].kind != "normal":
            return False
    between = items[subject + 1 : mark]
    if items[mark].kind != "normal" and not between and items[mark].start != items[subject].end:
        return False
    commas = [item for item in between if item.kind == "comma"]
    if commas and mark + 1 < len(items) and items[mark + 1].kind == "subject":
        return False
    return True


def _reaches_on(items: list[Item], mark: int, subject: int) -> bool:
    """Whether "normal" stands before its subject: "normal heart size"."""
    between = items[mark + 1 : subject]
    return all(item.kind in ("attribute", "det", "place", "ignore", "site", "and") for item in between) and (
        items[subject].start - items[mark].end <= 5
    )


def _start(items: list[Item], previous: int, head: int) -> int:
    """Return where the words that belong to the mention at ``head`` begin, after the mention before it."""
    denied = _denied_from(items, previous, head)
    if denied is not None:
        return denied
    start = head
    index = head - 1
    fronted = False
    determined = False
    while index > previous:
        item = items[index]
        kind = item.kind
        if kind in _MODIFIERS:
            if (item.phrase.predicate and not item.phrase.before) or determined and not fronted and not item.phrase.before:
                break
            if kind == "size" and _is_trailing(items, index):
                break
            start = index
        elif kind == "det":
            if items[index - 1].kind == "prep" and index - 1 > previous and not fronted:
                return _after_phrase(items, index, head)
            determined = True
            start = index
        elif kind in ("negation", "history", "hypothetical"):
            return index
        elif kind == "relation":
            start = index
            if index - 1 > previous and items[index - 1].kind in ("negation", "hypothetical"):
                return index - 1
            return index
        elif kind == "there":
            start = index
            fronted = True
        elif kind == "prep":
            if not fronted:
                return _after_phrase(items, index, head)
            start = index
        elif kind == "comma":
            if not _adjectival(items, index, previous):
                break
        elif kind in ("and", "or", "slash"):
            if not _adjectival(items, index, previous):
                break
        elif kind == "verb" and fronted is False and index == previous + 1:
            break
        else:
            break
        index -= 1
    return start


def _first_start(items: list[Item], head: int) -> int:
    """Return where the words of the first mention begin: after a noun outside the vocabulary and its place.

    "increased lucencies in both apices along with scarring": the apices are not those of the scarring.
    """
    for index in range(head - 1, 1, -1):
        if items[index].kind in ("and", "with"):
            for at in range(index - 1, 0, -1):
                if items[at].kind == "prep" and items[at].start > items[at - 1].end:
                    if any(item.kind == "place" for item in items[at:index]) and items[at - 1].kind != "negation":
                        return index + 1
    return 0


def _denied_from(items: list[Item], previous: int, head: int) -> int | None:
    """Return the place of a negation that reaches a mention over words that are no findings, if there is one.

    "no failure or pneumonia", "without areas of consolidation", "no findings to suggest edema".
    """
    reach = ("there", "prep", "relation", "det", *_MODIFIERS, *_JOINS)
    at = head - 1
    while at > previous and items[at].kind in reach:
        if items[at].kind == "attribute" and items[at].phrase.predicate:
            return None
        at -= 1
    if at <= previous or items[at].kind != "negation":
        return None
    cut = head
    kinds: set[str] = set()
    for index in range(head - 1, at, -1):
        if items[index].kind in _JOINS:
            kinds.add(items[index].kind)
            cut = min(cut, index + 1) if not kinds - {items[index].kind} else cut
    if kinds and "or" not in kinds and _affirms(items[cut:head], "and" in kinds):
        return None
    if kinds and any(item.kind == "there" for item in items[at + 1 : head]) and items[head - 1].kind == "there":
        return None
    return at


def _is_trailing(items: list[Item], index: int) -> bool:
    """Whether a measurement follows its finding ("measuring 5 mm"), so that it cannot open the next one."""
    return items[index - 1].kind in ("verb", "largest") and items[index - 1].phrase.words[-1][:4] in ("meas", "larg")


def _after_phrase(items: list[Item], index: int, head: int) -> int:
    """Return where a prepositional phrase ends; its place belongs to the mention before."""
    at = index + 1
    while at < head and items[at].kind in ("place", "site", "det", "level", "ignore"):
        at += 1
    return at


def _adjectival(items: list[Item], index: int, previous: int) -> bool:
    """Whether a comma or "and" joins two adjectives of one noun: "a new, small effusion"."""
    if index + 1 >= len(items) or items[index + 1].kind not in ("attribute", "size"):
        return False
    at = index - 1
    if at <= previous or items[at].kind not in ("attribute", "size", "count", "number") or items[at].phrase.predicate:
        return False
    while at > previous and items[at].kind in ("attribute", "size", "count", "number"):
        at -= 1
    return at > previous and items[at].kind in ("det", "negation", "and", "with", "there", "or")
