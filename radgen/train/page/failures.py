"""Misordered triplets for reading: one card a triplet, with the cosines of every model that misordered it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from radgen.train.page.evaluation import Evaluation
from radgen.train.page.settings import PageSettings


@dataclass(frozen=True)
class Miss:
    """What one model made of a triplet; ``gap`` is by how much the negative is closer."""

    model: str
    positive: float
    negative: float

    @property
    def gap(self) -> float:
        return self.negative - self.positive


@dataclass(frozen=True)
class Card:
    """One triplet: its texts and targets, the fields that differ and those that do not, and the misses."""

    key: str
    axis: str
    axis_name: str
    texts: list[tuple[str, str, float | None]]
    differs: list[tuple[str, list[tuple[str, str]]]]
    shared: list[tuple[str, str]]
    misses: list[Miss]


@dataclass(frozen=True)
class Count:
    """Misordered triplets of an axis: cards on the page, and how many there are of each model."""

    axis: str
    name: str
    cards: int
    all: dict[str, int]


def cards(found: Evaluation, settings: PageSettings) -> list[Card]:
    """Return the cards, the widest misses first."""
    rows: dict[tuple[str, str], Mapping[str, Any]] = {}
    misses: dict[tuple[str, str], list[Miss]] = {}
    for model in found.models:
        used: dict[str, int] = {}
        for row in found.figure("contrasts", model, "failures") or ():
            axis = row["axis"]
            used[axis] = used.get(axis, 0) + 1
            if used[axis] > settings.limits.failures_an_axis:
                continue
            key = (axis, row["id"])
            rows.setdefault(key, row)
            misses.setdefault(key, []).append(Miss(model, row["cos_positive"], row["cos_negative"]))
    out = [_card(key, row, misses[key], settings) for key, row in rows.items()]
    return sorted(out, key=lambda card: (-max(miss.gap for miss in card.misses), card.axis, card.key))


def counts(found: Evaluation, shown: list[Card], settings: PageSettings) -> list[Count]:
    """Return an entry an axis, in the order of the accuracies."""
    every: dict[str, dict[str, int]] = {}
    for model in found.models:
        for axis, number in (found.figure("contrasts", model, "failure_counts") or {}).items():
            every.setdefault(axis, {})[model] = number
    order = [group for measure, group in found.keys("contrasts") if measure == "contrasts.accuracy" and group]
    axes = dict.fromkeys([*(axis for axis in order if axis in every), *every, *(card.axis for card in shown)])
    return [
        Count(axis, settings.name(axis), sum(card.axis == axis for card in shown), every.get(axis, {}))
        for axis in axes
    ]


def _card(key: tuple[str, str], row: Mapping[str, Any], misses: list[Miss], settings: PageSettings) -> Card:
    states = {part: row.get(f"{part}_state") or {} for part in ("anchor", "positive", "negative")}
    fields = dict.fromkeys(name for state in states.values() for name in state)
    differs, shared = [], []
    for name in fields:
        said = [(part, _say(state.get(name))) for part, state in states.items()]
        if len({value for _, value in said}) == 1:
            shared.append((settings.name(name), said[0][1]))
        else:
            differs.append((settings.name(name), said))
    texts = [
        ("anchor", row["anchor"], None),
        ("positive", row["positive"], row.get("positive_target")),
        ("negative", row["negative"], row.get("negative_target")),
    ]
    return Card(row["id"], key[0], settings.name(key[0]), texts, differs, shared, misses)


def _say(value: Any) -> str:
    """Return a value of a state as words; an unstated one is said to be that."""
    if value is None:
        return "not stated"
    if isinstance(value, list):
        return " × ".join(_say(item) for item in value) if value else "none"
    return f"{value:g}" if isinstance(value, int | float) else str(value).replace("_", " ")
