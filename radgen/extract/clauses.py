"""One sentence: which items belong to which finding, and what is said of each finding.

A sentence is cut into clauses at full breaks ("; but"). In a clause every finding is a mention; the items
between two mentions are divided: what can stand before a noun goes to the next mention, the rest to the
one before. Negation and hedges reach forward along coordinated mentions, predicates reach back along them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from radgen.extract.binding import Binder
from radgen.extract.lexicon import Lexicon
from radgen.extract.matching import Item
from radgen.extract.mentions import Mention, merge_orphan
from radgen.extract.regions import (
    JOINS,
    MODIFIERS,
    SEPARATORS,
    affirms,
    contrasts_adjectives,
    drop_repeats,
    first_start,
    hedge_next,
    is_bare,
    last_separators,
    start_of,
)
from radgen.extract.subjects import JUDGED, Judgement, Subjects

_HEADS = frozenset(("find", "pronoun"))
_FINITE = frozenset(("verb", "post_negation"))
_ALTERNATIVES = frozenset(("or", "versus"))
#: A denied sign denies what it would suggest; a list of what a differential includes is one hedge.
_SUGGESTING = frozenset(("suggest", "indicate", "support"))
_INCLUDING = frozenset(("include", "includes"))
#: A clause with more items is read in pieces, so that the time stays linear in its length.
_LONGEST = 200


class _State:
    """The scopes that are open while the mentions of a clause are read."""

    __slots__ = ("certainty", "dropped", "hedge", "linked", "negation")

    def __init__(self) -> None:
        self.negation: Item | None = None
        self.certainty: str | None = None
        self.hedge: Item | None = None
        self.dropped: str | None = None
        self.linked: list[list[Mention]] = []

    def open(self) -> bool:
        """Whether any scope may reach the next mention."""
        return self.negation is not None or self.certainty is not None or self.dropped is not None


class Reader:
    """Reads the items of one sentence into mentions."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon
        self.subjects = Subjects(lexicon)
        self.binder = Binder(lexicon)

    def read(self, items: list[Item]) -> tuple[list[Mention], list[Mention]]:
        """Return the mentions of a sentence, and what it says of something named before it."""
        mentions: list[Mention] = []
        orphans: list[Mention] = []
        kinds = {item.kind for item in items}
        if "break" not in kinds and len(items) < _LONGEST:
            self._clause(items, kinds, mentions, orphans)
            return mentions, orphans
        for clause in _clauses(items):
            self._clause(clause, {item.kind for item in clause}, mentions, orphans)
        return mentions, orphans

    def _clause(
        self, items: list[Item], kinds: set[str], mentions: list[Mention], orphans: list[Mention]
    ) -> None:
        nouns = {} if kinds.isdisjoint(JUDGED) else self.subjects.read(items)
        if "verdict" in kinds or "post_negation" in kinds:
            hedge_next(items)
        heads = [index for index, item in enumerate(items) if item.kind in _HEADS or index in nouns]
        if "pronoun" in kinds:
            heads = drop_repeats(items, heads)
        if not heads:
            orphan = self.binder.orphan(items, bool(mentions))
            if orphan is not None and mentions:
                merge_orphan(mentions[-1], orphan)
            elif orphan is not None:
                orphans.append(orphan)
            return
        starts = [0 if kinds.isdisjoint(("and", "with")) else first_start(items, heads[0])]
        for previous, head in pairwise(heads):
            starts.append(start_of(items, previous, head))
        listed = not kinds.isdisjoint(("and", "slash", "comma"))
        groups = self._groups(items, heads, starts, nouns, listed)
        for mention in groups[0]:
            if not mention.tag:  # "it has increased": said of what was named before
                if mentions:
                    merge_orphan(mentions[-1], mention)
                else:
                    orphans.append(mention)
        limited = "limited" in kinds
        for group in groups:
            for mention in group:
                if mention.tag:
                    if limited and mention.tag in self.lexicon.quality:
                        mention.dropped = "limited"
                    mentions.append(mention)

    def _groups(
        self,
        items: list[Item],
        heads: list[int],
        starts: list[int],
        nouns: dict[int, Judgement],
        listed: bool,
    ) -> list[list[Mention]]:
        """Return the mentions of every head with their scopes and attributes."""
        groups: list[list[Mention]] = []
        state = _State()
        for number, head in enumerate(heads):
            item = items[head]
            if head in nouns:
                group = _judged(item, nouns[head])
            elif item.kind == "pronoun":
                group = [Mention(item, ("", {}, False))]
            else:
                group = [Mention(item, find) for find in item.phrase.find]
            groups.append(group)
            first = starts[number]
            bare = number > 0 and is_bare(items, heads[number - 1], first)
            if number or first < head:
                self._scope(items, heads, starts, number, groups, state)
            if bare and item.kind != "pronoun":
                state.linked.append(group)
            else:
                state.linked = [group]
            if first < head:
                self.binder.before(items[first:head], group, listed)
            if bare and state.negation is None:
                self.binder.share_place(items, heads[number - 1], first, head, groups[number - 1], group)
            stop = starts[number + 1] if number + 1 < len(heads) else len(items)
            if head + 1 < stop:
                self.binder.after(items, head + 1, stop, group, state.linked)
        return groups

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
        first, head = starts[number], heads[number]
        group = groups[number]
        separators: set[str] = set()
        if number:
            between = items[heads[number - 1] + 1 : first]
            separators = last_separators(between)
            if state.open():
                self._continue(items, heads, starts, number, between, separators, state)
        for index in range(first, head):
            item = items[index]
            kind = item.kind
            if kind == "negation":
                state.negation = item
                state.certainty = None
            elif kind == "relation":
                level = item.attrs["certainty"]
                if level == "cannot_exclude":
                    state.negation = None
                if state.negation is None:  # "no findings to suggest pneumonia" is no hedge
                    state.certainty, state.hedge = level, item
            elif kind == "history":
                state.dropped = "historical"
            elif kind == "hypothetical":
                state.dropped = "hypothetical"
        if state.open():
            self._apply(group, state)
        if state.negation is None and not separators.isdisjoint(_ALTERNATIVES):
            _alternatives(groups[number - 1], group, state)

    def _apply(self, group: list[Mention], state: _State) -> None:
        """Let a mention have the scopes that are open."""
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

    def _continue(
        self,
        items: list[Item],
        heads: list[int],
        starts: list[int],
        number: int,
        between: list[Item],
        separators: set[str],
        state: _State,
    ) -> None:
        """End the scopes of the mention before this one that do not reach it."""
        region = items[starts[number] : heads[number]]
        kinds = {item.kind for item in region}
        finite = any(item.kind in _FINITE or item.phrase.predicate for item in between)
        joined = not separators.isdisjoint(("or", "versus", "slash"))
        fresh = "there" in kinds or "pronoun" in kinds or "with" in separators
        if state.negation is not None:
            if joined and not fresh:
                ends = False
            elif "relation" in kinds:
                ends = not any(not _SUGGESTING.isdisjoint(item.phrase.words) for item in region)
            elif fresh or finite or (separators and separators.isdisjoint(JOINS)):
                ends = True
            else:
                ends = not self._closed(items, heads, starts, number) and affirms(region, "and" in separators)
            if ends:
                state.negation = None
        if state.certainty is not None:
            bare = kinds.isdisjoint(MODIFIERS) and "det" not in kinds
            hedge = state.hedge.phrase.words if state.hedge is not None else ()
            listed = "comma" in separators and (
                not _INCLUDING.isdisjoint(hedge)
                or self._closed(items, heads, starts, number, ("or", "and", "versus"))
            )
            reaches = joined or listed or ("and" in separators and bare) or not separators
            if fresh or finite or not reaches:
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
            if any(
                item.kind not in SEPARATORS and item.kind not in ("place", "site", "level")
                for item in between
            ):
                return False
            kinds = last_separators(between)
            if not kinds.isdisjoint(joins):
                return True
            if any(
                item.kind in ("there", "negation", "verb") for item in items[starts[later] : heads[later]]
            ):
                return False
        return False


