"""``radgen verify`` for datasets of RadThought records: everything is recomputed from the rows (spec §6, §9).

Nothing that the generator stored is trusted: findings come back from the predicates that a row has, and
every score from findings, predicates and conclusions by the plain functions of ``scores.py``. Strings,
reports, ids, counts and hashes are checked as for every dataset made from reports.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from radgen.errors import RadgenError
from radgen.generators.folders import MANIFEST
from radgen.generators.radsim.policy import canonical as canonical_states
from radgen.generators.radthought.corpus import CONCLUDING
from radgen.generators.radthought.pair_settings import (
    LEVELS,
    PAIRS,
    TRIPLETS,
    ConclusionSettings,
    FusedSettings,
    TripletName,
    TripletsSettings,
)
from radgen.generators.radthought.pairs import columns_of
from radgen.generators.radthought.pairs_folder import FAMILY, ThoughtOrder
from radgen.generators.radthought.predicates import Predicate, canonical, parse, states_of
from radgen.generators.radthought.scores import conclusion_score, scene_score
from radgen.generators.radthought.triplets_rows import spec_of
from radgen.generators.similarity.verify import Found, radsim_scores, verify_reports
from radgen.generators.splits import SPLITS, Splitter
from radgen.ontology.finding import check_state
from radgen.ontology.load import Ontology
from radgen.ontology.radsim import Policy

_CLOSE = 1e-9
_RADSIM_CLOSE = 1e-6  # the coded RadSim of the makers keeps severities as float32
Rows = list[tuple[int, dict[str, Any]]]
States = Sequence[Mapping[str, Any]]


def verify_radthought(
    folder: Path, manifest: Mapping[str, Any], ontology: Ontology, verdict: Any = None
) -> Iterator[Found]:
    """Yield (file, row, reason) for everything in a folder that is not as it says."""
    where = str(folder / MANIFEST)
    name = manifest.get("name")
    if name in PAIRS:
        columns: Sequence[str] = columns_of(cast(Any, name))
    elif name in TRIPLETS:
        columns = spec_of(cast(TripletName, name), ThoughtOrder(folder)).columns
    else:
        yield where, None, f"unknown dataset {FAMILY}/{name}"
        return
    if list(columns) != manifest.get("columns"):
        yield where, None, f"columns: expected {list(columns)}, found {manifest.get('columns')}"
        return
    try:
        checker = _Checker(manifest, ontology)
    except (KeyError, TypeError, ValidationError) as error:
        yield where, None, f"constants: cannot be read: {' '.join(str(error).split())[:200]}"
        return
    yield from verify_reports(folder, manifest, ontology, verdict, checker.check)
    yield from ((where, None, reason) for reason in _splits(manifest, verdict, ontology))


def _splits(manifest: Mapping[str, Any], verdict: Any, ontology: Ontology) -> Iterator[str]:
    """Yield what is wrong with the shares of the splits; a dataset that says why it is short may differ."""
    if verdict is None or manifest.get("notes"):
        return
    total = verdict.rows.total()
    quotas = Splitter(ontology.axes.splits).quotas(total)
    for split in SPLITS:
        if abs(verdict.rows[split] - quotas[split]) > max(1, 0.01 * total):
            yield f"split {split} has {verdict.rows[split]} of {total} rows, expected about {quotas[split]}"


class _Checker:
    """Checks rows by the settings that the manifest names."""

    def __init__(self, manifest: Mapping[str, Any], ontology: Ontology) -> None:
        self.name = str(manifest["name"])
        self.ontology = ontology
        constants = manifest["constants"]
        if self.name in PAIRS:
            self.fused = FusedSettings.model_validate(constants["fused"])
            self.conclusions = ConclusionSettings.model_validate(constants["conclusions"])
        else:
            self.triplets = TripletsSettings.model_validate(constants["triplets"])

    def check(self, rows: Rows, _: Mapping[str, Any], policy: Policy) -> Iterator[tuple[int, str]]:
        """Yield (row, reason) for what is wrong in some rows."""
        good: Rows = []
        for number, row in rows:
            try:
                for column in ("state1", "state2", "anchor_state", "positive_state", "negative_state"):
                    for state in row.get(column, ()):
                        check_state(state)
            except (ValidationError, TypeError):
                yield number, f"{column}: a value outside the canonical finding"
                continue
            good.append((number, row))
        sides = ("state1", "state2") if self.name in PAIRS else ("anchor_state", "negative_state")
        values = radsim_scores(policy, [(row[sides[0]], row[sides[1]]) for _, row in good])
        for (number, row), value in zip(good, values, strict=True):
            problems = (
                self._pair(row, value, policy) if self.name in PAIRS else self._triplet(row, value, policy)
            )
            try:
                yield from ((number, reason) for reason in problems)
            except (KeyError, TypeError, ValueError, RadgenError) as error:
                yield number, f"cannot be read: {' '.join(str(error).split())[:200]}"

    # --- pairs ---

    def _pair(self, row: Mapping[str, Any], radsim: float, policy: Policy) -> Iterator[str]:
        if row["family"] != FAMILY or row["level"] != self.name:
            yield f"family and level: expected {FAMILY}, {self.name}"
        if row["report1"] == row["report2"]:
            yield "both texts are of one report"
        levels: dict[str, float] = {}
        if self.name in ("fused", "first_order"):
            levels["first_order"] = radsim
        if self.name in ("fused", "scene_graph"):
            graphs = [[parse(text) for text in row[key]] for key in ("predicates1", "predicates2")]
            for place, graph in enumerate(graphs, 1):
                yield from _same_evidence(row, place, graph)
            levels["scene_graph"] = scene_score(*(canonical(graph) for graph in graphs))
        for short, level in CONCLUDING.items():
            if self.name in ("fused", level):
                lists = [
                    [item for item in row[key] if item["level"] == short]
                    for key in ("conclusions1", "conclusions2")
                ]
                levels[level] = conclusion_score(lists[0], lists[1], self.conclusions, policy).value
        if self.name == "first_order":
            total = row["agreement"] + row["family_bonus"] + row["organ_bonus"] + row["jitter"]
            if not _near(max(-1.0, min(1.0, total)), row["score"], _RADSIM_CLOSE):
                yield "the parts of its score do not add up to it"
        if self.name != "fused":
            yield from _differs("score", row["score"], levels[self.name], self.name)
            return
        for level in LEVELS:
            yield from _differs(level, row[level], levels[level], level)
        weights = [self.fused.weights[level] for level in LEVELS]
        if row["weights"] != weights:
            yield f"weights: expected {weights}, found {row['weights']}"
        total = sum(weight * row[level] for weight, level in zip(weights, LEVELS, strict=True))
        if not _near(total, row["score"], _CLOSE):
            yield f"score {row['score']}, the weighted sum of its levels is {total}"

    # --- triplets ---

    def _triplet(self, row: Mapping[str, Any], radsim: float, policy: Policy) -> Iterator[str]:
        if row["family"] != FAMILY:
            yield f"family: expected {FAMILY}"
        yield from _differs("negative_target", row["negative_target"], radsim, "first_order")
        if row["positive_target"] != 1.0:
            yield f"positive_target: expected 1, found {row['positive_target']}"
        if radsim > self.triplets.max_target + _RADSIM_CLOSE:
            yield f"the negative's RadSim {radsim:.3f} is above {self.triplets.max_target}"
        if canonical_states(row["anchor_state"]) != canonical_states(row["positive_state"]):
            yield "anchor and positive rest on different findings"
        if row["anchor_report"] != row["positive_report"]:
            yield "anchor and positive are of different reports"
        if row["anchor_report"] == row["negative_report"]:
            yield "the negative is of the anchor's report"
        if len({row["anchor"], row["positive"], row["negative"]}) < 3:
            yield "two of its texts are the same"
        yield from self._levels(row)
        yield from self._unrelated(row, policy)

    def _levels(self, row: Mapping[str, Any]) -> Iterator[str]:
        anchor, level = row["anchor_level"], row["level"]
        expected = {
            "findings_alignment": anchor == "findings" and level in LEVELS,
            "coherence": [anchor, level] in self._adjacent(),
            "derivation": anchor == "evidence" and level in CONCLUDING.values(),
        }[self.name]
        if not expected:
            yield f"levels: {anchor} and {level} do not make a row of {self.name}"
        if self.name == "derivation" and set(row["positive_about"]) & set(row["negative_about"]):
            yield "positive and negative conclude the same process"

    def _adjacent(self) -> list[list[str]]:
        pairs = [list(pair) for pair in self.triplets.adjacent]
        return cast(list[list[str]], pairs + [pair[::-1] for pair in pairs])

    def _unrelated(self, row: Mapping[str, Any], policy: Policy) -> Iterator[str]:
        """The negative mentions none of the anchor's abnormal findings, nor one of their continua."""
        abnormal = [state for state in row["anchor_state"] if state.get("presence") != "absent"]
        counts = abnormal or (row["anchor_state"] if self.name == "derivation" else [])
        groups = {_group(policy, state["finding"]) for state in counts}
        shared = {state["finding"] for state in row["negative_state"]}
        shared = {tag for tag in shared if _group(policy, tag) in groups}
        if shared:
            yield f"the negative shares {', '.join(sorted(shared))} with the anchor"
        there = [state for state in row["negative_state"] if state.get("presence") != "absent"]
        if not counts and not there:
            yield "neither anchor nor negative has an abnormal finding"
        both = _organs(policy, abnormal) & _organs(policy, there)
        organs = [name for name in policy.ontology.anatomy.systems if name in both]
        if row["shared_organs"] != organs or row["hard"] != bool(organs):
            yield f"shared_organs: {row['shared_organs']}, but the findings share {organs}"


def _group(policy: Policy, tag: str) -> str | int:
    return policy.continuum.get(tag, tag)


def _organs(policy: Policy, states: Iterable[Mapping[str, Any]]) -> set[str]:
    return {name for state in states if (name := policy.system(state["finding"])) is not None}


def _same_evidence(row: Mapping[str, Any], place: int, graph: Sequence[Predicate]) -> Iterator[str]:
    """The findings of a side are those that its predicates state."""
    if canonical_states(states_of(graph).values()) != canonical_states(row[f"state{place}"]):
        yield f"state{place}: not the findings that predicates{place} state"
    text = "; ".join(row[f"predicates{place}"])
    if text not in row[f"sentence{place}"]:
        yield f"predicates{place}: not those of its text"


def _differs(column: str, stored: float, value: float, level: str) -> Iterator[str]:
    if not _near(stored, value, _RADSIM_CLOSE if level == "first_order" else _CLOSE):
        yield f"{column} {stored:.4f}, but the row's {_SOURCES.get(level, 'conclusions')} give {value:.4f}"


_SOURCES = {"first_order": "findings", "scene_graph": "predicates"}


def _near(a: float, b: float, close: float) -> bool:
    return abs(a - b) <= close
