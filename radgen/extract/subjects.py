"""Subjects and what is said of them: "the lungs are clear", "the heart is mildly enlarged"."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from radgen.extract.lexicon import Lexicon
from radgen.extract.matching import Item
from radgen.extract.regions import MODIFIERS

#: Kinds that only the reading of subjects resolves; a clause without them has none to pair.
JUDGED = frozenset(("subject", "normal", "not_normal", "abnormal"))
_COORDINATING = frozenset(("and", "or", "slash", "comma", "det", "place", "attribute", "ignore", "site"))
#: Findings, whether they are denied, fields that are stated, the items that say so.
Judgement = tuple[list[str], bool, dict[str, Any], list[Item]]


class Subjects:
    """Pairs the subjects of a clause with what says that they are normal or not."""

    def __init__(self, lexicon: Lexicon) -> None:
        self.lexicon = lexicon

    def read(self, items: list[Item]) -> dict[int, Judgement]:
        """Pair subjects with what says that they are normal or abnormal; return index to reading."""
        subjects = [
            index
            for index, item in enumerate(items)
            if (
                item.kind == "subject"
                or (item.phrase.subject and item.kind in ("site", "place"))
                or (item.kind == "place" and item.attrs.get("lung") and not _is_modifier(items, index))
            )
            and not _in_phrase(items, index)
        ]
        judged: dict[int, Judgement] = {}
        if subjects:
            marks = [
                index
                for index, item in enumerate(items)
                if item.kind == "normal" or (item.phrase.abnormal and item.kind not in ("subject", "break"))
            ]
            for mark in marks:
                self._pair(items, subjects, mark, judged)
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
        judged: dict[int, Judgement],
    ) -> None:
        """Judge the nearest subject before a mark, or the one after it."""
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
            tags = self._tags(subject)
            if item.kind == "normal" and tags:
                judged[index] = (tags, True, dict(item.attrs), [item])
            else:
                names = {
                    *subject.phrase.subject,
                    *(name[3:] for name in subject.phrase.abnormal if name[:3] == "of:"),
                }
                if subject.attrs.get("lung"):
                    names |= self._lung_subjects()
                both = sorted(item.phrase.abnormal & names)
                if not both:
                    continue
                judged[index] = (both[:1], False, {}, [item])
            item.kind = "verb"
            return

    def _tags(self, subject: Item) -> list[str]:
        """Return the findings that the normality of a subject denies."""
        if subject.phrase.subject or not subject.attrs.get("lung"):
            return subject.phrase.subject
        phrase = self.lexicon.phrases.get(("lungs",))
        return phrase.subject if phrase else []

    def _lung_subjects(self) -> set[str]:
        phrase = self.lexicon.phrases.get(("lungs",))
        return {name[3:] for name in phrase.abnormal if name[:3] == "of:"} if phrase else set()

    def _spread(
        self,
        items: list[Item],
        subjects: list[int],
        judged: dict[int, Judgement],
    ) -> None:
        """Let "normal" reach subjects that are coordinated with one that has it."""
        for order in (list(reversed(subjects)), subjects):
            for near, far in pairwise(order):
                if near not in judged or far in judged or not judged[near][1]:
                    continue
                _, _, attrs, used = judged[near]
                if (far < near) == (used[0].start < items[near].start):
                    continue  # "normal heart; lungs": what stands before its subject does not reach back
                low, high = min(near, far), max(near, far)
                between = items[low + 1 : high]
                if not between and items[low].end != items[high].start:
                    continue
                tags = self._tags(items[far])
                if tags and all(item.kind in _COORDINATING for item in between):
                    judged[far] = (tags, True, dict(attrs), used)


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
    return items[index + 1].kind in ("find", *MODIFIERS)


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
    listed = any(item.kind == "comma" for item in between)
    return not (listed and mark + 1 < len(items) and items[mark + 1].kind == "subject")


def _reaches_on(items: list[Item], mark: int, subject: int) -> bool:
    """Whether "normal" stands before its subject: "normal heart size"."""
    between = items[mark + 1 : subject]
    return all(item.kind in ("attribute", "det", "place", "ignore", "site", "and") for item in between) and (
        items[subject].start - items[mark].end <= 5
    )
