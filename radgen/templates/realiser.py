"""The realiser: a canonical state in, sentences that state exactly its fields out (spec §2).

A *plan* is a frame with a position for each group of fields (``adj``, ``post``, ``pred``, …). Plans are
enumerated once for a kind of state and kept; saying a state is then a few random picks and one join.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from radgen.errors import RadgenError
from radgen.ontology.load import Ontology
from radgen.ontology.schema import FindingEntry, Modality, Site, Term
from radgen.templates import forms as word_forms
from radgen.templates.forms import Meaning, Shape
from radgen.templates.phrasings import GROUPS, Frame, Phrasings, agree, load_phrasings

WORD = re.compile(r"[a-z0-9]+(?:[.'/-][a-z0-9]+)*")


class Said(NamedTuple):
    """One sentence, the set of its words as a bit mask, and the frame that said it."""

    text: str
    mask: int
    frame: str


class Piece(NamedTuple):
    """One surface form with the mask of its words."""

    text: str
    mask: int


Pieces = tuple[Piece, ...]
#: The choices for one part of a sentence, with their number; 0 marks the place of an article.
Choice = tuple[int, Pieces]
Draw = Callable[[], float]
Filled = dict[tuple[str, int], None]
NOUN = "noun"
_ARTICLE: Choice = (0, ())
_NOTHING: Filled = {("", 0): None}


class Placement(NamedTuple):
    """A frame with a position for each group of a state: a plan for a sentence.

    Attributes:
        frame: the frame.
        adjectives: slot keys of the groups before the noun, in order.
        posts: slot keys of the groups after the noun, in order.
        others: slot keys by slot, for the remaining groups.
        counted: whether a count stands before the noun.
    """

    frame: Frame
    adjectives: tuple[str, ...]
    posts: tuple[str, ...]
    others: dict[str, str]
    counted: bool


_VOWEL_SOUND = re.compile(
    r"(?:[aeioAEIO]|u(?!ni(?!n|m)|s[aeiu]|t[ei]|r[ei])|hour|8|11(?!\d)|18(?!\d)|[FHLMNRSX](?=[A-Z]))",
    re.ASCII,
)


def article(word: str) -> str:
    """Return ``a`` or ``an`` for what follows, by sound.

    >>> [article(word) for word in ("nodule", "effusion", "8 mm nodule", "uterine", "unchanged", "RUL nodule")]
    ['a', 'an', 'an', 'a', 'an', 'an']
    """
    return "an" if _VOWEL_SOUND.match(word) else "a"


def words_of(text: str) -> list[str]:
    """Return the words of a text for the word Jaccard: lower case, punctuation dropped, "0.8" one word."""
    return WORD.findall(text.lower())


def jaccard(a: str, b: str) -> float:
    """Return the Jaccard similarity of the word sets of two texts, in [0, 1] (spec §2)."""
    left, right = set(words_of(a)), set(words_of(b))
    union = left | right
    return len(left & right) / len(union) if union else 1.0


def is_plural(state: Mapping[str, Any]) -> bool:
    """Whether what a state says takes a count noun in the plural."""
    return (
        state.get("count", 1) > 1
        or state.get("count_category") in ("few", "multiple", "innumerable")
        or state.get("laterality") == "bilateral"
        or state.get("distribution") in ("multifocal", "diffuse")
    )


def finding_classes(entry: FindingEntry) -> frozenset[str]:
    """Return the classes by which forms are chosen: lesion, amount, sized, fluid, degree, spread."""
    if "size" in entry.axes:
        return frozenset({"lesion"})
    own = {"degree": {"degree"}, "amount": {"amount", "sized"}, "fluid": {"amount", "fluid"}}
    spread = {"spread"} if "distribution" in entry.axes else set()
    return frozenset(own[entry.severity_words] | spread)


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
        self._placements: dict[tuple[Shape, str], list[list[Placement]]] = {}
        self._of_frame: dict[tuple[Shape, str], list[Placement]] = {}
        self._choices: dict[Any, Choice] = {}
        self._positions: dict[Any, tuple[str, ...]] = {}
        self._orders = self.phrasings.layout.np_orders
        self.articles: dict[str, Piece] = {}
        self._literals: dict[str, Choice] = {}
        self._lead_choices = {modality: self._leads(modality) for modality in MODALITIES}

    def piece(self, text: str) -> Piece:
        """Return a form with the mask of its words; masks of one realiser can be compared."""
        piece = self._pieces.get(text)
        if piece is None:
            mask = 0
            for word in words_of(text):
                mask |= 1 << self._bits.setdefault(word, len(self._bits))
            piece = self._pieces[text] = Piece(text, mask)
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

    def placements(self, shape: Shape, modality: Modality) -> list[list[Placement]]:
        """Return the placements for a shape of state, grouped by frame."""
        found = self._placements.get((shape, modality))
        if found is None:
            frames = [frame for frame in self.frames if modality in frame.entry.modality]
            found = [placed for frame in frames if (placed := self._place_in(frame, shape))]
            self._placements[shape, modality] = found
        return found

    def article(self, following: str) -> Piece:
        """Return "a " or "an " for what follows, and keep it."""
        word = self.articles[following] = self.piece(article(following) + " ")
        return word

    def literal(self, text: str) -> Choice:
        """Return a part that is always the same."""
        found = self._literals.get(text)
        if found is None:
            found = self._literals[text] = (1, (self.piece(text),))
        return found

    def lead(self, modality: Modality) -> Choice:
        """Return the lead-ins of a modality."""
        return self._lead_choices[modality]

    def choices(self, meaning: Meaning, key: str) -> Choice:
        """Return the forms for a slot key such as ``place.post.comma``; kept for all states alike."""
        group, position, *flags = key.split(".")
        site = meaning.site.name if meaning.site else ""
        where = (key, str(meaning.values.get(group)), meaning.classes, meaning.plural, site)
        found = self._choices.get(where)
        if found is None:
            texts = meaning.forms(self.phrasings.words, group, position)
            pieces = self.pieces(
                word_forms.attach(texts, position, comma="comma" in flags, definite="the" in flags)
            )
            found = self._choices[where] = (len(pieces), pieces)
        return found

    def positions(self, meaning: Meaning, group: str) -> tuple[str, ...]:
        """Return the positions a group can stand in; kept for all states alike."""
        site = meaning.site.name if meaning.site else ""
        where = (group, str(meaning.values[group]), meaning.classes, meaning.plural, site)
        found = self._positions.get(where)
        if found is None:
            found = self._positions[where] = meaning.positions(self.phrasings.words, group)
        return found

    def _place_in(self, frame: Frame, shape: Shape) -> list[Placement]:
        found = self._of_frame.get((shape, frame.name))
        if found is None:
            found = self._of_frame[shape, frame.name] = list(self._find_places(frame, shape))
        return found

    def _find_places(self, frame: Frame, shape: Shape) -> Iterator[Placement]:
        entry, slots = frame.entry, frame.slots
        if entry.negates != (shape.mode == "absent") or (entry.asserts and shape.mode == "resolved"):
            return
        named = [name for name in word_forms.POSITIONS if name in slots]
        options = shape.options(frame, ["adj", *named])
        if not all(options) and shape.groups:
            return
        must = [name for name in named if name not in ("post", "exist")]
        if len(must) > len(shape.groups):
            return
        limits, never = self.phrasings.layout.limits, self.phrasings.layout.never_both_after
        for placed in itertools.product(*options):
            if placed.count("adj") > limits["adj"] or placed.count("post") > limits["post"]:
                continue
            if any(placed.count(name) != 1 for name in must) or placed.count("exist") > 1:
                continue
            where = {group: slot for (group, _), slot in zip(shape.groups, placed, strict=True)}
            if any(all(where.get(group) == "post" for group in both) for both in never):
                continue
            yield from self._orderings(frame, shape, where)

    def _orderings(self, frame: Frame, shape: Shape, where: dict[str, str]) -> Iterator[Placement]:
        definite = "the_np" in frame.slots or ("of_np" in frame.slots and not shape.is_new)
        posts = [f"{group}.post" for group in self.phrasings.layout.post_order if where.get(group) == "post"]
        if posts and frame.post_closes:
            posts[-1] += ".comma"
        others = {slot: f"{group}.{slot}" for group, slot in where.items() if slot not in ("adj", "post")}
        before = [group for group, slot in where.items() if slot == "adj"]
        suffix = ".adj.the" if definite else ".adj"
        seen = set()
        for order in self._orders:
            adjectives = tuple(group + suffix for group in sorted(before, key=order.index))
            if adjectives not in seen:
                seen.add(adjectives)
                yield Placement(frame, adjectives, tuple(posts), others, "count" in before)

    def _leads(self, modality: Modality) -> Choice:
        leads = self.phrasings.layout.leads
        texts = [*leads.both, *(leads.xr if modality == "xr" else leads.ct)]
        empty = round(len(texts) * leads.none_weight / (1 - leads.none_weight))
        pieces = self.pieces([""] * empty + texts)
        return len(pieces), pieces


def _place(ontology: Ontology, entry: FindingEntry, state: Mapping[str, Any]) -> Site | None:
    """The site that a state's place is said of: the first that has what the state gives."""
    for name in entry.sites:
        site = ontology.anatomy.sites[name]
        if state.get("zone") and state["zone"] not in site.zones:
            continue
        if state.get("lobe") and not site.lobes:
            continue
        if state.get("laterality") in ("left", "right", "bilateral") and site.sides != "paired":
            continue
        return site
    return None


