"""Scored pairs of RadThought records: of the whole hierarchy, and level by level (spec §6).

The texts of a pair are one level of two different reports (or the whole hierarchy), its score is that of
``scores.py``. Pairs are spread evenly over the range of scores, as far as there are so many.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import orjson

from radgen.errors import DatasetError, unknown
from radgen.generators.radthought.corpus import CONCLUDING, Thoughts, of_split, read_thoughts
from radgen.generators.radthought.corpus_texts import fused_text, level_text
from radgen.generators.radthought.pair_settings import LEVELS, PAIRS, PairName, settings
from radgen.generators.radthought.pairs_folder import (
    FAMILY,
    RADTHOUGHT_PAIRS_VERSION,
    ThoughtOrder,
    identity,
    shortfall,
    volume,
)
from radgen.generators.radthought.pairs_index import ThoughtIndex
from radgen.generators.radthought.scores import fused_sum
from radgen.generators.radthought.scores_coded import Floats, Ints
from radgen.generators.similarity.folder import MadeFromReports, Spec, existing, line_of, source_digest, write
from radgen.generators.similarity.index import mixed, seed_number
from radgen.generators.similarity.pairs import choose
from radgen.generators.splits import Split
from radgen.ontology.radsim import Policy

_CONCLUDED = {level: name for name, level in CONCLUDING.items()}
_HEAD = ("sentence1", "sentence2", "score", "id", "family", "level", "state1", "state2")
_EVIDENCE, _TOLD, _REPORTS = (
    ("predicates1", "predicates2"),
    ("conclusions1", "conclusions2"),
    ("report1", "report2"),
)
_PARTS = ("agreement", "family_bonus", "organ_bonus", "jitter")
DESCRIPTIONS = {
    "sentence1": "a text of one report's record",
    "sentence2": "the same of another report's record",
    "family": "radthought",
    "level": "fused (the whole hierarchy) or the level of the texts",
    "state1": "what the first report states: a list of canonical findings",
    "state2": "what the second report states",
    "predicates1": "the evidence predicates of the first report",
    "predicates2": "the evidence predicates of the second report",
    "conclusions1": "what is compared of the conclusions of the first text; side and evidence are those of"
    " the findings that they derive from",
    "conclusions2": "what is compared of the conclusions of the second text",
    "scene_graph": "score of the predicates: their Jaccard index without ids, mapped to [-1, 1]",
    "first_order": "score of the findings: RadSim",
    "second_order": "agreement of the conclusions of the second order",
    "third_order": "agreement of the conclusions of the third order",
    "synthesis": "agreement of the conclusions of the synthesis",
    "weights": "weights of the five levels, in this order: " + ", ".join(LEVELS),
    "agreement": "RadSim: weighted agreement of the attributes",
    "family_bonus": "RadSim: what related findings add",
    "organ_bonus": "RadSim: what different findings of one organ system add",
    "jitter": "RadSim: reproducible noise, a hash of both lists of findings",
    "report1": "id of the first report",
    "report2": "id of the second report",
}
_SCORES = {
    "fused": "the weighted sum of the scores of the five levels, in [-1, 1]",
    "scene_graph": "Jaccard index of the predicates without ids, mapped to [-1, 1]",
    "first_order": "RadSim of the two reports' findings, in [-1, 1]",
}


def columns_of(name: PairName) -> tuple[str, ...]:
    """Return the columns of a dataset of pairs, in order."""
    if name == "fused":
        return (*_HEAD, *_EVIDENCE, *_TOLD, *LEVELS, "weights", *_REPORTS)
    if name == "scene_graph":
        return (*_HEAD, *_EVIDENCE, *_REPORTS)
    return (*_HEAD, *(_PARTS if name == "first_order" else _TOLD), *_REPORTS)


def spec_of(name: PairName, order: ThoughtOrder) -> Spec:
    """Return what a dataset of pairs is."""
    kinds = dict.fromkeys(("state1", "state2"), "states")
    kinds |= dict.fromkeys(_EVIDENCE, "texts") | dict.fromkeys(_TOLD, "conclusions")
    kinds |= dict.fromkeys((*LEVELS, *_PARTS), "number") | {"weights": "numbers"}
    what = "whole hierarchies" if name == "fused" else f"one level ({name})"
    score = _SCORES.get(name, "agreement of the conclusions of that level, in [-1, 1]")
    return Spec(
        family=FAMILY,
        name=name,
        command=order.command("pairs", f"--level {name}"),
        seed=order.seed,
        columns=columns_of(name),
        texts=("sentence1", "sentence2"),
        label="score",
        kinds=kinds,
        target="score",
        about=f"Pairs of {what} of RadThought records of different reports; the score is {score}.",
        descriptions={**DESCRIPTIONS, "score": score},
    )


def make_thought_pairs(
    order: ThoughtOrder,
    level: str,
    out: Path,
    *,
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> list[MadeFromReports]:
    """Write the pairs of one level, of whole hierarchies (``fused``) or ``all`` to ``out/radthought``.

    Raises:
        DatasetError: the level is unknown, there are fewer pairs than ``--n``, or it cannot be written.
    """
    if level not in (*PAIRS, "all"):
        raise DatasetError(unknown("--level", level, (*PAIRS, "all")))
    names = list(PAIRS) if level == "all" else [cast(PairName, level)]
    policy, records = order.policy(), order.records_file()
    sources = [source_digest(records)]
    made: dict[PairName, MadeFromReports] = {}
    missing = []
    for name in names:
        spec = spec_of(name, order)
        fingerprint = identity(spec, policy, order.rows, sources)
        found = existing(out, spec, fingerprint, force)
        if found:
            made[name] = found
        else:
            missing.append((name, spec, fingerprint))
    if missing:
        thoughts = read_thoughts(records, policy, settings(), progress=progress)
        for name, spec, fingerprint in missing:
            made[name] = _make(thoughts, name, spec, fingerprint, order, out, policy, sources)
        thoughts.file.close()
    return [made[name] for name in names]


def _make(
    thoughts: Thoughts,
    name: PairName,
    spec: Spec,
    fingerprint: str,
    order: ThoughtOrder,
    out: Path,
    policy: Policy,
    sources: list[str],
) -> MadeFromReports:
    options = settings().pairs
    rejected: Counter[str] = Counter()
    usable = thoughts.usable(name, rejected)
    if name in _CONCLUDED:
        offsets = thoughts.levels[_CONCLUDED[name]].offsets
        concludes = np.diff(offsets) > 0
        rejected["concludes nothing at that level"] += int(np.count_nonzero(usable & ~concludes))
        usable = usable & concludes
    members = dict(of_split(usable, thoughts.splits))
    most = {
        split: min(options.rows_per_report * len(part), len(part) * (len(part) - 1) // 2)
        for split, part in members.items()
    }
    quotas = volume(order, options.rows[name], most, policy)
    chosen: dict[Split, tuple[Ints, Ints]] = {}
    candidates = 0
    for split, part in members.items():
        index = _indexed(thoughts, part, name, seed_number("radthought", name, split, order.seed))
        first, second, tried = choose(
            part, index, _score_of(thoughts, name), quotas[split], options, rejected
        )
        chosen[split] = first, second
        candidates += tried
    got = {split: len(first) for split, (first, _) in chosen.items()}
    notes = shortfall(order, options.rows[name], quotas, got, spec, rejected)
    return write(
        out,
        spec,
        fingerprint,
        (row for split, pairs in chosen.items() for row in _rows(thoughts, split, *pairs, spec)),
        policy,
        origin=f"The texts are those of RadThought records made by {thoughts.backend}.",
        version=RADTHOUGHT_PAIRS_VERSION,
        rejected=rejected,
        counts={"records": len(thoughts), "texts": int(np.count_nonzero(usable)), "candidates": candidates},
        sources=sources,
        notes=notes,
        constants={
            "pairs": options.model_dump(),
            "fused": settings().fused.model_dump(),
            "conclusions": settings().conclusions.model_dump(),
        },
    )


def _indexed(
    thoughts: Thoughts, members: Ints, name: PairName, seed: np.uint64
) -> Callable[[], ThoughtIndex]:
    levels = [_CONCLUDED[name]] if name in _CONCLUDED else list(_CONCLUDED.values())
    return lambda: ThoughtIndex(thoughts, members, levels, seed)


def _score_of(thoughts: Thoughts, name: PairName) -> Callable[[Ints, Ints], Floats]:
    if name == "fused":
        return lambda first, second: fused_sum(thoughts.scores(first, second), thoughts.options)
    return lambda first, second: thoughts.score(name, first, second)


def _rows(
    thoughts: Thoughts, split: Split, first: Ints, second: Ints, spec: Spec
) -> Iterator[tuple[Split, bytes]]:
    """Yield pairs as lines, in an order that does not follow the reports."""
    shuffled = np.argsort(mixed(first * 0x9E37 + second), kind="stable")
    first, second = first[shuffled], second[shuffled]
    name = cast(PairName, spec.name)
    numbers: dict[str, Floats] = {}
    if name == "fused":
        levels = thoughts.scores(first, second)
        score = fused_sum(levels, thoughts.options)
        numbers |= {level: levels[level] for level in LEVELS}
    elif name == "first_order":
        parts = thoughts.radsim.score(first, second)
        score = parts.value
        values = (parts.agreement, parts.family, parts.organ, parts.jitter)
        numbers |= dict(zip(_PARTS, values, strict=True))
    else:
        score = thoughts.score(name, first, second)
    lists = {key: value.tolist() for key, value in numbers.items()}
    weights = [thoughts.options.fused.weights[level] for level in LEVELS]
    for place, (i, j, value) in enumerate(zip(first.tolist(), second.tolist(), score.tolist(), strict=True)):
        records = thoughts.row(i), thoughts.row(j)
        texts: dict[str, bytes] = {
            f"sentence{k}": orjson.dumps(_text(record, name, thoughts)) for k, record in enumerate(records, 1)
        }
        texts["score"] = orjson.dumps(value)
        rest: dict[str, Any] = {"family": FAMILY, "level": name}
        rest |= {
            f"state{k}": orjson.Fragment(thoughts.states_json(thoughts.states, number))
            for k, number in enumerate((i, j), 1)
        }
        if _EVIDENCE[0] in spec.columns:
            rest |= {key: record["predicates"] for key, record in zip(_EVIDENCE, records, strict=True)}
        if _TOLD[0] in spec.columns:
            rest |= {
                key: conclusions_of(thoughts, number, name) for key, number in zip(_TOLD, (i, j), strict=True)
            }
        rest |= {key: column[place] for key, column in lists.items()}
        if name == "fused":
            rest["weights"] = weights
        rest |= {"report1": thoughts.ids[i], "report2": thoughts.ids[j]}
        yield split, line_of(spec.name, texts, rest)


def _text(record: dict[str, Any], name: PairName, thoughts: Thoughts) -> str:
    if name == "fused":
        return fused_text(record, thoughts.options.fused.order)
    return level_text(record, name)


def conclusions_of(thoughts: Thoughts, number: int, name: PairName) -> list[dict[str, Any]]:
    """Return what is compared of a record's conclusions, at one level or at all."""
    return [
        {"level": short, **thoughts.conclusions.told[told]}
        for short, level in CONCLUDING.items()
        if name in ("fused", level)
        for told in thoughts.levels[short][number]
    ]
