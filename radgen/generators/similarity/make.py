"""From reports to folders of scored pairs and mined triplets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson

from radgen.errors import DatasetError, unknown
from radgen.generators.radsim.coded import Scorer
from radgen.generators.similarity.corpus import Corpus, build, jaccard
from radgen.generators.similarity.folder import (
    MadeFromReports,
    Spec,
    existing,
    identity,
    line_of,
    source_digest,
    write,
)
from radgen.generators.similarity.index import mixed
from radgen.generators.similarity.pairs import Mined, mine
from radgen.generators.similarity.settings import Level, settings
from radgen.generators.similarity.source import ReportStates
from radgen.generators.similarity.triplets import Triplets, mine_triplets
from radgen.generators.splits import SPLITS, Split, Splitter
from radgen.ontology.load import load_ontology
from radgen.ontology.radsim import Policy, load_policy

PAIR_LEVELS = ("sentence", "findings", "impression")
TRIPLET_LEVELS = ("report", "sentence")
PAIR_COLUMNS = (
    "sentence1",
    "sentence2",
    "score",
    "id",
    "family",
    "level",
    "state1",
    "state2",
    "agreement",
    "family_bonus",
    "organ_bonus",
    "jitter",
    "report1",
    "report2",
)
TRIPLET_COLUMNS = (
    "anchor",
    "positive",
    "negative",
    "id",
    "family",
    "level",
    "contrast",
    "positive_target",
    "negative_target",
    "anchor_state",
    "positive_state",
    "negative_state",
    "word_overlap",
    "anchor_report",
    "positive_report",
    "negative_report",
)
DESCRIPTIONS = {
    "sentence1": "a text of one report",
    "sentence2": "a text of another report",
    "score": "RadSim of the two, in [-1, 1]: agreement + family_bonus + organ_bonus + jitter, clipped",
    "family": "radsim or mined",
    "level": "sentence, findings, impression or report",
    "state1": "what the first text states: a list of canonical findings",
    "state2": "what the second text states",
    "agreement": "weighted agreement of the attributes",
    "family_bonus": "what related findings add",
    "organ_bonus": "what different findings of one organ system add",
    "jitter": "reproducible noise, a hash of both lists of findings",
    "report1": "id of the first report",
    "report2": "id of the second report",
    "anchor": "a text of a report",
    "positive": "a text of another report that agrees with it",
    "negative": "a text that shares labels, a family or words, and agrees less",
    "contrast": "what the negative was chosen to differ in, or hardest: the most alike that agrees less",
    "positive_target": "RadSim of positive and anchor",
    "negative_target": "RadSim of negative and anchor",
    "anchor_state": "what the anchor states: a list of canonical findings",
    "word_overlap": "word Jaccard of anchor and negative",
    "anchor_report": "id of its report",
    "positive_report": "id of its report",
    "negative_report": "id of its report",
}


@dataclass(frozen=True)
class ReportOrder:
    """What to make of which reports.

    Attributes:
        rows: over all splits; None is the paper's volume for so many reports.
        extracted, truth: where the findings come from (see ``ReportStates``).
    """

    reports: Path
    rows: int | None = None
    seed: int = 42
    extracted: Path | None = None
    truth: bool = False
    ontology_files: tuple[str, ...] = ()

    def command(self, verb: str, *more: str) -> str:
        """Return the command line, without what does not change the rows."""
        words = [f"radgen {verb}", self.reports.name, *more]
        words += [f"--n {self.rows}"] if self.rows is not None else []
        words += [f"--seed {self.seed}"]
        words += [f"--extracted {self.extracted.name}"] if self.extracted else []
        words += ["--truth"] if self.truth else []
        words += [f"--ontology {Path(path).name}" for path in self.ontology_files]
        return " ".join(words)

    def digests(self) -> list[str]:
        """Return the sha256 of what is read."""
        return [source_digest(path) for path in (self.reports, self.extracted) if path is not None]

    def policy(self) -> Policy:
        """Return RadSim's policy over the ontology of the order."""
        return load_policy(load_ontology(self.ontology_files))

    def reads(self, policy: Policy) -> ReportStates:
        """Return the reports with their findings."""
        return ReportStates(self.reports, policy.ontology, self.extracted, self.truth)