Mode = Literal["present", "absent", "resolved"]
MODALITIES: tuple[Modality, ...] = ("xr", "ct")
NOUN_PHRASES = frozenset({"np", "a_np", "the_np", "of_np"})
#: Slots that are a verb: singular, plural.
VERBS = {
    "be": ("is", "are"),
    "has": ("has", "have"),
    "shows": ("shows", "show"),
    "contains": ("contains", "contain"),
    "exist": ("there is", "there are"),
}
#: Fields of a state that phrasings can say.
SAID = {"finding", "presence", *(field for fields in GROUPS.values() for field in fields)}  # and a user's


class _Own(dict[str, Choice]):
    """The choices of one state by slot key, looked up when a sentence first asks for them."""

    def __init__(self, realiser: Realiser, meaning: Meaning, numbers: dict[str, dict[str, list[str]]]) -> None:
        super().__init__()
        self.realiser = realiser
        self.meaning = meaning
        self.numbers = numbers

    def __missing__(self, key: str) -> Choice:
        group, position, *flags = key.split(".")
        if group in self.numbers:
            said = [agree(text, self.meaning.plural) for text in self.numbers[group][position]]
            pieces = self.realiser.pieces(
                word_forms.attach(said, position, comma="comma" in flags, definite="the" in flags)
            )
            found = (len(pieces), pieces)
        else:
            found = self.realiser.choices(self.meaning, key)
        self[key] = found
        return found


