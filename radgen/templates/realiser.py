"""The realiser: a canonical state in, sentences that state exactly its fields out (spec §2).

A *plan* is a frame with a position for each group of fields (``adj``, ``post``, ``pred``, …). Plans are
enumerated once for a kind of state and kept; saying a state is then a few random picks and one join.
"""

from __future__ import annotations

import functools
import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
Draw = Callable[[], float]


@dataclass(frozen=True)
class Plan:
    """A frame with all of a state's groups placed; ``parts`` are choices, or keys of the state's own forms."""

    frame: str
    parts: tuple[Pieces | str, ...]

    @functools.cached_property
    def halves(self) -> tuple[tuple[Pieces | str, ...], tuple[Pieces | str, ...]]:
        """The parts cut in two with as many choices before as after; an article stays with what follows."""
        choices = [place for place, part in enumerate(self.parts) if isinstance(part, str) or len(part) > 1]
        cut = choices[len(choices) // 2] if len(choices) > 1 else len(self.parts)
        if self.parts[cut - 1] is ARTICLE:
            cut += 1
        return self.parts[:cut], self.parts[cut:]


class _Draft(NamedTuple):
    """A plan whose parts are not put together yet: most are never drawn."""

    frame: Frame
    shape: Shape
    where: dict[str, str]
    adjectives: tuple[str, ...]


ARTICLE, NOUN = "article", "noun"
_NOTHING: dict[tuple[str, int], None] = {("", 0): None}
_VOWEL_SOUND = re.compile(
    r"(?:[aeio]|u(?!ni(?!n|m)|s[aeiu]|ti|re)|hour|8|11(?!\d)|18(?!\d)|[FHLMNRSX](?=[A-Z]))", re.ASCII
)


def article(word: str) -> str:
    """Return ``a`` or ``an`` for what follows, by sound.

    >>> [article(w) for w in ("nodule", "effusion", "8 mm nodule", "unilateral x", "unchanged x", "RUL nodule")]
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
    """Return the classes by which forms are chosen: lesion, amount, fluid, degree (``words.yaml``)."""
    if "size" in entry.axes:
        return frozenset({"lesion"})
    if entry.severity_words == "fluid":
        return frozenset({"amount", "fluid"})
    return frozenset({"amount"} if entry.severity_words == "amount" else {"degree"})


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
        self._plans: dict[Shape, list[list[Plan | _Draft]]] = {}
        self._choices: dict[Any, Pieces] = {}
        self._positions: dict[Any, tuple[str, ...]] = {}
        self._orders = self.phrasings.layout.np_orders
        self.articles: dict[str, Piece] = {}

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

    def plans(self, shape: Shape) -> list[list[Plan | _Draft]]:
        """Return the plans for a shape of state, grouped by frame; drafts are finished when drawn."""
        found = self._plans.get(shape)
        if found is None:
            found = [plans for frame in self.frames if (plans := list(self._frame_plans(frame, shape)))]
            self._plans[shape] = found
        return found

    def article(self, following: str) -> Piece:
        """Return "a " or "an " for what follows, and keep it."""
        word = self.articles[following] = self.piece(article(following) + " ")
        return word

    def finish(self, plans: list[Plan | _Draft], place: int) -> Plan:
        """Return the plan at a place of a list of drafts, and keep it there."""
        plan = plans[place]
        if isinstance(plan, _Draft):
            plan = plans[place] = self._assemble(*plan)
        return plan

    def choices(self, meaning: Meaning, key: str) -> Pieces:
        """Return the forms for a slot key such as ``place.post.comma``; kept for all states alike."""
        group, position, *flags = key.split(".")
        site = meaning.site.name if meaning.site else ""
        where = (key, str(meaning.values.get(group)), meaning.classes, meaning.plural, site)
        found = self._choices.get(where)
        if found is None:
            texts = meaning.forms(self.phrasings.words, group, position)
            found = self.pieces(
                word_forms.attach(texts, position, comma="comma" in flags, definite="the" in flags)
            )
            self._choices[where] = found
        return found

    def positions(self, meaning: Meaning, group: str) -> tuple[str, ...]:
        """Return the positions a group can stand in; kept for all states alike."""
        site = meaning.site.name if meaning.site else ""
        where = (group, str(meaning.values[group]), meaning.classes, meaning.plural, site)
        found = self._positions.get(where)
        if found is None:
            found = self._positions[where] = meaning.positions(self.phrasings.words, group)
        return found

    def _frame_plans(self, frame: Frame, shape: Shape) -> Iterator[Plan | _Draft]:
        entry, slots = frame.entry, frame.slots
        if shape.modality not in entry.modality or entry.negates != (shape.mode == "absent"):
            return
        if entry.asserts and shape.mode == "resolved":
            return
        limits = self.phrasings.layout.limits
        named = [name for name in word_forms.POSITIONS if name in slots]
        options = shape.options(frame, ["adj", *named])
        must = [name for name in named if name not in ("post", "exist")]
        for placed in itertools.product(*options):
            if placed.count("adj") > limits["adj"] or placed.count("post") > limits["post"]:
                continue
            if any(placed.count(name) != 1 for name in must) or placed.count("exist") > 1:
                continue
            where = {group: slot for (group, _), slot in zip(shape.groups, placed, strict=True)}
            if where.get("density") == where.get("margin") == "post":
                continue  # "with … with …"
            yield from self._orderings(frame, shape, where)

    def _orderings(self, frame: Frame, shape: Shape, where: dict[str, str]) -> Iterator[Plan | _Draft]:
        adjectives = [group for group, slot in where.items() if slot == "adj"]
        seen = set()
        for order in self._orders:
            chosen = tuple(sorted(adjectives, key=order.index))
            if chosen not in seen:
                seen.add(chosen)
                yield _Draft(frame, shape, where, chosen)

    def _assemble(
        self, frame: Frame, shape: Shape, where: dict[str, str], adjectives: tuple[str, ...]
    ) -> Plan:
        parts: list[Pieces | str] = []
        posts = [group for group in self.phrasings.layout.post_order if where.get(group) == "post"]
        verbs = {
            "be": agree("is|are", shape.plural),
            "has": agree("has|have", shape.plural),
            "shows": agree("shows|show", shape.both_sides),
            "contains": agree("contains|contain", shape.both_sides),
        }
        for index, (is_slot, text) in enumerate(frame.segments):
            if not is_slot:
                parts.append((self.piece(text),))
            elif text in ("np", "a_np", "the_np", "of_np"):
                parts += self._noun_phrase(text, shape, adjectives)
            elif text == "post":
                follows = frame.segments[index + 1][1] if index + 1 < len(frame.segments) else ""
                closing = follows.startswith(" ")
                parts += [
                    f"{group}.post.comma" if closing and group == posts[-1] else f"{group}.post"
                    for group in posts
                ]
            elif text == "lead":
                parts.append(self._leads(shape.modality))
            elif text in verbs:
                parts.append((self.piece(verbs[text]),))
            else:
                group = next((group for group, slot in where.items() if slot == text), None)
                if group is None:  # only "exist" may stand empty
                    parts.append((self.piece(agree("there is|are", shape.plural)),))
                else:
                    parts.append(f"{group}.{text}")
        return Plan(frame.name, tuple(self._joined(parts)))

    def _joined(self, parts: list[Pieces | str]) -> Iterator[Pieces | str]:
        """Join neighbouring literals, so that a sentence has fewer parts to pick."""
        pending = ""
        for part in parts:
            if not isinstance(part, str) and len(part) == 1:
                pending += part[0].text
                continue
            if pending:
                yield (self.piece(pending),)
                pending = ""
            yield part
        if pending:
            yield (self.piece(pending),)

    def _noun_phrase(self, slot: str, shape: Shape, adjectives: tuple[str, ...]) -> list[Pieces | str]:
        parts: list[Pieces | str] = []
        definite = slot == "the_np" or (slot == "of_np" and not shape.is_new)
        if definite:
            parts.append((self.piece("the "),))
        elif slot != "np" and shape.article and not (shape.counts_one and "count" in adjectives):
            parts.append(ARTICLE)
        parts += [f"{group}.adj.the" if definite else f"{group}.adj" for group in adjectives]
        parts.append(NOUN)
        return parts

    def _leads(self, modality: Modality) -> Pieces:
        leads = self.phrasings.layout.leads
        texts = [*leads.both, *(leads.xr if modality == "xr" else leads.ct)]
        empty = round(len(texts) * leads.none_weight / (1 - leads.none_weight))
        return self.pieces([""] * empty + texts)


def _place(ontology: Ontology, entry: FindingEntry, state: Mapping[str, Any]) -> tuple[Site | None, str]:
    """The site that a state's place is said of: the first that has what the state gives."""
    for name in entry.sites:
        site = ontology.anatomy.sites[name]
        if state.get("zone") and state["zone"] not in site.zones:
            continue
        if state.get("lobe") and not site.lobes:
            continue
        if state.get("laterality") in ("left", "right", "bilateral") and site.sides != "paired":
            continue
        return site, name
    return None, ""


Mode = Literal["present", "absent", "resolved"]


class _Own(dict[str, Pieces]):
    """The choices of one state by slot key, looked up when a plan first asks for them."""

    def __init__(
        self, realiser: Realiser, meaning: Meaning, numbers: dict[str, dict[str, list[str]]]
    ) -> None:
        super().__init__()
        self.realiser = realiser
        self.meaning = meaning
        self.numbers = numbers

    def __missing__(self, key: str) -> Pieces:
        group, position, *flags = key.split(".")
        if group in self.numbers:
            said = [agree(text, self.meaning.plural) for text in self.numbers[group][position]]
            found = self.realiser.pieces(
                word_forms.attach(said, position, comma="comma" in flags, definite="the" in flags)
            )
        else:
            found = self.realiser.choices(self.meaning, key)
        self[key] = found
        return found

    def counted(self, key: str) -> tuple[int, Pieces]:
        """Return the choices for a slot key with their number."""
        found = self[key]
        return len(found), found


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
        ontology = realiser.ontology
        tag = state["finding"]
        entry = ontology.findings[tag]
        mode: Mode = "present"
        if state.get("presence") == "absent":
            mode = "resolved" if state.get("temporal_change") == "resolved" else "absent"
        site, _ = _place(ontology, entry, state)
        values = word_forms.group_values(state)
        unsaid = (
            set(state) - {"finding", "presence"} - {field for fields in GROUPS.values() for field in fields}
        )
        if unsaid:
            raise RadgenError(f"no phrasing states {', '.join(sorted(unsaid))} of '{tag}'")
        if "place" in values and site is None:
            raise RadgenError(f"'{tag}' sits in no site that has {values['place']}")
        chosen = list(terms) if terms is not None else entry.terms
        if realiser.term_filter is not None:
            chosen = [term for term in chosen if realiser.term_filter(tag, term)]
        number = [True, False] if mode == "absent" else [is_plural(state)]
        own_forms = word_forms.own_forms(realiser.phrasings.words, state)
        self.variants: list[tuple[list[list[Plan | _Draft]], _Own]] = []
        self.weights: list[int] = []
        for plural, with_article, nouns in _noun_classes(chosen, number, state):
            meaning = Meaning(finding_classes(entry), site, plural, values)
            shape = Shape(
                modality=modality,
                mode=mode,
                plural=plural,
                article=with_article,
                counts_one=values.get("count") == "one",
                both_sides=state.get("laterality") == "bilateral",
                is_new=state.get("temporal_change") == "new",
                groups=tuple(
                    (group, realiser.positions(meaning, group)) for group in GROUPS if group in values
                ),
            )
            plans = realiser.plans(shape)
            if plans:
                own = _Own(realiser, meaning, own_forms)
                own[NOUN] = realiser.pieces(nouns)
                self.variants.append((plans, own))
                self.weights.append(len(nouns))
        if not self.variants:
            fields = ", ".join(name for name in state if name not in ("finding", "presence")) or "presence"
            raise RadgenError(f"no phrasing states exactly {fields} of '{tag}' ({modality})")
        self.total = sum(self.weights)

    def _pick(self, draw: Draw) -> tuple[Plan, _Own]:
        variants = self.variants
        index = 0
        if len(variants) > 1:
            ticket = draw() * self.total
            while index < len(variants) - 1 and ticket >= self.weights[index]:
                ticket -= self.weights[index]
                index += 1
        plans, own = variants[index]
        same_frame = plans[int(draw() * len(plans))]
        place = int(draw() * len(same_frame))
        plan = same_frame[place]
        if plan.__class__ is _Draft:
            plan = self.realiser.finish(same_frame, place)
        return plan, own  # type: ignore[return-value]  # a draft has become a plan

    def say(self, rng: random.Random) -> Said:
        """Return one sentence; frame, order, synonym and surface forms are drawn independently."""
        draw = rng.random
        plan, own = self._pick(draw)
        (text, mask), *_ = self._fill(self._resolve(plan.parts, own), 1, draw)
        return Said(text[0].upper() + text[1:], mask, plan.frame)

    def say_some(
        self, rng: random.Random, heads: int = 3, tails: int = 3
    ) -> tuple[str, list[tuple[str, int]]]:
        """Return a frame and up to ``heads * tails`` sentences (text, mask) of it.

        Beginnings and ends are drawn, then combined. This is what makes generation fast; whoever pairs
        sentences draws them from many such calls.
        """
        draw = rng.random
        plan, own = self._pick(draw)
        head, tail = plan.halves
        first = self._fill(self._resolve(head, own), heads, draw)
        second = self._fill(self._resolve(tail, own), tails, draw) if tail else _NOTHING
        out = []
        for start, mask in first:
            if start:
                start = start[0].upper() + start[1:]
                out += [(start + end, mask | more) for end, more in second]
            else:
                out += [(end[0].upper() + end[1:], mask | more) for end, more in second]
        return plan.frame, out

    @staticmethod
    def _resolve(parts: tuple[Pieces | str, ...], own: _Own) -> list[tuple[int, Pieces]]:
        """Return the choices of each part with their number; none for an article."""
        return [
            (len(part), part) if part.__class__ is tuple else (0, ()) if part is ARTICLE else own.counted(part)  # type: ignore[arg-type, misc]
            for part in parts
        ]

    def _fill(self, parts: list[tuple[int, Pieces]], times: int, draw: Draw) -> dict[tuple[str, int], None]:
        """Draw up to ``times`` different texts with their masks, in the order in which they came."""
        out: dict[tuple[str, int], None] = {}
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
        """Return how many different choices of plan and forms there are (an upper bound on sentences)."""
        total = 0
        for plans, own in self.variants:
            for same_frame, place in [(same, place) for same in plans for place in range(len(same))]:
                plan = self.realiser.finish(same_frame, place)
                product = 1
                for part in plan.parts:
                    if part is not ARTICLE:
                        product *= len(set(own[part] if isinstance(part, str) else part))
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
