"""Which words of a clause belong to which of two neighbouring findings."""

from __future__ import annotations

from itertools import pairwise

from radgen.extract.matching import Item
from radgen.extract.mentions import Mention

#: Kinds of item that may stand before the noun they belong to.
MODIFIERS = frozenset(("attribute", "place", "site", "size", "count", "level", "number", "ignore"))
JOINS = frozenset(("and", "or", "slash", "versus", "comma"))
SEPARATORS = frozenset((*JOINS, "det", "ignore"))
#: Attributes of a listed finding that show that a list of denied findings has ended before it.
_AFFIRMING = frozenset(("severity", "temporal_change", "count", "count_category", "size_mm", "certainty"))
_RESTRICTING = frozenset(("new", "severe", "increased"))
_PRENOMINAL = frozenset(("attribute", "size", "count", "number"))
_NOMINAL = frozenset(("find", "det", "attribute", "place", "size"))
_AHEAD_OF_SIDE = frozenset(("and", "det", "attribute", "size"))
_BESIDE = frozenset(("place", "site", "det", "level", "ignore"))


def start_of(items: list[Item], previous: int, head: int) -> int:
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
        if kind in MODIFIERS:
            if (item.phrase.predicate and not item.phrase.before) or (
                determined and not fronted and not item.phrase.before
            ):
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
            if not fronted and not _governed(items, index, previous):
                return _after_phrase(items, index, head)
            start = index
        elif kind not in ("comma", "and", "or", "slash") or not _adjectival(items, index, previous):
            break
        index -= 1
    return start


def _governed(items: list[Item], index: int, previous: int) -> bool:
    """Whether "of" hangs on a noun outside the vocabulary that governs the next one: "a combination of"."""
    if items[index].phrase.words != ("of",) or index - 1 <= previous:
        return False
    return items[index - 1].end < items[index].start


def _is_trailing(items: list[Item], index: int) -> bool:
    """Whether a measurement follows its finding ("measuring 5 mm"), so that it cannot open the next one."""
    return items[index - 1].kind in ("verb", "largest") and items[index - 1].phrase.words[-1][:4] in (
        "meas",
        "larg",
    )


def _after_phrase(items: list[Item], index: int, head: int) -> int:
    """Return where a prepositional phrase ends; its place belongs to the mention before."""
    at = index + 1
    while at < head and items[at].kind in _BESIDE:
        at += 1
    return at


def _adjectival(items: list[Item], index: int, previous: int) -> bool:
    """Whether a comma or "and" joins two adjectives of one noun: "a new, small effusion"."""
    if index + 1 >= len(items) or items[index + 1].kind not in ("attribute", "size"):
        return False
    at = index - 1
    if at <= previous or items[at].kind not in _PRENOMINAL or items[at].phrase.predicate:
        return False
    while at > previous and items[at].kind in _PRENOMINAL:
        at -= 1
    return at > previous and items[at].kind in ("det", "negation", "and", "with", "there", "or")


def first_start(items: list[Item], head: int) -> int:
    """Return where the words of the first mention begin: after a noun outside the vocabulary and its place.

    "increased lucencies in both apices along with scarring": the apices are not those of the scarring;
    "stable appearance of the chest with no effusion": nor is the effusion stable.
    """
    for index in range(head - 1, 0, -1):
        kind = items[index].kind
        before = items[index - 1]
        if kind == "with" and (
            items[index].start > before.end or (before.kind == "site" and before.phrase.subject)
        ):
            return index + 1
        if kind in ("and", "with") and _hangs_on_unknown(items, index):
            return index + 1
    return 0


def _hangs_on_unknown(items: list[Item], index: int) -> bool:
    """Whether a place before ``index`` belongs to a noun that the vocabulary does not have."""
    for at in range(index - 1, 0, -1):
        if items[at].kind == "prep" and items[at].start > items[at - 1].end:
            place = any(item.kind == "place" for item in items[at:index])
            if place and items[at - 1].kind != "negation":
                return True
    return False


def _denied_from(items: list[Item], previous: int, head: int) -> int | None:
    """Return the place of a negation that reaches a mention over words that are no findings, if there is one.

    "no failure or pneumonia", "without areas of consolidation", "no findings to suggest edema".
    """
    reach = ("there", "prep", "relation", "det", *MODIFIERS, *JOINS)
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
        if items[index].kind in JOINS:
            kinds.add(items[index].kind)
            cut = min(cut, index + 1) if not kinds - {items[index].kind} else cut
    if kinds and "or" not in kinds and affirms(items[cut:head], "and" in kinds):
        return None
    return None if kinds and items[head - 1].kind == "there" else at