class _Voice(NamedTuple):
    """A state with terms that agree alike."""

    placements: list[list[Placement]]
    own: _Own
    plural: bool
    article: bool


class Speaker:
    """Says one state; made once for a state, then asked for as many sentences as are needed."""

    def __init__(
        self,
        realiser: Realiser,
        state: Mapping[str, Any],
        modality: Modality,
        terms: Sequence[Term] | None = None,
    ) -> None:
        self.realiser = realiser
        self.articles = realiser.articles
        self.lead = realiser.lead(modality)
        ontology = realiser.ontology
        tag = state["finding"]
        entry = ontology.findings[tag]
        mode: Mode = "present"
        if state.get("presence") == "absent":
            mode = "resolved" if state.get("temporal_change") == "resolved" else "absent"
        site = _place(ontology, entry, state)
        further = realiser.phrasings.further
        values = word_forms.group_values(state, further)
        unsaid = [field for field in state if field not in SAID and field not in further]
        if unsaid:
            raise RadgenError(f"no phrasing states {', '.join(unsaid)} of '{tag}'")
        if "place" in values and site is None:
            raise RadgenError(f"'{tag}' sits in no site that has {values['place']}")
        chosen: Sequence[Term] = entry.terms if terms is None else terms
        if realiser.term_filter is not None:
            chosen = [term for term in chosen if realiser.term_filter(tag, term)]
        number = [True, False] if mode == "absent" else [is_plural(state)]
        numbers = word_forms.own_forms(realiser.phrasings.words, state)
        self.is_new = state.get("temporal_change") == "new"
        self.counts_one = values.get("count") == "one"
        self.both_sides = state.get("laterality") == "bilateral"
        self.voices: list[_Voice] = []
        self.weights: list[int] = []
        for plural, with_article, nouns in _noun_classes(chosen, number, state):
            meaning = Meaning(finding_classes(entry), site, plural, values)
            stated = [group for group in (*GROUPS, *further) if group in values]
            groups = tuple((group, realiser.positions(meaning, group)) for group in stated)
            placements = realiser.placements(Shape(mode, self.is_new, groups), modality)
            if placements:
                own = _Own(realiser, meaning, numbers)
                own[NOUN] = (len(nouns), realiser.pieces(nouns))
                self.voices.append(_Voice(placements, own, plural, with_article))
                self.weights.append(len(nouns))
        if not self.voices:
            fields = ", ".join(name for name in state if name not in ("finding", "presence")) or "presence"
            raise RadgenError(f"no phrasing states exactly {fields} of '{tag}' ({modality})")
        self.total = sum(self.weights)

    def _draw(self, draw: Draw) -> tuple[str, list[Choice]]:
        """Draw a frame with its placements, and return its name and the choices of its parts."""
        index = 0
        if len(self.voices) > 1:
            ticket = draw() * self.total
            while index < len(self.weights) - 1 and ticket >= self.weights[index]:
                ticket -= self.weights[index]
                index += 1
        voice = self.voices[index]
        of_frame = voice.placements[int(draw() * len(voice.placements))]
        placement = of_frame[int(draw() * len(of_frame))]
        return placement.frame.name, self._parts(placement, voice)

    def _parts(self, placement: Placement, voice: _Voice) -> list[Choice]:
        """Return the choices of each part of a sentence, in order."""
        own, literal = voice.own, self.realiser.literal
        out: list[Choice] = []
        for is_slot, text in placement.frame.segments:
            if not is_slot:
                out.append(literal(text))
            elif text == "post":
                out += [own[key] for key in placement.posts]
            elif text in NOUN_PHRASES:
                if text == "the_np" or (text == "of_np" and not self.is_new):
                    out.append(literal("the "))
                elif text != "np" and voice.article and not (self.counts_one and placement.counted):
                    out.append(_ARTICLE)
                out += [own[key] for key in placement.adjectives]
                out.append(own[NOUN])
            elif text == "lead":
                out.append(self.lead)
            elif text in placement.others:
                out.append(own[placement.others[text]])
            else:
                plural = self.both_sides if text in ("shows", "contains") else voice.plural
                out.append(literal(VERBS[text][plural]))
        return out

    def say(self, rng: random.Random) -> Said:
        """Return one sentence; frame, order, synonym and surface forms are drawn independently."""
        draw = rng.random
        frame, parts = self._draw(draw)
        ((text, mask),) = self._fill(parts, 1, draw)
        return Said(text[0].upper() + text[1:], mask, frame)

    def say_some(
        self, rng: random.Random, heads: int = 4, tails: int = 3
    ) -> tuple[str, list[tuple[str, int]]]:
        """Return a frame and up to ``heads * tails`` sentences (text, mask) of it.

        Beginnings and ends are drawn, then combined. This is what makes generation fast; whoever pairs
        sentences draws them from many such calls.
        """
        draw = rng.random
        frame, parts = self._draw(draw)
        open_parts = [place for place, part in enumerate(parts) if part[0] > 1]
        cut = open_parts[len(open_parts) // 2] if len(open_parts) > 1 else len(parts)
        if parts[cut - 1] is _ARTICLE:  # an article stays with what follows
            cut += 1
        first = self._fill(parts[:cut], heads, draw)
        second = self._fill(parts[cut:], tails, draw) if cut < len(parts) else _NOTHING
        out = []
        for start, mask in first:
            if start:
                start = start[0].upper() + start[1:]
                out += [(start + end, mask | more) for end, more in second]
            else:
                out += [(end[0].upper() + end[1:], mask | more) for end, more in second]
        return frame, out

    def _fill(self, parts: list[Choice], times: int, draw: Draw) -> Filled:
        """Draw up to ``times`` different texts with their masks, in the order in which they came."""
        out: Filled = {}
        for _ in range(times):
            texts: list[str] = []
            mask, hole = 0, -1
            for count, choices in parts:
                if count > 1:
                    text, bits = choices[int(draw() * count)]
                elif count:
                    text, bits = choices[0]
                else:
                    hole = len(texts)
                    texts.append("")
                    continue
                texts.append(text)
                mask |= bits
            if hole >= 0:
                following = texts[hole + 1]
                word = self.articles.get(following) or self.realiser.article(following)
                texts[hole] = word[0]
                mask |= word[1]
            out["".join(texts), mask] = None
        return out

    def phrasings(self) -> int:
        """Return how many different choices of placement and forms there are (an upper bound on texts)."""
        total = 0
        for voice in self.voices:
            for placement in itertools.chain.from_iterable(voice.placements):
                product = 1
                for _, pieces in self._parts(placement, voice):
                    product *= max(1, len(set(pieces)))
                total += product
        return total


def _noun_classes(
    terms: Sequence[Term], numbers: Sequence[bool], state: Mapping[str, Any]
) -> Iterator[tuple[bool, bool, list[str]]]:
    """Yield (plural, article, forms) for the terms, grouped by how the sentence agrees with them."""
    classes: dict[tuple[bool, bool], list[str]] = {}
    counted = "count" in state or "count_category" in state
    for term in terms:
        if term.number == "count":
            for plural in numbers:
                classes.setdefault((plural, not plural), []).append(term.form(plural))
        elif not counted:
            classes.setdefault((term.number == "plural", False), []).append(term.text)
    for (plural, with_article), nouns in sorted(classes.items()):
        yield plural, with_article, nouns
