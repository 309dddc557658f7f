"""Suite ``heads``: one linear map an attribute on frozen vectors (paper §3.2.6)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from radgen.errors import RadgenError
from radgen.generators.run import realiser_of
from radgen.generators.splits import Split
from radgen.generators.stream import Order, stream
from radgen.ontology.distance import axis_target
from radgen.ontology.load import Ontology
from radgen.train import measures as m
from radgen.train.evaluate.encoders import Encoder
from radgen.train.evaluate.judging_sets import JudgingSet
from radgen.train.evaluate.outcome import Outcome, SkippedError, Sure
from radgen.train.evaluate.settings import EvaluateFile, HeadSettings
from radgen.train.measures.ordering import Floats, Vectors

Show = Callable[[int], None]
Row = dict[str, Any]
State = Mapping[str, Any]
#: Same agreement: targets are 1 up to rounding.
_SAME = 1 - 1e-9


@dataclass
class Pairs:
    """Pairs of texts with the target of every attribute.

    Attributes:
        first, second: the texts.
        attribute: what was varied ("" for two attributes at once).
        targets: shape (pairs, attributes); NaN where an attribute is stated on one side alone.
    """

    first: list[str]
    second: list[str]
    attribute: list[str]
    targets: Floats


def target_of(name: str, a: State, b: State, ontology: Ontology) -> float:
    """Return an attribute's graded target of two states: 1 where neither states it, NaN where one does.

    A pair that changes only other attributes has target 1 (spec §10).
    """
    axis = ontology.axis(name)
    fields = axis.fields or [name]
    stated = [any(state.get(field) is not None for field in fields) for state in (a, b)]
    if not any(stated):
        return 1.0
    if all(a.get(field) == b.get(field) for field in fields):
        return 1.0
    if not all(stated):
        return float("nan")
    try:
        return axis_target(axis, ontology.anatomy, a, b)
    except (RadgenError, KeyError, ValueError):  # a midline against a side: the recipe gives no target
        return float("nan")


def pairs_of(
    rows: Sequence[tuple[str, str, State, State, str]], names: Sequence[str], ontology: Ontology
) -> Pairs:
    """Return pairs with their targets from (text, text, state, state, attribute)."""
    targets = np.array([[target_of(name, a, b, ontology) for name in names] for _, _, a, b, _ in rows])
    return Pairs([row[0] for row in rows], [row[1] for row in rows], [row[4] for row in rows], targets)


def _triplet_pairs(rows: Sequence[Row], axis: str) -> list[tuple[str, str, State, State, str]]:
    return [
        (row["anchor"], row[other], row["anchor_state"], row[f"{other}_state"], axis)
        for row in rows
        for other in ("positive", "negative")
    ]


def generated(
    family: str, name: str, rows: int, seed: int, split: Split, files: tuple[str, ...]
) -> list[Row]:
    """Return rows that a generator makes, of one split, in memory."""
    order = Order(family, name, rows, seed, files, only=split)
    return [orjson.loads(row.line) for row, _ in stream(order, realiser=realiser_of(order))]


@functools.lru_cache(maxsize=4)
def _training(options: str, seed: int, files: tuple[str, ...], ontology: Ontology) -> Pairs:
    settings = HeadSettings.model_validate_json(options)
    rows: list[tuple[str, str, State, State, str]] = []
    for name in settings.attributes:
        made = generated("contrasts", name, settings.train_triplets, seed, "train", files)
        rows += _triplet_pairs(made, name)
    for name in ontology.axes.crossaxis.combinations if settings.combinations else ():
        made = generated("crossaxis", name, settings.combinations, seed, "train", files)
        rows += [(row["sentence1"], row["sentence2"], row["state1"], row["state2"], "") for row in made]
    return pairs_of(rows, settings.attributes, ontology)


def judged(made: JudgingSet, settings: EvaluateFile, ontology: Ontology, files: tuple[str, ...]) -> Pairs:
    """Return the pairs to judge on: Contrast-10's, and for other attributes (presence) the generators'."""
    options = settings.heads
    groups = made.by("axis")
    rows: list[tuple[str, str, State, State, str]] = []
    for name in options.attributes:
        if name in groups:
            mine = [made.rows[number] for number in groups[name]]
        else:
            mine = generated("contrasts", name, -(-options.test_pairs // 2), settings.seed, "test", files)
        rows += _triplet_pairs(mine, name)[: options.test_pairs]
    return pairs_of(rows, options.attributes, ontology)


def train(first: Vectors, second: Vectors, pairs: Pairs, settings: HeadSettings, seed: int) -> Any:
    """Fit the heads on frozen vectors: Adam on (cos(W_a x, W_a y) − target)², the same batches for all heads.

    For each head, the pairs that change its attribute weigh as much as all others together.

    Args:
        first, second: unit vectors of the pairs' texts, shape (pairs, d).

    Returns:
        The maps W, a tensor of shape (attributes, d, dimensions).
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    x, y = torch.from_numpy(first), torch.from_numpy(second)
    target = torch.from_numpy(np.nan_to_num(pairs.targets)).float()
    weight = torch.from_numpy(_weights(pairs.targets)).float()
    heads, width = target.shape[1], x.shape[1]
    maps = torch.empty(heads, width, settings.dimensions)
    maps.uniform_(-(width**-0.5), width**-0.5, generator=generator)  # as torch.nn.Linear begins
    maps.requires_grad_(True)
    optimiser = torch.optim.Adam([maps], lr=settings.learning_rate)
    for _ in range(settings.epochs):
        for rows in torch.split(torch.randperm(len(x), generator=generator), settings.batch_size):
            cosine = _cosine(x[rows], y[rows], maps)
            loss = (weight[rows] * (cosine - target[rows]) ** 2).sum() / weight[rows].sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return maps.detach()