def last_separators(between: list[Item]) -> set[str]:
    """Return the kinds of the separators that stand last before a mention's own words."""
    kinds: set[str] = set()
    for item in reversed(between):
        if item.kind in JOINS or item.kind == "with":
            kinds.add(item.kind)
        elif item.kind not in ("det", "ignore"):
            break
    return kinds


def is_bare(items: list[Item], previous: int, start: int) -> bool:
    """Whether nothing but separators stands between two mentions."""
    return all(item.kind in SEPARATORS for item in items[previous + 1 : start]) and start > previous + 1


def affirms(region: list[Item], after_and: bool) -> bool:
    """Whether the words of a listed finding show that it is there: "No pneumothorax, small left effusion"."""
    for item in region:
        if item.kind == "place" and not after_and and item.places:
            return True
        if item.kind == "size" or (item.kind == "det" and item.phrase.words[0] in ("a", "an", "the")):
            return True
        if item.kind == "attribute" and any(
            name in _AFFIRMING and value not in _RESTRICTING for name, value in item.attrs.items()
        ):
            return True
        if item.kind in ("relation", "count", "number"):
            return True
    return False


def other_side(items: list[Item], index: int, stop: int, mention: Mention) -> bool:
    """Whether the same finding on the other side follows: "the left effusion is small, the right large"."""
    if len(mention.places) != 1:
        return False
    at = index + 1
    while at < stop and items[at].kind in _AHEAD_OF_SIDE and not items[at].phrase.predicate:
        at += 1
    if at >= stop or items[at].kind != "place" or len(items[at].places) != 1:
        return False
    side, lobe, zone = items[at].places[0]
    if lobe or zone or {side, mention.places[0][0]} != {"left", "right"}:
        return False
    return at + 1 == stop or items[at + 1].kind == "verb" or items[at + 1].phrase.predicate


def each_side(items: list[Item], start: int, stop: int) -> list[list[Item]] | None:
    """Return what is said of each side of a finding on both: ", small on the left, moderate on the right"."""
    parts: list[list[Item]] = [[]]
    for item in items[start:stop]:
        if item.kind in ("comma", "and"):
            parts.append([])
        elif item.kind in ("place", "attribute"):
            parts[-1].append(item)
        elif item.kind not in ("det", "verb", "prep", "ignore"):
            break
        if len(parts) > 2 and parts[-1]:
            break
    parts = [part for part in parts if part][:2]
    sides = set()
    for part in parts:
        places = [item for item in part if item.kind == "place" and len(item.places) == 1]
        if len(places) != 1 or len(part) < 2 or any(places[0].places[0][1:]):
            return None
        sides.add(places[0].places[0][0])
    return parts if sides == {"left", "right"} else None


def two_sides(region: list[Item]) -> int | None:
    """Return where the second of two findings begins: "moderate right and | small left effusions"."""
    places = [index for index, item in enumerate(region) if item.kind == "place" and len(item.places) == 1]
    for first, second in pairwise(places):
        if {region[first].places[0][0], region[second].places[0][0]} != {"left", "right"}:
            continue
        for index in range(first + 1, second):
            if region[index].kind in ("and", "slash", "comma"):
                return index + 1
    return None


def hedge_next(items: list[Item]) -> None:
    """Read "is likely" before a noun as "likely represents", and "absent" before one as a denial."""
    for index, item in enumerate(items):
        if item.kind not in ("verdict", "post_negation"):
            continue
        following = items[index + 1] if index + 1 < len(items) else None
        ahead = following is not None and following.start == item.end and following.kind in _NOMINAL
        if item.kind == "verdict":
            item.kind = "relation" if ahead else "attribute"
        elif ahead and item.phrase.words == ("absent",):
            item.kind = "negation"


def contrasts_adjectives(items: list[Item], at: int) -> bool:
    """Whether "but" stands between two adjectives of one noun: "small but increasing effusion"."""
    if not 0 < at < len(items) - 1 or items[at].phrase.words[0] not in ("but", "though", "although"):
        return False
    before, after = items[at - 1], items[at + 1]
    if before.kind != "attribute" or after.kind != "attribute" or after.phrase.predicate:
        return False
    return before.end == items[at].start and after.start == items[at].end


def is_degree(item: Item, following: Item | None) -> bool:
    """Whether a degree word grades the next word and not the finding: "slightly increased"."""
    if "severity" not in item.attrs or following is None or following.start != item.end:
        return False
    if following.kind != "attribute" or not following.attrs:
        return False
    return item.phrase.words[-1].endswith("ly") and "severity" not in following.attrs


def drop_repeats(items: list[Item], heads: list[int]) -> list[int]:
    """Drop pronouns that a finding before them makes superfluous ("a nodule, which ... it")."""
    real = [head for head in heads if items[head].kind != "pronoun"]
    if not real:
        return heads
    return [head for head in heads if items[head].kind != "pronoun" or head < real[0]]
