"""Sentences where no reports are given: synthetic reports, and one-sentence reports about each finding.

Reports deny few findings, and always the same ones, so that some findings would have one state only. The
further sentences are radgen's own phrasings and the patterns of ``states.yaml``; what they state is read by
the rules, like any report's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

from radgen.errors import RadgenError
from radgen.generators.report_draw import Describer
from radgen.generators.report_settings import load_settings as load_report_settings
from radgen.generators.reports import SyntheticReports
from radgen.generators.similarity.source import SECTIONS, Read
from radgen.generators.states.corpus import extractor
from radgen.generators.states.settings import StatesSettings, slots
from radgen.ontology.load import Ontology
from radgen.ontology.schema import Modality, Term
from radgen.templates.realiser import Realiser, article

_TRIES = 12


class SyntheticSource:
    """Synthetic reads: the same for the same seed, findings and ontology.

    Attributes:
        states: how the findings of the reads are known: they are read by the rules.
    """

    states = "rules"

    def __init__(
        self, ontology: Ontology, findings: Sequence[str], seed: int, options: StatesSettings
    ) -> None:
        self.ontology = ontology
        self.findings = tuple(findings)
        self.seed = seed
        self.options = options.synthetic
        self._rules = extractor(ontology)
        self._realiser = Realiser(ontology)
        self._report_settings = load_report_settings(ontology)
        self._describers: dict[tuple[str, Modality], Describer] = {}

    def __iter__(self) -> Iterator[Read]:
        """Yield the reads: reports first, then statements of each finding."""
        reports = SyntheticReports(self.ontology, self.seed, self.options.modality)
        for index in range(self.options.reports):
            row = reports.row(index)
            yield self._read(row["id"], {name: row[name] for name in SECTIONS if row[name]})
        for tag in self.findings:
            yield from self._statements(tag)
        yield from self._nothing()

    def _read(self, identifier: str, sections: dict[str, str]) -> Read:
        states = {name: self._rules.states(text, name) for name, text in sections.items()}
        return Read(identifier, sections, states, None, None)

    def _statements(self, tag: str) -> Iterator[Read]:
        """Yield one-sentence reports about a finding; one that cannot be said in a state has none of it."""
        wanted = self.options.statements
        kinds = [("present", wanted), ("absent", wanted), ("indeterminate", self.options.doubtful)]
        for kind, count in kinds:
            for index in range(count):
                name = f"{tag}-{kind}-{self.seed}-{index + 1:05d}"
                text = self._text(_random(name), tag, kind)
                if text is not None:
                    yield self._read(name, {"findings": text})

    def _nothing(self) -> Iterator[Read]:
        """Yield one-sentence reports that name none of the findings."""
        for index in range(self.options.nothing if self.options.unnamed else 0):
            name = f"unnamed-{self.seed}-{index + 1:05d}"
            rng = _random(name)
            pattern = rng.choice(self.options.unnamed)
            yield self._read(name, {"findings": _upper(pattern.format(**self._words(rng, pattern)))})

    def _words(self, rng: random.Random, pattern: str) -> dict[str, str]:
        """Return words for the slots of a pattern that are lists of the settings."""
        lists = self.options.words
        return {slot: rng.choice(lists[slot]) for slot in slots(pattern) if slot in lists}

    def _text(self, rng: random.Random, tag: str, kind: str) -> str | None:
        modality: Modality = rng.choice(self.ontology.findings[tag].modalities)
        if kind != "indeterminate" and rng.random() < self.options.patterns_share:
            patterns = self._patterns(tag, kind)
            if patterns:  # a user's list may hold none that this finding can fill
                return self._pattern(rng, tag, rng.choice(patterns))
        for _ in range(_TRIES):
            state = self._state(rng, tag, kind, modality)
            try:
                return self._realiser.speaker(state, modality).say(rng).text
            except RadgenError:
                continue  # no phrasing states just these fields: draw others
        return None

    def _state(self, rng: random.Random, tag: str, kind: str, modality: Modality) -> dict[str, Any]:
        if kind == "absent":
            return {"finding": tag, "presence": "absent"}
        if kind == "indeterminate":
            return {"finding": tag, "presence": "indeterminate", "certainty": "cannot_exclude"}
        describer = self._describers.get((tag, modality))
        if describer is None:
            describer = Describer(self.ontology, self._report_settings, tag, modality)
            self._describers[tag, modality] = describer
        state: dict[str, Any] = describer.describe(rng)
        return state if state["presence"] == "present" else {"finding": tag, "presence": "present"}

    def _patterns(self, tag: str, kind: str) -> list[str]:
        """Return the patterns that a finding can fill."""
        lacking = {slot for slot, phrases in self._phrases(tag).items() if not phrases}
        lacking |= {"d", "q"} if not self._differentials(tag) else set()
        others = min(self.options.others_most, len(self.findings) - 1)
        lacking |= {str(number) for number in (1, 2) if number > others}
        patterns = self.options.absent if kind == "absent" else self.options.present
        return [pattern for pattern in patterns if lacking.isdisjoint(slots(pattern))]

    def _phrases(self, tag: str) -> dict[str, list[str]]:
        """Return what can fill the slots r and n: phrases that stand alone."""
        entry = self.ontology.findings[tag]
        out = set(self.options.not_alone)
        return {
            slot: [phrase for phrase in phrases if phrase not in out]
            for slot, phrases in (("r", entry.recognised), ("n", entry.normal))
        }

    def _differentials(self, tag: str) -> list[tuple[list[str], list[str]]]:
        """Return the groups of a finding: its other findings that are asked for, and the group's words."""
        groups = [group for group in self.options.differential if tag in group.findings]
        others = [[one for one in group.findings if one in self.findings and one != tag] for group in groups]
        return [(left, group.words) for left, group in zip(others, groups, strict=True) if left]

    def _pattern(self, rng: random.Random, tag: str, pattern: str) -> str:
        others = [other for other in self.findings if other != tag]
        chosen = rng.sample(others, min(2, len(others)))
        terms = [self._term(rng, name) for name in (tag, *chosen)]
        words = [term.text for term in terms]
        first = f"{article(words[0])} {words[0]}" if terms[0].number == "count" else words[0]
        drawn = {slot: rng.choice(texts) for slot, texts in self._phrases(tag).items() if texts}
        drawn |= self._words(rng, pattern)
        if not {"d", "q"}.isdisjoint(slots(pattern)):
            alternatives, before = rng.choice(self._differentials(tag))
            drawn |= {"d": self._term(rng, rng.choice(alternatives)).text, "q": rng.choice(before)}
        return _upper(pattern.format(*words, a0=first, A0=_upper(first), **drawn))

    def _term(self, rng: random.Random, tag: str) -> Term:
        terms: Sequence[Term] = self.ontology.findings[tag].terms
        return rng.choice([term for term in terms if term.number != "plural"] or terms)


def _random(name: str) -> random.Random:
    """Return the random numbers of a report of that name, whatever else is made."""
    return random.Random(int.from_bytes(blake2b(f"states\0{name}".encode(), digest_size=8).digest(), "big"))


def _upper(text: str) -> str:
    return text[0].upper() + text[1:]
