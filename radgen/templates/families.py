"""What sentences are made of: the forms of one value, and the plans that states of one kind share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from radgen.templates import forms as word_forms
from radgen.templates.forms import Meaning
from radgen.templates.phrasings import Frame, Words
from radgen.templates.placing import NOUN, NOUN_PHRASES, Placement
from radgen.templates.text import Pieces, article

Draw = Callable[[], float]
MakePieces = Callable[[Sequence[str]], Pieces]
#: Keys that stand for a lead-in.
LEAD = ("lead",)
#: Slots that are a verb: singular, plural.
VERBS = {
    "be": ("is", "are"),
    "has": ("has", "have"),
    "shows": ("shows", "show"),
    "contains": ("contains", "contain"),
    "exist": ("there is", "there are"),
}


class Agreement(NamedTuple):
    """What the fixed words of a sentence agree with.

    Attributes:
        plural: the number of the noun phrase.
        article: whether the noun takes "a" or "an".
        counts_one: whether the count is one, which before the noun takes the article's place.
        both_sides: whether a place as the subject is in the plural ("both lungs show").
        is_new: whether the finding is introduced ("development of a …"), not taken as known ("of the …").
    """

    plural: bool
    article: bool
    counts_one: bool
    both_sides: bool
    is_new: bool


class Wording(dict[str, Pieces]):
    """The forms of one value by slot key, such as ``place.post.comma``; found when first asked for."""

    def __init__(self, words: Words, pieces: MakePieces, meaning: Meaning) -> None:
        super().__init__()
        self._words = words
        self._pieces = pieces
        self._meaning = meaning
        self.positions = meaning.positions(words)

    def __missing__(self, key: str) -> Pieces:
        _, position, *flags = key.split(".")
        texts = self._meaning.forms(self._words, position)
        texts = word_forms.attach(texts, position, comma="comma" in flags, definite="the" in flags)
        if "a" in flags:
            texts = [f"{article(text)} {text}" for text in texts]
        found = self[key] = self._pieces(texts)
        return found


class Part(NamedTuple):
    """One part of a plan: fixed words, or the group and the slot key whose wording stands there."""

    group: str
    key: str
    fixed: Pieces


class Family:
    """The sentence plans of all states of one shape and agreement, in one modality.

    Attributes:
        placements: each frame that can say such states, with its placements.
    """

    def __init__(
        self,
        placements: list[tuple[Frame, list[Placement]]],
        agreement: Agreement,
        leads: Pieces,
        pieces: MakePieces,
    ) -> None:
        self.placements = placements
        self._agreement = agreement
        self._leads = Part("", "", leads)
        self._kept: dict[str, Part] = {}
        self._pieces = pieces
        self._plans: dict[tuple[str, Placement], list[Part]] = {}

    def draw(self, draw: Draw) -> tuple[str, list[Part]]:
        """Draw a frame, then one of its placements; return the frame's name and the plan."""
        frame, found = self.placements[int(draw() * len(self.placements))]
        return frame.name, self.plan(frame, found[int(draw() * len(found))])

    def plan(self, frame: Frame, placement: Placement) -> list[Part]:
        """Return the parts of a sentence, in order; fixed words that follow each other are one part."""
        plan = self._plans.get((frame.name, placement))
        if plan is not None:
            return plan
        plan, fixed = [], ""
        for is_slot, text in frame.segments:
            words, keys = self._said(text, placement) if is_slot else (text, ())
            fixed += words
            if keys:
                if fixed:
                    plan.append(self._fixed(fixed))
                    fixed = ""
                plan += map(_slot, keys) if keys is not LEAD else [self._leads]
        if fixed:
            plan.append(self._fixed(fixed))
        self._plans[frame.name, placement] = plan
        return plan

    def _said(self, slot: str, placement: Placement) -> tuple[str, Sequence[str]]:
        """Return what stands in a slot: fixed words, then the keys of what varies."""
        agreement = self._agreement
        if slot == "post":
            return "", placement.posts
        if slot == "lead":
            return "", LEAD
        if slot in placement.others:
            return "", (placement.others[slot],)
        if slot not in NOUN_PHRASES:
            plural = agreement.both_sides if slot in ("shows", "contains") else agreement.plural
            return VERBS[slot][plural], ()
        keys = [*placement.adjectives, NOUN]
        if slot == "the_np" or (slot == "of_np" and not agreement.is_new):
            return "the ", keys
        if slot != "np" and agreement.article and not (agreement.counts_one and placement.counted):
            keys[0] += ".a"
        return "", keys

    def _fixed(self, text: str) -> Part:
        part = self._kept.get(text)
        if part is None:
            part = self._kept[text] = Part("", "", self._pieces([text]))
        return part


@functools.cache
def _slot(key: str) -> Part:
    """Return the part for a slot key; there are a few hundred."""
    return Part(key.partition(".")[0], key, ())
