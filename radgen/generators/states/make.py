"""From reports, or from none, to ``states/sentences``, ``pairs``, ``triplets`` and ``others``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any

import orjson

from radgen.errors import DatasetError
from radgen.generators.similarity.folder import MadeFromReports, Spec, existing, identity, write
from radgen.generators.similarity.make import ReportOrder
from radgen.generators.similarity.source import Read, ReportStates, States
from radgen.generators.splits import SPLITS, Split, Splitter
from radgen.generators.states.corpus import StateCorpus, build, require_states
from radgen.generators.states.lines import (
    DESCRIPTIONS,
    FAMILY,
    PAIR_COLUMNS,
    SENTENCE_COLUMNS,
    TRIPLET_COLUMNS,
    mined_rows,
    sentence_rows,
)
from radgen.generators.states.mine import Mined, mine_others, mine_pairs, mine_triplets
from radgen.generators.states.sentences import existing_sentences, write_sentences
from radgen.generators.states.settings import StatesSettings, chosen_findings, load_settings
from radgen.generators.states.synthetic import SyntheticSource
from radgen.ontology.load import load_ontology
from radgen.ontology.radsim import Policy, load_policy

#: Raised when the same reports and seed give other rows.
STATES_VERSION = 1
_MINERS = {"pairs": mine_pairs, "triplets": mine_triplets, "others": mine_others}
_STATES = ("anchor_state", "positive_state", "negative_state")


@dataclass(frozen=True)
class StatesOrder:
    """What to make of which reports.

    Attributes:
        reports: any form that ``radgen reports`` reads; None for synthetic ones alone.
        findings: names joined by commas; those of ``states.yaml`` if absent.
        rows: of the pairs, and as many triplets and others, over all splits; the settings' volume if absent.
        extracted: output of ``radgen extract`` for the reports.
        synthetic: add the synthetic sentences to those of the reports.
    """

    reports: Path | None = None
    findings: str | None = None
    rows: int | None = None
    seed: int = 42
    extracted: Path | None = None
    synthetic: bool = False
    ontology_files: tuple[str, ...] = ()

    def command(self) -> str:
        """Return the command line, without what does not change the rows."""
        words = ["radgen states"]
        words += [self.reports.name] if self.reports else []
        words += [f"--findings {self.findings}"] if self.findings is not None else []
        words += [f"--n {self.rows}"] if self.rows is not None else []
        words += [f"--seed {self.seed}"]
        words += [f"--extracted {self.extracted.name}"] if self.extracted else []
        words += ["--synthetic"] if self.synthetic and self.reports else []
        words += [f"--ontology {Path(path).name}" for path in self.ontology_files]
        return " ".join(words)


@dataclass
class _Sources:
    """Where sentences come from; counts and states of the reports' own source."""

    order: StatesOrder
    policy: Policy
    findings: tuple[str, ...]
    options: StatesSettings
    reads: ReportStates | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        if self.order.reports is not None:
            self.reads = ReportStates(self.order.reports, self.policy.ontology, self.order.extracted)

    @property
    def states(self) -> States:
        return "rules" if self.reads is None else self.reads.states

    @property
    def rejected(self) -> Counter[str]:
        return Counter() if self.reads is None else self.reads.rejected

    def __iter__(self) -> Iterator[Read]:
        synthetic: Iterable[Read] = ()
        if self.reads is None or self.order.synthetic:
            synthetic = SyntheticSource(self.policy.ontology, self.findings, self.order.seed, self.options)
        return chain(self.reads or (), synthetic)


