"""Sentences of reports by finding and state, each in the split of its phrasing (spec §11)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import orjson

from radgen.errors import DatasetError
from radgen.extract.rules import RulesExtractor, default_extractor
from radgen.extract.sentences import sentences
from radgen.generators.similarity.corpus import sentence_units
from radgen.generators.similarity.source import Placed, Read
from radgen.generators.splits import Split, Splitter, text_hash
from radgen.generators.states.phrasing import Phrasings, phrasing_id
from radgen.generators.states.settings import StatesSettings
from radgen.ontology.load import Ontology

#: The states of a finding, and what stands beside them: a sentence that leaves it open.
STATES = ("present", "absent")
KEPT_APART = "indeterminate"
#: What a sentence says of the findings if it names none of them, and what stands in the finding's place.
UNNAMED, ANY = "unnamed", "any"
_RESTRICTED, _MIXED = "denies only a variant of the finding", "states both states of the finding"


def extractor(ontology: Ontology) -> RulesExtractor:
    """Return the rules over an ontology; those over the packaged one are made once."""
    return RulesExtractor(ontology) if ontology.user_sources else default_extractor()


def state_of(states: Iterable[Mapping[str, Any]], tag: str, options: StatesSettings) -> str | None:
    """Return what a sentence says of a finding: present, absent or indeterminate; None: nothing.

    An absence with further fields denies only a variant of the finding ("no new nodule"); a sentence can also
    state one place to be affected and deny another. Neither is a state: the reason is returned instead.
    """
    found = set()
    for state in states:
        if state["finding"] == tag:
            presence = str(state.get("presence", "present"))
            found.add(_RESTRICTED if presence == "absent" and not _plain(state, options) else presence)
    if not found:
        return None
    return found.pop() if len(found) == 1 else _MIXED


def _plain(state: Mapping[str, Any], options: StatesSettings) -> bool:
    """Whether an absence denies the finding as a whole."""
    more = state.keys() - {"finding", "presence", "evidence", "section"}
    if state.get("temporal_change", "") not in ("", *options.plain_changes):
        return False
    if state.get("temporal_change") in options.plain_changes:
        more -= {"laterality", "lobe", "zone"}  # "the left effusion has resolved": the one that there was
    return more <= set(options.plain_absence)


class Paperwork:
    """Recognises sentences about the examination and its administration (``states.yaml``)."""

    def __init__(self, options: StatesSettings) -> None:
        self._kinds = [
            (name, _joined(name, getattr(options, name))) for name in ("acquisition", "administrative")
        ]

    def kind(self, text: str) -> str | None:
        """Return which kind of sentence it is, None for one about findings."""
        return next((name for name, pattern in self._kinds if pattern and pattern.search(text)), None)


def _joined(name: str, patterns: Sequence[str]) -> re.Pattern[str] | None:
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise DatasetError(f"states.{name}: '{pattern}' is no regular expression: {error}") from None
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE) if patterns else None


@dataclass
class StateCorpus:
    """Distinct sentences, with the state of each finding that they name.

    Attributes:
        texts, reports: a sentence and the id of its first report.
        phrasings: the name of each one's phrasing.
        splits: of each.
        states: all that each states, as JSON.
        said: by number of a sentence, (finding, present | absent | indeterminate) of the chosen findings;
            (any, unnamed) of a sentence that names none of them.
        dropped: what was left out, by reason.
        total: reports read.
    """

    findings: tuple[str, ...]
    texts: list[str] = field(default_factory=list)
    reports: list[str] = field(default_factory=list)
    phrasings: list[str] = field(default_factory=list)
    splits: list[Split] = field(default_factory=list)
    states: list[bytes] = field(default_factory=list)
    said: list[list[tuple[str, str]]] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    total: int = 0
    _members: dict[tuple[str, str, Split], list[int]] = field(default_factory=dict)

    def add(
        self, text: str, report: str, phrasing: str, split: Split, states: bytes, said: list[tuple[str, str]]
    ) -> None:
        """Add a sentence."""
        for tag, state in said:
            self._members.setdefault((tag, state, split), []).append(len(self.texts))
        self.texts.append(text)
        self.reports.append(report)
        self.phrasings.append(phrasing)
        self.splits.append(split)
        self.states.append(states)
        self.said.append(said)

    def members(self, tag: str, state: str, split: Split) -> list[int]:
        """Return the numbers of the sentences of a finding, a state and a split."""
        return self._members.get((tag, state, split), [])

    def counts(self) -> dict[str, int]:
        """Return how many sentences there are of each finding and state."""
        found = Counter(f"{tag} {state}" for said in self.said for tag, state in said)
        order = [f"{tag} {state}" for tag in self.findings for state in (*STATES, KEPT_APART)]
        return {name: found[name] for name in (*order, f"{ANY} {UNNAMED}")}


def build(
    reads: Iterable[Read],
    findings: tuple[str, ...],
    ontology: Ontology,
    options: StatesSettings,
    *,
    reread: bool,
    progress: Callable[[int], None] = lambda _: None,
) -> StateCorpus:
    """Read reports into sentences by finding and state; memory holds the distinct sentences.

    A string of train whose own hash belongs to another split (as in every other dataset) is left out, so that
    no judging set has a string of it.

    Args:
        reread: take only sentences that, read alone by the rules, say the same of the chosen findings.
    """
    corpus = StateCorpus(findings)
    rules = extractor(ontology)
    phrasings = Phrasings(rules, Splitter(options.splits))
    own = Splitter(ontology.axes.splits)
    seen: set[int] = set()
    for text, states, report in _sentences(reads, corpus, Paperwork(options), progress):
        value = text_hash(text)
        if value in seen:
            corpus.dropped["said before"] += 1
            continue
        said = [(tag, state) for tag in findings if (state := state_of(states, tag, options)) is not None]
        if reread:
            alone = [state for state, _ in rules.states(text)]
            if said != [(tag, state) for tag in findings if (state := state_of(alone, tag, options))]:
                corpus.dropped["reads differently alone"] += 1
                continue
        said = said or [(ANY, UNNAMED)]
        kept = [(tag, state) for tag, state in said if state in (*STATES, KEPT_APART, UNNAMED)]
        if len(kept) < len(said):
            corpus.dropped[next(state for _, state in said if state in (_RESTRICTED, _MIXED))] += 1
            continue
        phrasing = phrasings.of(text)
        split = phrasings.split(phrasing)
        if split == "train" and own.of_hash(value) != "train":
            corpus.dropped["its string belongs to validation or test in other datasets"] += 1
            continue
        seen.add(value)
        corpus.add(text, report, phrasing_id(phrasing), split, orjson.dumps(states), kept)
    return corpus


def _sentences(
    reads: Iterable[Read], corpus: StateCorpus, paperwork: Paperwork, progress: Callable[[int], None]
) -> Iterator[tuple[str, list[dict[str, Any]], str]]:
    """Yield (sentence, what it states, report); sentences that share a finding with another are left out."""
    for read in reads:
        corpus.total += 1
        if corpus.total % 500 == 0:
            progress(corpus.total)
        for name, text in read.sections.items():
            placed = read.states.get(name, [])
            for sentence, states in chain(sentence_units(text, placed), _stating_nothing(text, placed)):
                kind = paperwork.kind(sentence)
                if kind is not None:
                    corpus.dropped[f"{kind} sentence"] += 1
                else:
                    yield sentence, states, read.id


def _stating_nothing(text: str, placed: list[Placed]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the sentences of a section that state no finding at all."""
    for low, high in sentences(text):
        if not any(start < high and low < end for _, (start, end) in placed):
            yield " ".join(text[low:high].split()), []