def _weights(targets: Floats) -> Floats:
    """Return a weight for each pair and head: none where the target is not known, else half a group."""
    weights = np.zeros_like(targets)
    for column in range(targets.shape[1]):
        known = ~np.isnan(targets[:, column])
        changed = known & (targets[:, column] < _SAME)
        for group in (changed, known & ~changed):
            if group.any():
                weights[group, column] = len(targets) / (2 * group.sum())
    return weights


def _cosine(x: Any, y: Any, maps: Any) -> Any:
    import torch

    a, b = torch.einsum("nd,hdk->nhk", x, maps), torch.einsum("nd,hdk->nhk", y, maps)
    return torch.nn.functional.cosine_similarity(a, b, dim=-1)


def heads(
    made: JudgingSet,
    encoder: Encoder,
    settings: EvaluateFile,
    ontology: Ontology,
    files: tuple[str, ...],
    sure: Sure,
    show: Show,
) -> Outcome:
    """Fit and judge the attribute heads."""
    options = settings.heads
    if unknown := [name for name in options.attributes if name not in _attributes(ontology)]:
        raise SkippedError(f"the ontology has no attribute {', '.join(unknown)}")
    learned = _training(options.model_dump_json(), settings.seed, files, ontology)
    judge = judged(made, settings, ontology, files)
    tokens = settings.tokens.judging
    encoder.vectors([*learned.first, *learned.second, *judge.first, *judge.second], tokens, show)
    maps = train(
        encoder.vectors(learned.first, tokens),
        encoder.vectors(learned.second, tokens),
        learned,
        options,
        settings.seed,
    )
    x, y = encoder.vectors(judge.first, tokens), encoder.vectors(judge.second, tokens)
    cosine = cosines_of(x, y, maps)
    out = Outcome(notes=[f"{len(learned.first):,} pairs to learn from, {len(judge.first):,} to judge on"])
    score(out, cosine, judge, options, sure)
    return out


def cosines_of(x: Vectors, y: Vectors, maps: Any) -> Floats:
    """Return every head's cosine of every pair, shape (pairs, attributes)."""
    import torch

    halves = zip(*(torch.split(torch.from_numpy(side), 1024) for side in (x, y)), strict=True)
    with torch.no_grad():
        parts = [_cosine(a, b, maps) for a, b in halves]
    found: Floats = torch.cat(parts).numpy().astype(np.float64)
    return found


def score(out: Outcome, cosine: Floats, pairs: Pairs, options: HeadSettings, sure: Sure) -> None:
    """Add Spearman, AUC, contradiction AUC, modularity and DCI; the response matrix is a figure."""
    names = options.attributes
    attribute = np.array(pairs.attribute)
    response = np.full((len(names), len(names)), np.nan)
    correlations, areas = [], []
    for column, name in enumerate(names):
        rows = np.flatnonzero((attribute == name) & ~np.isnan(pairs.targets[:, column]))
        target = pairs.targets[rows, column]
        for head in range(len(names)):
            response[head, column] = abs(m.spearman(cosine[rows, head], target))
        own = cosine[rows, column]
        interval = _spearman(own, target, sure)
        out.add("heads.spearman", name, interval)
        area = m.auroc(own, target > options.positive_above)
        out.add("heads.auc", name, area, len(rows))
        correlations.append(interval.value)
        areas.append(area)
        if name == "presence":
            out.add("heads.contradiction_auc", "", m.auroc(own, target >= _SAME), len(rows))
    out.add("heads.spearman", "", float(np.nanmean(correlations)), len(pairs.attribute))
    out.add("heads.auc", "", float(np.nanmean(areas)), len(pairs.attribute))
    out.add("heads.modularity", "", m.modularity(response), len(names))
    disentanglement, completeness = m.dci(response)
    out.add("heads.disentanglement", "", disentanglement, len(names))
    out.add("heads.completeness", "", completeness, len(names))
    matrix = [[None if np.isnan(value) else float(value) for value in row] for row in response]
    out.figures["response"] = {"attributes": list(names), "matrix": matrix}


def _spearman(cosine: NDArray[Any], target: NDArray[Any], sure: Sure) -> m.Interval:
    return m.interval_of(
        lambda rows: m.spearman(cosine[rows], target[rows]),
        len(target),
        repeats=sure.repeats,
        confidence=sure.confidence,
        seed=sure.seed,
    )


def _attributes(ontology: Ontology) -> set[str]:
    return {*ontology.axes.axes, *ontology.axes.further}