def volume(order: ReportOrder, per_report: float, corpus: Corpus, policy: Policy) -> dict[Split, int]:
    """Return the rows of each split: as asked for, or the paper's for so many reports."""
    total = order.rows if order.rows is not None else max(1, round(per_report * corpus.total))
    return Splitter(policy.ontology.axes.splits).quotas(total)


def make_pairs(
    order: ReportOrder,
    level: str,
    out: Path,
    *,
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> MadeFromReports:
    """Write the scored pairs of one level to ``out/radsim/<level>``.

    Raises:
        DatasetError: the level is unknown, there are fewer pairs than ``--n`` asks for, or nothing can be written.
    """
    if level not in PAIR_LEVELS:
        raise DatasetError(unknown("--level", level, PAIR_LEVELS))
    policy, sources, options = order.policy(), order.digests(), settings().pairs
    spec = Spec(
        family="radsim",
        name=level,
        command=order.command("pairs", f"--level {level}"),
        seed=order.seed,
        columns=PAIR_COLUMNS,
        texts=("sentence1", "sentence2"),
        label="score",
        kinds={"state1": "states", "state2": "states"}
        | dict.fromkeys(("agreement", "family_bonus", "organ_bonus", "jitter"), "number"),
        target="score",
        about=f"Pairs of texts ({level}) of different reports with RadSim as their score.",
        descriptions=DESCRIPTIONS,
    )
    fingerprint = identity(spec, policy, order.rows, sources, truth=order.truth)
    if found := existing(out, spec, fingerprint, force):
        return found
    reads = order.reads(policy)
    corpus = build(reads, cast(Level, level), policy, progress=progress)
    scorer = Scorer(corpus.coder, corpus.coded)
    quotas = volume(order, options.per_report[cast(Any, level)], corpus, policy)
    mined = {split: mine(corpus, scorer, split, quotas[split], order.seed, options) for split in SPLITS}
    counts = _counts(corpus) | {"candidates": sum(part.candidates for part in mined.values())}
    rejected = reads.rejected + corpus.dropped + sum((part.rejected for part in mined.values()), Counter())
    got = {split: len(part) for split, part in mined.items()}
    notes = _short(order, quotas, got, spec, rejected)
    rows = (row for split in SPLITS for row in _pair_rows(corpus, split, mined[split], spec))
    return write(
        out,
        spec,
        fingerprint,
        rows,
        policy,
        states=reads.states,
        rejected=rejected,
        counts=counts,
        sources=sources,
        notes=notes,
        constants={"pairs": options.model_dump()},
    )


def make_triplets(
    order: ReportOrder,
    level: str,
    out: Path,
    *,
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> MadeFromReports:
    """Write the mined triplets of one level to ``out/mined/<level>``; errors as ``make_pairs``."""
    if level not in TRIPLET_LEVELS:
        raise DatasetError(unknown("--level", level, TRIPLET_LEVELS))
    policy, sources, options = order.policy(), order.digests(), settings().triplets
    states = ("anchor_state", "positive_state", "negative_state")
    spec = Spec(
        family="mined",
        name=level,
        command=order.command("triplets", f"--level {level}"),
        seed=order.seed,
        columns=TRIPLET_COLUMNS,
        texts=("anchor", "positive", "negative"),
        label=None,
        kinds=dict.fromkeys(states, "states") | {"word_overlap": "number"},
        target="negative_target",
        about=f"Triplets of texts ({level}) mined by similarity gap: the positive's RadSim against the anchor is higher"
        f" than the negative's by at least {options.min_gap:g}; negatives share labels, a family or words.",
        descriptions=DESCRIPTIONS,
    )
    fingerprint = identity(spec, policy, order.rows, sources, truth=order.truth)
    if found := existing(out, spec, fingerprint, force):
        return found
    reads = order.reads(policy)
    corpus = build(reads, cast(Level, level), policy, progress=progress)
    scorer = Scorer(corpus.coder, corpus.coded)
    quotas = volume(order, options.per_report[cast(Any, level)], corpus, policy)
    mined = {split: mine_triplets(corpus, scorer, split, quotas[split], order.seed, options) for split in SPLITS}
    rejected = reads.rejected + corpus.dropped + sum((part.rejected for part in mined.values()), Counter())
    notes = _short(order, quotas, {split: len(part) for split, part in mined.items()}, spec, rejected)
    contrasts = Counter(
        _contrast(options.contrasts, number) for part in mined.values() for number in part.contrast.tolist()
    )
    counts = _counts(corpus) | {f"contrast {name}": count for name, count in sorted(contrasts.items())}
    rows = (
        row for split in SPLITS for row in _triplet_rows(corpus, split, mined[split], spec, options.contrasts)
    )
    return write(
        out,
        spec,
        fingerprint,
        rows,
        policy,
        states=reads.states,
        rejected=rejected,
        counts=counts,
        sources=sources,
        notes=notes,
        constants={"triplets": options.model_dump()},
    )


def _counts(corpus: Corpus) -> dict[str, int]:
    return {"reports": corpus.total, "texts": len(corpus.texts)}


def _short(
    order: ReportOrder, quotas: dict[Split, int], got: dict[Split, int], spec: Spec, rejected: Counter[str]
) -> list[str]:
    """Say what is missing of the volume; an error where rows were asked for by number."""
    missing = {split: (got[split], quotas[split]) for split in SPLITS if got[split] < quotas[split]}
    if not missing:
        return []
    text = ", ".join(f"{split} {have:,} of {want:,}" for split, (have, want) in missing.items())
    if order.rows is not None:
        took = "; ".join(f"{count:,} {reason}" for reason, count in rejected.most_common(3))
        raise DatasetError(f"{spec.family}/{spec.name}: these reports give only {text} rows (left out: {took})")
    return [f"fewer rows than the recipe's volume for so many reports: {text}"]


def _contrast(names: list[str], number: int) -> str:
    return names[number] if number >= 0 else "hardest"


def _dumped(corpus: Corpus) -> Callable[[int], bytes]:
    """Return what writes a text as JSON; each text once."""
    known: dict[int, bytes] = {}

    def dumped(number: int) -> bytes:
        if number not in known:
            known[number] = orjson.dumps(corpus.texts[number])
        return known[number]

    return dumped


def _pair_rows(corpus: Corpus, split: Split, mined: Mined, spec: Spec) -> Iterator[tuple[Split, bytes]]:
    dumped = _dumped(corpus)
    scores = mined.scores
    order = np.argsort(mixed(mined.first * 0x9E37 + mined.second), kind="stable")
    columns = zip(
        *(
            values[order].tolist()
            for values in (
                mined.first,
                mined.second,
                scores.value,
                scores.agreement,
                scores.family,
                scores.organ,
                scores.jitter,
            )
        ),
        strict=True,
    )
    for i, j, value, agreement, family, organ, noise in columns:
        texts = {"sentence1": dumped(i), "sentence2": dumped(j), "score": orjson.dumps(value)}
        rest = {
            "family": spec.family,
            "level": spec.name,
            "state1": orjson.Fragment(corpus.states_json(i)),
            "state2": orjson.Fragment(corpus.states_json(j)),
            "agreement": agreement,
            "family_bonus": family,
            "organ_bonus": organ,
            "jitter": noise,
            "report1": corpus.reports[i],
            "report2": corpus.reports[j],
        }
        yield split, line_of(spec.name, texts, rest)


def _triplet_rows(
    corpus: Corpus, split: Split, mined: Triplets, spec: Spec, contrasts: list[str]
) -> Iterator[tuple[Split, bytes]]:
    dumped = _dumped(corpus)
    order = np.argsort(mixed(mined.anchor * 0x9E37 + mined.negative), kind="stable")
    columns = zip(
        *(
            values[order].tolist()
            for values in (
                mined.anchor,
                mined.positive,
                mined.negative,
                mined.positive_score,
                mined.negative_score,
                mined.contrast,
            )
        ),
        strict=True,
    )
    for a, p, n, high, low, contrast in columns:
        texts = {"anchor": dumped(a), "positive": dumped(p), "negative": dumped(n)}
        rest = {
            "family": spec.family,
            "level": spec.name,
            "contrast": _contrast(contrasts, contrast),
            "positive_target": high,
            "negative_target": low,
            "anchor_state": orjson.Fragment(corpus.states_json(a)),
            "positive_state": orjson.Fragment(corpus.states_json(p)),
            "negative_state": orjson.Fragment(corpus.states_json(n)),
            "word_overlap": jaccard(corpus.texts[a], corpus.texts[n]),
            "anchor_report": corpus.reports[a],
            "positive_report": corpus.reports[p],
            "negative_report": corpus.reports[n],
        }
        yield split, line_of(spec.name, texts, rest)