def require_states(corpus: StateCorpus, options: StatesSettings, split: Split = "train") -> None:
    """Check that every finding has both states in a split.

    Raises:
        DatasetError: names the findings that have not, with what they have and what helps.
    """
    lacking = []
    good = []
    for tag in corpus.findings:
        have = {}
        for state in STATES:
            members = corpus.members(tag, state, split)
            have[state] = min(len(members), len({corpus.phrasings[number] for number in members}))
        short = [f"{have[state]} {state}" for state in STATES if have[state] < options.least]
        if short:
            lacking.append(f"{tag} ({', '.join(short)})")
        else:
            good.append(tag)
    if lacking:
        rest = f"leave it out (--findings {','.join(good)}), " if good else ""
        raise DatasetError(
            f"too few phrasings of a state: {'; '.join(lacking)}; training needs {options.least} of each:"
            f" give more reports, {rest}or add synthetic sentences with --synthetic"
        )
    if not corpus.members(ANY, UNNAMED, split):
        raise DatasetError(
            "no training sentence names none of the findings, and some are needed to tell them apart: give"
            " more reports, fewer --findings, or add synthetic sentences with --synthetic"
        )


__all__ = [
    "ANY",
    "KEPT_APART",
    "STATES",
    "UNNAMED",
    "Paperwork",
    "StateCorpus",
    "build",
    "require_states",
    "state_of",
]
