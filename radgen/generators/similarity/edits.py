"""Edits of one sentence: what is wrong afterwards, and harmless rewrites (spec §5).

An edit proposes a new sentence and the states that the section must then have; ``discrepancies.py`` keeps it
only if reading the whole section again finds exactly these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from radgen.generators.radsim.policy import canonical
from radgen.generators.similarity.sections import Block, Section, State
from radgen.generators.similarity.settings import DiscrepancySettings
from radgen.ontology.finding import Severity
from radgen.ontology.load import Ontology
from radgen.ontology.schema import FindingEntry, Term

_LEVELS: tuple[Severity, ...] = ("trace", "mild", "moderate", "severe")
_SIZE = re.compile(r"(?P<value>\d+(?:\.\d+)?)(?P<gap>[ -]?)(?P<unit>mm|cm|millimeters?|centimeters?)\b")
_SIDES = {"left": "right", "right": "left"}
_SIDE = re.compile(r"\b(left|right)(?=\b|-)", re.IGNORECASE)
_VOWEL = re.compile(r"^(?:[aeiou]|8|11\b|18\b|hour)", re.IGNORECASE)
_LIKE_A = re.compile(r"^(?:uni|eu|us|one|once)", re.IGNORECASE)


@dataclass(frozen=True)
class Edit:
    """One change: the block it is made in, its new sentence, and the states of the block afterwards."""

    kind: str
    place: int
    before: str
    after: str
    states: tuple[State, ...]


def article(word: str) -> str:
    """Return the indefinite article of a word.

    >>> article("effusion"), article("unilateral"), article("small")
    ('an', 'a', 'a')
    """
    return "an" if _VOWEL.match(word) and not _LIKE_A.match(word) else "a"


def mend_article(text: str, at: int) -> str:
    """Set the article before position ``at`` right.

    >>> mend_article("There is a extensive effusion.", 11)
    'There is an extensive effusion.'
    """
    found = re.search(r"\b([Aa])n? $", text[:at])
    if not found:
        return text
    word = article(text[at:])
    if found[1].isupper():
        word = word.capitalize()
    return f"{text[: found.start()]}{word} {text[at:]}"


def exchange(text: str, start: int, end: int, new: str) -> str:
    """Put a word in the place of another one, with its capital and the right article before it."""
    if text[start].isupper():
        new = new[0].upper() + new[1:]
    return mend_article(text[:start] + new + text[end:], start)


def _editable(section: Section) -> Iterator[tuple[int, Block]]:
    """Yield the single sentences that state something."""
    for place, block in enumerate(section.blocks):
        if block.single and block.states:
            yield place, block


def _before_a_noun(text: str, found: re.Match[str]) -> bool:
    """Whether a word opens a noun phrase: at the start or after an article, and before another word."""
    before = text[: found.start()].lower().split()
    return text[found.end() : found.end() + 2].strip().isalpha() and (
        not before or before[-1] in ("a", "an", "the")
    )


def difference(old: Iterable[State], new: Iterable[State]) -> tuple[list[State], list[State]]:
    """Return the distinct states that are in the first list alone, and those in the second alone."""
    first, second = canonical(old), canonical(new)
    gone = [state for key, state in first.items() if key not in second]
    return gone, [state for key, state in second.items() if key not in first]


def differs_by(kind: str, old: Iterable[State], new: Iterable[State]) -> bool:
    """Whether two lists of states differ by one discrepancy of a kind, and by nothing else."""
    gone, come = difference(old, new)
    if kind == "omission":
        return bool(gone) and not come
    if kind == "addition":
        return bool(come) and not gone
    if kind in ("synonym", "reordering", "paraphrase"):
        return not gone and not come
    if kind == "condensation":  # shorter by denials alone
        return not come and all(state.get("presence") == "absent" for state in gone)
    if len(gone) != 1 or len(come) != 1:
        return False
    if kind == "presence":
        same = gone[0]["finding"] == come[0]["finding"]
        return same and {gone[0].get("presence"), come[0].get("presence")} == {"present", "absent"}
    return gone[0] | {_FIELD[kind]: None} == come[0] | {_FIELD[kind]: None}


#: Field that each kind of discrepancy changes.
_FIELD = {
    "laterality": "laterality",
    "severity": "severity",
    "size": "size_mm",
    "temporal": "temporal_change",
}


def _only(block: Block, field: str) -> State | None:
    """Return the only state of a sentence that states a field, if it is there; None otherwise."""
    found = [state for state in block.states if state.get(field) is not None]
    return found[0] if len(found) == 1 and found[0].get("presence") == "present" else None


def _with(block: Block, old: State, **changes: Any) -> tuple[State, ...]:
    return tuple({**state, **changes} if state is old else state for state in block.states)


class Edits:
    """Proposes edits of a section, in a random order."""

    def __init__(self, ontology: Ontology, options: DiscrepancySettings) -> None:
        self.ontology, self.options = ontology, options
        self.kinds: dict[str, Callable[[Section, Random], Iterator[Edit]]] = {
            "laterality": self.laterality,
            "presence": self.presence,
            "severity": self.severity,
            "size": self.size,
            "temporal": self.temporal,
            "synonym": self.synonym,
        }

    def propose(self, kind: str, section: Section, rng: Random) -> list[Edit]:
        """Return proposals of one kind, shuffled."""
        found = list(self.kinds[kind](section, rng))
        rng.shuffle(found)
        return found

    # --- what makes a report wrong ---

    def laterality(self, section: Section, rng: Random) -> Iterator[Edit]:
        """Left for right; the sentence has one side, of one finding, and the place is on both sides."""
        for place, block in _editable(section):
            sides = list(_SIDE.finditer(block.text))
            state = _only(block, "laterality")
            if len(sides) != 1 or state is None or state.get("lobe") in ("middle", "lingula"):
                continue
            side = state["laterality"]
            if side not in _SIDES or sides[0][1].lower() != side or state.get("asymmetry"):
                continue
            text = exchange(block.text, sides[0].start(), sides[0].end(), _SIDES[side])
            yield Edit("laterality", place, block.text, text, _with(block, state, laterality=_SIDES[side]))

    def presence(self, section: Section, rng: Random) -> Iterator[Edit]:
        """A finding for its denial, in a sentence about nothing else.

        A restricted negation ("no large effusion") denies a variant only and is left alone.
        """
        for place, block in _editable(section):
            if len(block.states) != 1:
                continue
            state = block.states[0]
            entry = self.ontology.findings[state["finding"]]
            term = self._term_in(block.text, entry) or entry.preferred
            if state.get("presence") == "present" and entry.kind != "device":
                pattern = self.options.denial[int(rng.random() * len(self.options.denial))]
                text = pattern.format(term=term.text)
                after: State = {"finding": state["finding"], "presence": "absent"}
            elif set(state) == {"finding", "presence"} and state["presence"] == "absent":
                pattern = self.options.statement[int(rng.random() * len(self.options.statement))]
                indefinite = f"{article(term.text)} " if term.number == "count" else ""
                text = pattern.format(
                    term=term.text,
                    a=indefinite,
                    A=indefinite.capitalize(),
                    **{"is": "are" if term.number == "plural" else "is"},
                )
                after = {"finding": state["finding"], "presence": "present"}
            else:
                continue
            yield Edit("presence", place, block.text, text[0].upper() + text[1:], (after,))

    def severity(self, section: Section, rng: Random) -> Iterator[Edit]:
        """Another degree of a finding that is there."""
        for place, block in _editable(section):
            state = _only(block, "severity")
            if state is None or state.get("severity_min"):
                continue
            entry = self.ontology.findings[state["finding"]]
            scales = (
                self.options.severity.degree
                if entry.severity_words == "degree"
                else self.options.severity.amount
            )
            allowed = entry.severities or list(_LEVELS)
            for scale in scales:
                word = scale[_LEVELS.index(state["severity"])]
                places = list(re.finditer(rf"\b{word}\b", block.text, re.IGNORECASE))
                if len(places) != 1:
                    continue
                for name, other in zip(_LEVELS, scale, strict=True):
                    if name == state["severity"] or name not in allowed:
                        continue
                    text = exchange(block.text, places[0].start(), places[0].end(), other)
                    yield Edit("severity", place, block.text, text, _with(block, state, severity=name))

    def size(self, section: Section, rng: Random) -> Iterator[Edit]:
        """Another size, plausible for the finding and written as the old one was."""
        for place, block in _editable(section):
            state = _only(block, "size_mm")
            places = list(_SIZE.finditer(block.text))
            if (
                state is None
                or len(places) != 1
                or any(
                    state.get(name)
                    for name in ("size_dims_mm", "size_range_mm", "prior_size_mm", "distance_mm")
                )
            ):
                continue
            found = places[0]
            scale = 10.0 if found["unit"].startswith("c") else 1.0
            if abs(float(found["value"]) * scale - state["size_mm"]) > 1e-6:
                continue
            low, high = self.ontology.findings[state["finding"]].size_mm or [0.0, 0.0]
            digits = len(found["value"].partition(".")[2])
            for factor in self.options.size_factors:
                value = round(float(found["value"]) * factor, digits)
                if not low <= value * scale <= high or value * scale == state["size_mm"]:
                    continue
                text = block.text[: found.start()] + f"{value:.{digits}f}" + block.text[found.end("value") :]
                text = mend_article(text, found.start())
                yield Edit("size", place, block.text, text, _with(block, state, size_mm=value * scale))

    def temporal(self, section: Section, rng: Random) -> Iterator[Edit]:
        """Another change over time."""
        verbs = tuple(self.options.verbs)
        values = {"stable": "stable", "unchanged": "stable", "new": "new"}
        for place, block in _editable(section):
            state = _only(block, "temporal_change")
            if state is None or self.ontology.findings[state["finding"]].kind == "device":
                continue
            if set(re.findall(r"[a-z]+", block.text.lower())) & set(self.options.unchanging):
                continue
            for pair in self.options.temporal:
                for old, new in (pair, pair[::-1]):
                    places = list(re.finditer(rf"\b{old}\b", block.text, re.IGNORECASE))
                    if len(places) != 1:
                        continue
                    before = block.text[: places[0].start()].lower().split()
                    if {old, new} & set(values) and before and before[-1].strip(",") in verbs:
                        continue
                    if "new" in (old, new) and not _before_a_noun(block.text, places[0]):
                        continue
                    text = exchange(block.text, places[0].start(), places[0].end(), new)
                    change = values.get(new) or (
                        "increased"
                        if new in ("increased", "increasing", "worsening", "worsened", "larger")
                        else "decreased"
                    )
                    yield Edit(
                        "temporal", place, block.text, text, _with(block, state, temporal_change=change)
                    )

    # --- harmless ---

    def synonym(self, section: Section, rng: Random) -> Iterator[Edit]:
        """Another name of the same finding, in the same number."""
        for place, block in _editable(section):
            for tag in sorted(block.named):
                entry = self.ontology.findings[tag]
                for term, form, found in self._found(block.text, entry):
                    for other in entry.terms:
                        same = other.number == term.number and other.text != term.text
                        plural = form == term.plural
                        if not same or (plural and not other.plural):
                            continue
                        text = exchange(block.text, found.start(), found.end(), other.form(plural))
                        yield Edit("synonym", place, block.text, text, block.states)

    def _found(self, text: str, entry: FindingEntry) -> Iterator[tuple[Term, str, re.Match[str]]]:
        """Yield the terms that stand in a sentence once, the longest first."""
        forms = [(term, form) for term in entry.terms for form in (term.text, term.plural) if form]
        for term, form in sorted(forms, key=lambda item: -len(item[1])):
            places = list(re.finditer(rf"(?<![\w-]){re.escape(form)}(?![\w-])", text, re.IGNORECASE))
            if len(places) == 1:
                yield term, form, places[0]
                return

    def _term_in(self, text: str, entry: FindingEntry) -> Term | None:
        """Return the term by which a sentence names a finding, in the singular."""
        return next((term for term, _, _ in self._found(text, entry)), None)
