"""From reports to folders of scored pairs and mined triplets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from radgen.errors import DatasetError, unknown
from radgen.generators.radsim.coded import Scorer
from radgen.generators.similarity.corpus import Corpus, build
from radgen.generators.similarity.folder import (
    MadeFromReports,
    Spec,
    existing,
    identity,
    source_digest,
    write,
)
from radgen.generators.similarity.lines import (
    DESCRIPTIONS,
    PAIR_COLUMNS,
    TRIPLET_COLUMNS,
    contrast_name,
    pair_rows,
    triplet_rows,
)
from radgen.generators.similarity.pairs import mine
from radgen.generators.similarity.settings import Level, settings
from radgen.generators.similarity.source import ReportStates
from radgen.generators.similarity.triplets import mine_triplets
from radgen.generators.splits import SPLITS, Split, Splitter
from radgen.ontology.load import load_ontology
from radgen.ontology.radsim import Policy, load_policy

PAIR_LEVELS = ("sentence", "findings", "impression")
TRIPLET_LEVELS = ("report", "sentence")


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
        DatasetError: the level is unknown, there are fewer pairs than ``--n``, or it cannot be written.
    """
    if level not in PAIR_LEVELS:
        raise DatasetError(unknown("--level", level, PAIR_LEVELS))
    if order.truth and level != "findings":
        raise DatasetError(
            f"--truth with --level {level}: the truth of a synthetic report is that of its findings section "
            "as a whole; take --level findings, or leave --truth out: the rules read the texts"
        )
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
    rows = (row for split in SPLITS for row in pair_rows(corpus, split, mined[split], spec))
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
        about=f"Triplets of texts ({level}) mined by similarity gap: the positive's RadSim against the anchor"
        f" is higher than the negative's by at least {options.min_gap:g}; negatives share labels, a family or"
        " words.",
        descriptions=DESCRIPTIONS,
    )
    fingerprint = identity(spec, policy, order.rows, sources, truth=order.truth)
    if found := existing(out, spec, fingerprint, force):
        return found
    reads = order.reads(policy)
    corpus = build(reads, cast(Level, level), policy, progress=progress)
    scorer = Scorer(corpus.coder, corpus.coded)
    quotas = volume(order, options.per_report[cast(Any, level)], corpus, policy)
    mined = {
        split: mine_triplets(corpus, scorer, split, quotas[split], order.seed, options) for split in SPLITS
    }
    rejected = reads.rejected + corpus.dropped + sum((part.rejected for part in mined.values()), Counter())
    notes = _short(order, quotas, {split: len(part) for split, part in mined.items()}, spec, rejected)
    contrasts = Counter(
        contrast_name(options.contrasts, number)
        for part in mined.values()
        for number in part.contrast.tolist()
    )
    counts = _counts(corpus) | {f"contrast {name}": count for name, count in sorted(contrasts.items())}
    rows = (
        row for split in SPLITS for row in triplet_rows(corpus, split, mined[split], spec, options.contrasts)
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
        raise DatasetError(
            f"{spec.family}/{spec.name}: these reports give only {text} rows (left out: {took})"
        )
    return [f"fewer rows than the recipe's volume for so many reports: {text}"]


def checked(
    maker: Any,
    rows: Iterator[tuple[Split, bytes]],
    order: ReportOrder,
    notes: list[str],
    counts: dict[str, int],
) -> Iterator[tuple[Split, bytes]]:
    """Pass rows on; when they are over, say what is missing: an error where rows were asked for by number."""
    yield from rows
    counts |= {f"control {name}": count for name, count in sorted(getattr(maker, "controls", {}).items())}
    counts |= {f"kind {name}": count for name, count in sorted(maker.kinds.items())}
    if not maker.short:
        return
    text = ", ".join(f"{name}: {have:,} of {want:,}" for name, (have, want) in maker.short.items())
    if order.rows is not None:
        took = "; ".join(f"{count:,} {reason}" for reason, count in maker.rejected.most_common(3))
        raise DatasetError(f"these reports give too few rows ({text}; left out: {took})")
    notes.append(f"fewer rows than the recipe's volume for so many reports: {text}")