def _clauses(items: list[Item]) -> Iterator[list[Item]]:
    """Yield the items between full breaks; a very long clause in pieces, cut at commas where it has any."""
    first = 0
    for at, item in enumerate(items):
        if item.kind == "break":
            if contrasts_adjectives(items, at):
                item.kind = "and"
                continue
            if at > first:
                yield items[first:at]
            first = at + 1
        elif at - first >= _LONGEST and (item.kind in JOINS or at - first >= 2 * _LONGEST):
            yield items[first:at]
            first = at
    if first < len(items):
        yield items[first:]


def _alternatives(first: list[Mention], second: list[Mention], state: _State) -> None:
    """Hedge both of two alternatives: "atelectasis versus pneumonia"."""
    if any(mention.normal or mention.negated for mention in first):
        return
    level = state.certainty or "possible"
    for mention in (*first, *second):
        if mention.certainty is None and mention.tag:
            mention.certainty = level
    state.certainty = level


def _judged(item: Item, judgement: Judgement) -> list[Mention]:
    """Return the mentions of a subject that is said to be normal or not."""
    tags, normal, attrs, used = judgement
    group = []
    for tag in tags:
        mention = Mention(item, (tag, {}, False))
        mention.normal = mention.negated = normal
        mention.attrs.update(attrs)
        if item.places and item.places[0][0] in ("left", "right"):
            mention.places = [(item.places[0][0], None, None)]
        for mark in used:
            mention.cover(mark)
        group.append(mention)
    return group
