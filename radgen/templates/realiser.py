"""The realiser: a canonical state in, sentences that state exactly its fields out (spec §2).

What a sentence is made of is found once and kept:

- a `Wording` has the forms of one value ("left" of a place) for every slot where it can stand;
- a `Family` has the sentence plans of all states that are stated alike: the same groups of fields with
  forms in the same places, the same agreement. A plan is a row of parts: fixed words, or a slot to fill;
- a `Speaker` says one state: its families, and its wording of each group.

Saying a state is then a draw of a plan, a draw of a form for each part, and one join. States of one family
can share the plan and all parts that do not tell them apart: a `Chorus` does that for many sentences at once.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from radgen.errors import RadgenError
from radgen.ontology.load import Ontology
from radgen.ontology.schema import FindingEntry, Modality, Site, Term
from radgen.templates import forms as word_forms
from radgen.templates.families import Agreement, Draw, Family, Part, Wording
from radgen.templates.forms import Meaning, Shape
from radgen.templates.phrasings import GROUPS, Frame, Phrasings, load_phrasings
from radgen.templates.placing import NOUN, Placement, find_places, kind_of
from radgen.templates.text import Piece, Pieces, article, jaccard, overlap, words_of

Mode = Literal["present", "absent", "resolved"]
MODALITIES: tuple[Modality, ...] = ("xr", "ct")
#: Fields of a state that phrasings can say.
SAID = {"finding", "presence", *(field for fields in GROUPS.values() for field in fields)}  # and a user's
#: How many beginnings and ends are drawn for a plan; and what stands between, where that is several parts.
HEADS, TAILS, CORES = 8, 6, 4


class Said(NamedTuple):
    """One sentence, the set of its words as a bit mask, and the frame that said it."""

    text: str
    mask: int
    frame: str


class Voice(NamedTuple):
    """A state said with nouns that agree alike."""

    family: Family
    wordings: dict[str, Mapping[str, Pieces]]

    def choices(self, plan: list[Part]) -> list[Pieces]:
        """Return the forms for each part of a plan."""
        wordings = self.wordings
        return [wordings[group][key] if group else fixed for group, key, fixed in plan]


class Nouns(NamedTuple):
    """Names of a finding that agree alike, as they stand without and with an article."""

    plural: bool
    article: bool
    wording: dict[str, Pieces]


#: A sentence of several states without the words that tell them apart: the text before these words and the
#: text after them, the mask of the words of both, what can stand between (by state), the frame's name.
#: The head begins with a capital; where it is empty, what stands between does.
Shell = tuple[str, str, int, dict[int, Pieces], str]


class Realiser:
    """Says states in words.

    Args:
        ontology: what the findings are called.
        phrasings: frames and surface forms; those of the ontology's files if absent.
        frames: names of the frames that may be used; all if absent.
        term_filter: a function of tag and term that says whether the term may be used.
    """

    def __init__(
        self,
        ontology: Ontology,
        phrasings: Phrasings | None = None,
        *,
        frames: frozenset[str] | None = None,
        term_filter: Any = None,
    ) -> None:
        self.ontology = ontology
        self.phrasings = phrasings or load_phrasings(ontology)
        self.frames = [
            frame for name, frame in self.phrasings.frames.items() if frames is None or name in frames
        ]
        self.term_filter = term_filter
        self._bits: dict[str, int] = {}
        self._pieces: dict[str, Piece] = {}
        self._kinds: dict[Hashable, list[Frame]] = {}
        for frame in self.frames:
            self._kinds.setdefault(kind_of(frame), []).append(frame)
        self._placed: dict[tuple[Hashable, Shape], list[Placement]] = {}
        self._families: dict[Any, Family] = {}
        self._wordings: dict[Any, Wording] = {}
        self._nouns: dict[Any, list[Nouns]] = {}
        self._classes = {tag: finding_classes(entry) for tag, entry in ontology.findings.items()}
        self.leads = {modality: self._leads(modality) for modality in MODALITIES}

    def piece(self, text: str) -> Piece:
        """Return a form with the mask of its words; masks of one realiser can be compared."""
        piece = self._pieces.get(text)
        if piece is None:
            mask = 0
            for word in words_of(text):
                mask |= 1 << self._bits.setdefault(word, len(self._bits))
            piece = self._pieces[text] = (text, mask)
        return piece

    def pieces(self, texts: Sequence[str]) -> Pieces:
        """Return forms with their masks."""
        return tuple(self.piece(text) for text in texts)

    def speaker(
        self, state: Mapping[str, Any], modality: Modality, terms: Sequence[Term] | None = None
    ) -> Speaker:
        """Return what says one state in one modality.

        Args:
            terms: the names that may be used for the finding; those of the ontology if absent.

        Raises:
            RadgenError: no phrasing states exactly these fields.
        """
        return Speaker(self, state, modality, terms)

    def can_say(self, state: Mapping[str, Any], modality: Modality) -> bool:
        """Whether some phrasing states exactly the fields of the state."""
        try:
            Speaker(self, state, modality)
        except RadgenError:
            return False
        return True

    def family(self, shape: Shape, agreement: Agreement, modality: Modality) -> Family:
        """Return the plans for a shape of state; without placements where no frame can say it."""
        key = (shape, agreement, modality)
        found = self._families.get(key)
        if found is None:
            placements = [
                (frame, placed)
                for kind, frames in self._kinds.items()
                if (placed := self._placements(kind, shape))
                for frame in frames
                if modality in frame.entry.modality
            ]
            found = self._families[key] = Family(placements, agreement, self.leads[modality], self.pieces)
        return found

    def _placements(self, kind: Hashable, shape: Shape) -> list[Placement]:
        placed = self._placed.get((kind, shape))
        if placed is None:
            placed = list(find_places(self._kinds[kind][0], shape, self.phrasings.layout))
            self._placed[kind, shape] = placed
        return placed

    def wording(self, group: str, value: Any, tag: str, plural: bool, site: Site | None) -> Wording:
        """Return the forms of a value; kept for all states that say it alike."""
        if group != "place":
            site = None  # decides nothing there
        key = (group, value, self._classes[tag], plural, site.name if site else "")
        found = self._wordings.get(key)
        if found is None:
            meaning = Meaning(group, value, self._classes[tag], plural, site)
            found = self._wordings[key] = Wording(self.phrasings.words, self.pieces, meaning)
        return found

    def nouns(
        self, tag: str, terms: Sequence[Term] | None, numbers: tuple[bool, ...], counted: bool
    ) -> list[Nouns]:
        """Return the names of a finding, grouped by how a sentence agrees with them.

        Args:
            terms: the names that may be used; those of the ontology, which are kept, if absent.
            numbers: the numbers (plural or not) that a countable noun may take.
            counted: whether the state counts the finding, so that only countable nouns will do.
        """
        key = (tag, numbers, counted)
        if terms is None and key in self._nouns:
            return self._nouns[key]
        chosen = self.ontology.findings[tag].terms if terms is None else terms
        if self.term_filter is not None:
            chosen = [term for term in chosen if self.term_filter(tag, term)]
        classes: dict[tuple[bool, bool], list[str]] = {}
        for term in chosen:
            if term.number == "count":
                for plural in numbers:
                    classes.setdefault((plural, not plural), []).append(term.form(plural))
            elif not counted:
                classes.setdefault((term.number == "plural", False), []).append(term.text)
        found = []
        for (plural, with_article), texts in sorted(classes.items()):
            after_article = [f"{article(text)} {text}" for text in texts]
            wording = {NOUN: self.pieces(texts), f"{NOUN}.a": self.pieces(after_article)}
            found.append(Nouns(plural, with_article, wording))
        if terms is None:
            self._nouns[key] = found
        return found

    def _leads(self, modality: Modality) -> Pieces:
        leads = self.phrasings.layout.leads
        texts = [*leads.both, *(leads.xr if modality == "xr" else leads.ct)]
        empty = round(len(texts) * leads.none_weight / (1 - leads.none_weight))
        return self.pieces([""] * empty + texts)


class Speaker:
    """Says one state; made once for a state, then asked for as many sentences as are needed."""

    def __init__(
        self,
        realiser: Realiser,
        state: Mapping[str, Any],
        modality: Modality,
        terms: Sequence[Term] | None = None,
    ) -> None:
        tag = state["finding"]
        mode: Mode = "present"
        if state.get("presence") == "absent":
            mode = "resolved" if state.get("temporal_change") == "resolved" else "absent"
        site = _place(realiser.ontology, realiser.ontology.findings[tag], state)
        further = realiser.phrasings.further
        values = word_forms.group_values(state, further)
        unsaid = state.keys() - SAID - set(further)
        if unsaid:
            raise RadgenError(f"no phrasing states {', '.join(sorted(unsaid))} of '{tag}'")
        if "place" in values and site is None:
            raise RadgenError(f"'{tag}' sits in no site that has {values['place']}")
        numbers = (True, False) if mode == "absent" else (is_plural(state),)
        is_new = state.get("temporal_change") == "new"
        counts_one, both_sides = values.get("count") == 1, state.get("laterality") == "bilateral"
        self.voices: list[Voice] = []
        self.weights: list[int] = []
        for plural, with_article, noun in realiser.nouns(tag, terms, numbers, "count" in values):
            wordings: dict[str, Any] = {
                group: realiser.wording(group, values[group], tag, plural, site)
                for group in (*GROUPS, *further)
                if group in values
            }
            shape = Shape(mode, is_new, tuple((group, said.positions) for group, said in wordings.items()))
            agreement = Agreement(plural, with_article, counts_one, both_sides, is_new)
            family = realiser.family(shape, agreement, modality)
            if family.placements:
                wordings[NOUN] = noun
                self.voices.append(Voice(family, wordings))
                self.weights.append(len(noun[NOUN]))
        if not self.voices:
            fields = ", ".join(name for name in state if name not in ("finding", "presence")) or "presence"
            raise RadgenError(f"no phrasing states exactly {fields} of '{tag}' ({modality})")
        self.total = sum(self.weights)

    def voice(self, draw: Draw) -> Voice:
        """Draw a voice, each as often as it has nouns."""
        index = 0
        if len(self.voices) > 1:
            ticket = draw() * self.total
            while index < len(self.weights) - 1 and ticket >= self.weights[index]:
                ticket -= self.weights[index]
                index += 1
        return self.voices[index]

    def say(self, rng: random.Random) -> Said:
        """Return one sentence; frame, order, synonym and surface forms are drawn independently."""
        voice = self.voice(rng.random)
        frame, plan = voice.family.draw(rng.random)
        ((text, mask),) = _fill(voice.choices(plan), 1, rng.random)
        return Said(text[0].upper() + text[1:], mask, frame)

    def phrasings(self) -> int:
        """Return how many different choices of placement and forms there are (an upper bound on texts)."""
        total = 0
        for voice in self.voices:
            for frame, placements in voice.family.placements:
                for placement in placements:
                    parts = voice.choices(voice.family.plan(frame, placement))
                    total += math.prod(len(set(pieces)) for pieces in parts)
        return total


class Chorus:
    """Says several states, those of one family at once: they share all but what tells them apart."""

    def __init__(self) -> None:
        self._speakers: dict[int, Speaker] = {}
        self._singing: dict[Family, tuple[dict[int, Voice], set[str]]] = {}

    def add(self, index: int, speaker: Speaker) -> None:
        """Add a state; all are added before the first is said."""
        self._speakers[index] = speaker

    def shells(self, index: int, draw: Draw) -> tuple[Iterable[int], list[Shell]]:
        """Draw a plan for one state, and say all states of its family with it.

        Beginnings and ends are drawn and combined. Whoever pairs sentences draws them from several such
        calls, so that two sentences rarely share a plan.

        Returns:
            The numbers of the states that can be said with the shells, and up to ``HEADS * TAILS`` shells.
        """
        family = self._speakers[index].voice(draw).family
        members, varying = self._singing.get(family) or self._sing(family)
        frame, plan = family.draw(draw)
        apart = [place for place, part in enumerate(plan) if part[0] in varying]
        first = members[index].choices(plan)
        if not apart:  # one state, or none that differs here: a part in the middle, but no lead
            open_parts = [place for place, part in enumerate(first) if len(part) > 1 and part[0][0]]
            apart = [open_parts[len(open_parts) // 2] if open_parts else len(first) - 1]
        start, end = apart[0], apart[-1] + 1
        between = plan[start:end]
        if len(between) == 1:
            cores = {member: voice.choices(between)[0] for member, voice in members.items()}
        else:
            cores = {member: _fill(voice.choices(between), CORES, draw) for member, voice in members.items()}
        tails = _fill(first[end:], TAILS, draw)
        out: list[Shell] = []
        for head, before in _fill(first[:start], HEADS, draw):
            if head:
                head, begun = head[0].upper() + head[1:], cores
            else:
                begun = {member: _capital(pieces) for member, pieces in cores.items()}
            out += [(head, tail, before | after, begun, frame) for tail, after in tails]
        return members, out

    def _sing(self, family: Family) -> tuple[dict[int, Voice], set[str]]:
        """Return the states of a family, and the groups in which they differ."""
        members = {
            index: voice
            for index, speaker in self._speakers.items()
            for voice in speaker.voices
            if voice.family is family
        }
        first, *others = (voice.wordings for voice in members.values())
        varying = {
            group for group, wording in first.items() if any(other[group] is not wording for other in others)
        }
        self._singing[family] = members, varying
        return members, varying


def _capital(pieces: Pieces) -> Pieces:
    return tuple((text[0].upper() + text[1:], mask) for text, mask in pieces)


def _fill(parts: list[Pieces], times: int, draw: Draw) -> Pieces:
    """Draw up to ``times`` different texts with their masks, in the order in which they came."""
    out: dict[str, int] = {}
    for _ in range(times):
        text, mask = "", 0
        for choices in parts:
            count = len(choices)
            more, bits = choices[int(draw() * count) if count > 1 else 0]
            text += more
            mask |= bits
        out[text] = mask
    return tuple(out.items())


def is_plural(state: Mapping[str, Any]) -> bool:
    """Whether what a state says takes a count noun in the plural."""
    return (
        state.get("count", 1) > 1
        or state.get("count_category") in ("few", "multiple", "innumerable")
        or state.get("laterality") == "bilateral"
        or state.get("distribution") in ("multifocal", "diffuse")
    )


def finding_classes(entry: FindingEntry) -> frozenset[str]:
    """Return the classes by which forms are chosen (``words.yaml``): lesion, amount, spread, …"""
    if "size" in entry.axes:
        return frozenset({"lesion"})
    own = {"degree": {"degree"}, "amount": {"amount", "sized"}, "fluid": {"amount", "fluid"}}
    spread = {"spread"} if "distribution" in entry.axes else set()
    return frozenset(own[entry.severity_words] | spread)


def _place(ontology: Ontology, entry: FindingEntry, state: Mapping[str, Any]) -> Site | None:
    """The site that a state's place is said of: the first that has what the state gives."""
    lobe, zone, side = state.get("lobe"), state.get("zone"), state.get("laterality")
    for name in entry.sites:
        site = ontology.anatomy.sites[name]
        if zone and zone not in site.zones:
            continue
        if lobe and not site.lobes:
            continue
        if side in ("left", "right", "bilateral") and site.sides != "paired":
            continue
        return site
    return None


__all__ = [
    "Chorus",
    "Family",
    "Realiser",
    "Said",
    "Shell",
    "Speaker",
    "article",
    "finding_classes",
    "is_plural",
    "jaccard",
    "overlap",
    "words_of",
]
