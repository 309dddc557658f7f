"""How a synthetic report says its states: sentences of one finding, of two, and of normal organs."""

from __future__ import annotations

import dataclasses
import random
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from radgen.errors import RadgenError, unknown
from radgen.generators.report_draw import State, in_order
from radgen.generators.report_rules import Rules
from radgen.generators.report_settings import Sentences, Settings, Statement
from radgen.ontology.load import Ontology
from radgen.ontology.schema import Modality, Term
from radgen.templates.forms import centimetres, millimetres
from radgen.templates.phrasings import Leads, Phrasings, agree, load_phrasings
from radgen.templates.realiser import Realiser, Speaker, is_plural, jaccard

#: Speakers are kept for the states that come again; more than these are made anew.
_KEPT = 8192
_JOINABLE = frozenset(("finding", "presence", "laterality", "lobe", "zone", "severity"))


class Voices:
    """The realisers of the two sections and of noun phrases; they serve both modalities.

    Raises:
        RadgenError: the settings name a frame that does not exist.
    """

    def __init__(self, ontology: Ontology, settings: Settings) -> None:
        phrasings = _without_leads(load_phrasings(ontology))
        for section, names in settings.frames.items():
            for name in names:
                if name not in phrasings.frames:
                    raise RadgenError(f"reports.frames.{section}: {unknown('frame', name, phrasings.frames)}")
        self.realisers = {
            section: Realiser(ontology, phrasings, frames=frozenset(names))
            for section, names in {**settings.frames, "phrase": ["bare"]}.items()
        }
        self.capitals = _capitals(ontology, phrasings)
        self.terms = {tag: entry.terms for tag, entry in ontology.findings.items()}


