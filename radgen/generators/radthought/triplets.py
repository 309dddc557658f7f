"""Triplets of RadThought records: findings alignment, coherence and derivation (spec §6).

==================  =========================  ========================  ====================================
family              anchor                     positive                  negative
==================  =========================  ========================  ====================================
findings_alignment  the findings section       a level of its record     the same level of an unrelated report
coherence           a level                    the level next to it      that level of an unrelated report
derivation          the first-order sentences  the conclusion that they  a conclusion of the same level of an
                    of some findings           support                   unrelated report, from other findings
==================  =========================  ========================  ====================================

Unrelated means that it mentions none of the anchor's abnormal findings (``triplets_unrelated.py``) and that
RadSim of the findings is at most ``max_target``; that RadSim is the negative's target. Anchor and positive
rest on the same findings: 1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np

from radgen.errors import DatasetError, unknown
from radgen.generators.radthought.corpus import Thoughts, read_thoughts
from radgen.generators.radthought.corpus_reports import FindingsSections
from radgen.generators.radthought.pair_settings import TRIPLETS, TripletName, settings
from radgen.generators.radthought.pairs_folder import (
    RADTHOUGHT_PAIRS_VERSION,
    ThoughtOrder,
    identity,
    shortfall,
    volume,
)
from radgen.generators.radthought.scores_coded import Ints
from radgen.generators.radthought.triplets_rows import Chosen, spec_of, triplet_rows
from radgen.generators.radthought.triplets_units import Units, record_units, step_units
from radgen.generators.radthought.triplets_unrelated import Marks, Pool, Truths, sought
from radgen.generators.similarity.folder import MadeFromReports, Spec, existing, source_digest, write
from radgen.generators.similarity.index import Dice, mixed, seed_number
from radgen.generators.splits import SPLITS, Split
from radgen.ontology.radsim import Policy

_BLOCK = 8192


def make_thought_triplets(
    order: ThoughtOrder,
    family: str,
    out: Path,
    *,
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> list[MadeFromReports]:
    """Write the triplets of one family or of ``all`` to ``out/radthought``.

    Raises:
        DatasetError: the family is unknown, findings alignment has no reports, there are fewer triplets than
            ``--n``, or it cannot be written.
    """
    if family not in (*TRIPLETS, "all"):
        raise DatasetError(unknown("--family", family, (*TRIPLETS, "all")))
    names = list(TRIPLETS) if family == "all" else [cast(TripletName, family)]
    policy, records = order.policy(), order.records_file()
    sections = None
    if "findings_alignment" in names:
        sections = FindingsSections(records, order.reports, policy.ontology)
    sources = [source_digest(records)]
    made: dict[TripletName, MadeFromReports] = {}
    missing = []
    for name in names:
        spec = spec_of(name, order)
        read = [*sources, sections.digest] if sections and name == "findings_alignment" else sources
        fingerprint = identity(spec, policy, order.rows, read)
        if found := existing(out, spec, fingerprint, force):
            made[name] = found
        else:
            missing.append((name, spec, fingerprint, read))
    if missing:
        thoughts = read_thoughts(records, policy, settings(), sections, progress=progress)
        marks = Marks(thoughts)
        for name, spec, fingerprint, read in missing:
            made[name] = _make(thoughts, marks, name, spec, fingerprint, order, out, policy, read)
        thoughts.file.close()
    return [made[name] for name in names]


def _make(
    thoughts: Thoughts,
    marks: Marks,
    name: TripletName,
    spec: Spec,
    fingerprint: str,
    order: ThoughtOrder,
    out: Path,
    policy: Policy,
    sources: list[str],
) -> MadeFromReports:
    options = settings().triplets
    rejected: Counter[str] = Counter()
    if name == "derivation":
        units = dict(step_units(thoughts, rejected))
    else:
        units = dict(record_units(thoughts, name, options.adjacent, rejected))
    most = {split: options.negatives_per_anchor * len(part) for split, part in units.items()}
    quotas = volume(order, options.rows[name], most, policy)
    chosen = {
        split: _choose(thoughts, marks, name, split, units[split], quotas[split], order.seed, rejected)
        for split in SPLITS
    }
    got = {split: len(part) for split, part in chosen.items()}
    notes = shortfall(order, options.rows[name], quotas, got, spec, rejected)
    hard = sum(int(np.count_nonzero(part.organs)) for part in chosen.values())
    return write(
        out,
        spec,
        fingerprint,
        (
            row
            for split in SPLITS
            for row in triplet_rows(thoughts, marks.systems, split, chosen[split], spec)
        ),
        policy,
        origin=f"The texts are those of RadThought records made by {thoughts.backend}"
        + (", and the findings sections of their reports." if name == "findings_alignment" else "."),
        version=RADTHOUGHT_PAIRS_VERSION,
        rejected=rejected,
        counts={
            "records": len(thoughts),
            "anchors with a positive": sum(map(len, units.values())),
            "hard negatives": hard,
        },
        sources=sources,
        notes=notes,
        constants={"triplets": options.model_dump()},
    )


def _choose(
    thoughts: Thoughts,
    marks: Marks,
    name: TripletName,
    split: Split,
    units: Units,
    rows: int,
    seed: int,
    rejected: Counter[str],
) -> Chosen:
    """Return up to ``rows`` triplets of a split: a negative for every anchor and positive, then the next."""
    options = thoughts.options.triplets
    number = seed_number("radthought", name, split, seed)
    dice = Dice(number)
    pools = {
        level: (
            members,
            Pool(
                thoughts,
                marks,
                units.owners[members],
                units.tags,
                members,
                seed_number("radthought", name, split, seed, level),
            ),
        )
        for level, members in units.pools.items()
    }
    shuffled = np.argsort(mixed(np.arange(len(units)) + int(number % np.uint64(2**31))), kind="stable")
    out = Chosen.empty(units)
    for turn in range(options.negatives_per_anchor):
        for at in range(0, len(shuffled), _BLOCK):
            wanted = rows - len(out)
            if wanted <= 0:
                break
            block = shuffled[at : at + _BLOCK]
            hard = dice(len(block)) < options.hard_share
            for level, (members, pool) in pools.items():
                where = units.level[block] == level
                part = _negatives(thoughts, marks, units, block[where], hard[where], members, pool, out)
                if turn == 0:
                    lost = int(np.count_nonzero(where)) - len(part)
                    rejected["no unrelated report found"] += lost
                out = out.joined(part, rows)
    return out


def _negatives(
    thoughts: Thoughts,
    marks: Marks,
    units: Units,
    rows: Ints,
    hard: Truths,
    members: Ints,
    pool: Pool,
    before: Chosen,
) -> Chosen:
    """Return the triplets of some units of one level: those for which a negative was found."""
    options = thoughts.options.triplets
    wanted = sought(marks, units.record[rows], units.tags, units.member[rows], denials=units.derived)
    used = before.keys()[np.isin(before.unit, rows)]

    def allowed(anchors: Ints, places: Ints) -> Truths:
        first, second = rows[anchors], members[places]
        fresh = ~np.isin((first << 32) | second, used)
        return fresh & units.apart(first, second) & (units.radsim(first, second) <= options.max_target)

    found = pool.seek(wanted, hard, options.draws, options.rounds, allowed)
    good = found >= 0
    unit, negative = rows[good], members[found[good]]
    organs = wanted.organs[good] & pool.organs[found[good]]
    return Chosen(unit, negative, units.radsim(unit, negative), organs, units)