def make_states(
    order: StatesOrder, out: Path, *, force: bool = False, progress: Callable[[int], None] = lambda _: None
) -> list[MadeFromReports]:
    """Write sentences, pairs, triplets and others to ``out/states/…``.

    Raises:
        DatasetError: a finding is unknown, or has one state only; there are fewer rows than ``--n``; the
            place cannot be written, or holds something else.
    """
    if order.extracted is not None and order.reports is None:
        raise DatasetError("--extracted: needs the reports that it was made from; name their file, too")
    if order.rows is not None and order.rows < 1:
        raise DatasetError(f"--n {order.rows}: expected at least 1 row")
    policy = load_policy(load_ontology(order.ontology_files))
    options = load_settings(policy.ontology)
    findings = chosen_findings(order.findings, policy.ontology, options)
    sources = _digests(order)
    plans = {
        spec.name: (spec, _fingerprint(spec, order, policy, findings, options, sources))
        for spec in _specs(order)
    }
    found = {
        name: (existing_sentences if name == "sentences" else existing)(out, spec, fingerprint, force)
        for name, (spec, fingerprint) in plans.items()
    }
    if all(found.values()):
        return [made for made in found.values() if made is not None]
    source = _Sources(order, policy, findings, options)
    corpus = build(
        source, findings, policy.ontology, options, reread=source.states == "rules", progress=progress
    )
    require_states(corpus, options)
    splitter = Splitter(options.splits)
    mined, notes = {}, {}
    for name in _MINERS:  # pairs first: they tell soonest that there are too few sentences
        mined[name] = _mine(name, corpus, splitter, order, options, findings)
        notes[name] = _short(name, mined[name], order)
    common: dict[str, Any] = {
        "policy": policy,
        "states": source.states,
        "sources": sources,
        "constants": {"splits": options.splits, "states": options.model_dump(), "findings": list(findings)},
        "counts": {"reports": corpus.total, "texts": len(corpus.texts), **corpus.counts()},
    }
    made = []
    for name, (spec, fingerprint) in plans.items():
        rejected = source.rejected + corpus.dropped
        if name == "sentences":
            made.append(write_sentences(out, spec, fingerprint, sentence_rows(corpus), rejected, **common))
            continue
        rejected = rejected + sum((part.rejected for part in mined[name].values()), Counter())
        rows = chain.from_iterable(
            mined_rows(corpus, split, mined[name][split], spec, order.seed) for split in SPLITS
        )
        made.append(write(out, spec, fingerprint, rows, rejected=rejected, notes=notes[name], **common))
    return made


def _specs(order: StatesOrder) -> list[Spec]:
    shared: dict[str, Any] = {
        "family": FAMILY,
        "command": order.command(),
        "seed": order.seed,
        "descriptions": DESCRIPTIONS,
    }
    return [
        Spec(
            name="sentences",
            columns=SENTENCE_COLUMNS,
            texts=("sentence",),
            label=None,
            kinds={"state": "states"},
            target="presence",
            about="Sentences about a finding, each with what it says of it: present, absent, or (kept apart)"
            " indeterminate. A sentence about several findings has a row for each.",
            **shared,
        ),
        Spec(
            name="pairs",
            columns=PAIR_COLUMNS,
            texts=("sentence1", "sentence2"),
            label="score",
            kinds={"state1": "states", "state2": "states"},
            target="score",
            about="Pairs of sentences about one finding: score 1 if both state the same of it, however they"
            " say it, and -1 if one states it present and the other absent. Balanced over findings and"
            " states.",
            **shared,
        ),
        Spec(
            name="others",
            columns=PAIR_COLUMNS,
            texts=("sentence1", "sentence2"),
            label="score",
            kinds={"state1": "states", "state2": "states"},
            target="score",
            about="Pairs of a sentence about a finding and one that names none of the findings: score 0.",
            **shared,
        ),
        Spec(
            name="triplets",
            columns=TRIPLET_COLUMNS,
            texts=("anchor", "positive", "negative"),
            label=None,
            kinds=dict.fromkeys(_STATES, "states"),
            target="negative_target",
            about="Triplets of sentences about one finding: the positive states the same of it in another"
            " phrasing, the negative the other state in like words. Balanced over findings and states.",
            **shared,
        ),
    ]


def _digests(order: StatesOrder) -> list[str]:
    if order.reports is None:
        return []
    return ReportOrder(order.reports, extracted=order.extracted).digests()


def _fingerprint(
    spec: Spec,
    order: StatesOrder,
    policy: Policy,
    findings: tuple[str, ...],
    options: StatesSettings,
    sources: list[str],
) -> str:
    settings = sha256(orjson.dumps(options.model_dump(), option=orjson.OPT_SORT_KEYS)).hexdigest()
    return identity(
        spec,
        policy,
        order.rows,
        sources,
        states_version=STATES_VERSION,
        findings=list(findings),
        options=settings,
        synthetic=order.synthetic or order.reports is None,
    )


def _mine(
    name: str,
    corpus: StateCorpus,
    splitter: Splitter,
    order: StatesOrder,
    options: StatesSettings,
    findings: tuple[str, ...],
) -> dict[Split, Mined]:
    each = int(getattr(options.rows, name))
    quotas = splitter.quotas(order.rows if order.rows is not None else each * len(findings))
    return {split: _MINERS[name](corpus, split, quotas[split], order.seed, options) for split in SPLITS}


def _short(name: str, parts: dict[Split, Mined], order: StatesOrder) -> list[str]:
    """Say what is missing of the volume; an error where rows were asked for by number."""
    missing = [
        f"{split} {len(part):,} of {part.wanted:,}"
        for split, part in parts.items()
        if len(part) < part.wanted
    ]
    if not missing:
        return []
    text = ", ".join(missing)
    if order.rows is not None:
        raise DatasetError(
            f"{FAMILY}/{name}: these sentences give only {text} rows of different phrasings; ask for fewer"
            " with --n, or give more reports"
        )
    return [f"fewer rows than the settings' volume: {text}"]