class Speech:
    """Says states in one modality."""

    def __init__(
        self, ontology: Ontology, settings: Settings, rules: Rules, voices: Voices, modality: Modality
    ) -> None:
        self.ontology = ontology
        self.settings = settings
        self.rules = rules
        self.voices = voices
        self.modality = modality
        self._speakers: OrderedDict[Any, Speaker | None] = OrderedDict()
        self._deny_terms: dict[str, list[str]] = {}
        self._pairs = {}
        for pair in settings.joined.pairs:
            first, second = pair.findings
            self._pairs[first, second] = pair

    # --- one finding ---

    def speaker(self, section: str, state: State) -> Speaker | None:
        """Return what says a state in a section, or None where no phrasing does."""
        dims = state.get("size_dims_mm")
        key = (section, *state, *(state.values() if dims is None else map(str, state.values())))
        if key in self._speakers:
            self._speakers.move_to_end(key)
            return self._speakers[key]
        try:
            terms = self.voices.terms[state["finding"]]
            found: Speaker | None = self.voices.realisers[section].speaker(state, self.modality, terms)
        except RadgenError:
            found = None
        self._speakers[key] = found
        if len(self._speakers) > _KEPT:
            self._speakers.popitem(last=False)
        return found

    def say(self, rng: random.Random, state: State) -> tuple[str, State]:
        """Return a sentence of the findings, and the state with any number that the sentence adds."""
        own = self._own(rng, state)
        if own is not None:
            return own
        speaker = self.speaker("findings", state)
        if speaker is None:
            raise RadgenError(
                f"reports.frames.findings: no frame states {', '.join(state)} of '{state['finding']}'"
            )
        return speaker.say(rng).text, state

    def repeat(self, rng: random.Random, state: State, unlike: str) -> str:
        """Return a sentence of the impression, in other words than those of the findings where possible."""
        speaker = self.speaker("impression", state) or self.speaker("findings", state)
        if speaker is None:
            raise RadgenError(
                f"reports.frames.impression: no frame states {', '.join(state)} of '{state['finding']}'"
            )
        wanted = self.settings.impression
        text = speaker.say(rng).text
        for _ in range(wanted.tries - 1):
            if jaccard(text, unlike) <= wanted.most_alike:
                break
            text = speaker.say(rng).text
        return text

    def _own(self, rng: random.Random, state: State) -> tuple[str, State] | None:
        entry = self.ontology.findings[state["finding"]]
        own = self.settings.sentences
        found = (
            own.findings.get(state["finding"]) or own.kinds.get(entry.kind) or own.systems.get(entry.system)
        )
        if found is None or not found.texts or rng.random() >= found.share:
            return None
        text = found.texts[int(rng.random() * len(found.texts))]
        if "{np}" in text.lower():
            phrase = self.phrase(rng, state)
            return None if phrase is None else (text.format(np=phrase, NP=_upper(phrase)), state)
        if len(state) > 2:  # a name alone states nothing but presence
            return None
        term, plural = _term(rng, self.voices.terms[state["finding"]], is_plural(state))
        state, numbers = self._number(rng, found, state)
        text = agree(text.format(term=term, Term=_upper(term), **numbers), plural)
        return text, state

    def _number(self, rng: random.Random, own: Sentences, state: State) -> tuple[State, dict[str, str]]:
        number = own.number
        if number is None:
            return state, {}
        low, high = number.range
        value = low + number.step * int(rng.random() * ((high - low) / number.step + 1))
        said = {"mm": millimetres(value), "cm": centimetres(value)}
        return in_order({**state, number.field: float(value)}), said

    def phrase(self, rng: random.Random, state: State) -> str | None:
        """Return a state as a noun phrase for the inside of a sentence, or None where there is none."""
        speaker = self.speaker("phrase", state)
        if speaker is None:
            return None
        text = speaker.say(rng).text[:-1]
        if "," in text or " with " in text or "(" in text:
            return None
        return text if text.split(" ", 1)[0] in self.voices.capitals else text[0].lower() + text[1:]

    # --- two findings ---

    def join(self, rng: random.Random, first: State, second: State) -> str | None:
        """Return one sentence for two findings, or None where they are better said apart."""
        if not (self._joinable(first) and self._joinable(second)):
            return None
        pair = self._pairs.get((first["finding"], second["finding"]))
        if pair is not None:
            if pair.same_side and first.get("laterality") != second.get("laterality"):
                return None
            texts = pair.texts
        elif second["finding"] in self.rules.associated[first["finding"]]:
            texts = self.settings.joined.any_related
        else:
            return None
        if "laterality" in second and "laterality" not in first:
            return None  # a place at the end could be the first's, too
        axes = self.ontology.findings[second["finding"]].axes
        for field, axis in (("severity", "severity"), ("laterality", "laterality")):
            if field in first and field not in second and axis in axes:
                return None  # a reader could take the first's side or degree for both
        a, b = self.phrase(rng, first), self.phrase(rng, second)
        if a is None or b is None:
            return None
        text = texts[int(rng.random() * len(texts))]
        return text.format(a=a, b=b, A=_upper(a), B=_upper(b))

    def _joinable(self, state: State) -> bool:
        kind = self.ontology.findings[state["finding"]].kind
        return kind == "disease" and state["presence"] == "present" and _JOINABLE.issuperset(state)

    # --- what is denied ---

    def deny(self, rng: random.Random, denials: Sequence[Mapping[str, Any]]) -> str:
        """Return a sentence that denies up to three findings."""
        texts = self.settings.denied[str(len(denials))]
        text = texts[int(rng.random() * len(texts))]
        return text.format(*(self._denied_term(rng, denial["finding"]) for denial in denials))

    def state_normal(self, rng: random.Random, statement: Statement) -> str:
        """Return one of the texts of a normal statement with names in the place of ``{tag}``."""
        text = statement.texts[int(rng.random() * len(statement.texts))]
        if "{" not in text:
            return text
        names = {d["finding"]: self._denied_term(rng, d["finding"]) for d in statement.says}
        return text.format(**names)

    def _denied_term(self, rng: random.Random, tag: str) -> str:
        terms = self._deny_terms.get(tag)
        if terms is None:
            entry = self.ontology.findings[tag]
            every = [entry.preferred, *entry.synonyms]
            plain = [term for term in every if " of " not in term.text and " in " not in term.text]
            terms = self._deny_terms[tag] = [term.text for term in plain or every if term.number != "plural"]
        return terms[int(rng.random() * len(terms))]


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]


def _term(rng: random.Random, terms: Sequence[Term], plural: bool) -> tuple[str, bool]:
    """Draw a name; return it in the number asked for, and whether it is plural."""
    term = terms[int(rng.random() * len(terms))]
    many = term.number == "plural" or (plural and term.plural is not None)
    return term.form(plural), many


def _without_leads(phrasings: Phrasings) -> Phrasings:
    """Return the phrasings without lead-ins: "in addition" has no place in a report's first sentence."""
    leads = Leads(none_weight=0.5, both=[""], xr=[], ct=[])
    return dataclasses.replace(phrasings, layout=phrasings.layout.model_copy(update={"leads": leads}))


def _capitals(ontology: Ontology, phrasings: Phrasings) -> frozenset[str]:
    """Return the words that keep their capital inside a sentence: "Kerley", "COPD", "RUL"."""
    words: set[str] = set()
    for entry in ontology.findings.values():
        for term in entry.terms:
            for text in (term.text, term.form(True)):
                first = text.split(" ", 1)[0]
                if first[:1].isupper():
                    words.add(first)
    for sides in phrasings.words.place.lobe.abbreviations.values():
        words.update(sides.values())
    return frozenset(words)
