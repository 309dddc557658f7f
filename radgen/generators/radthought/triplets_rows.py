"""Rows of RadThought triplets as they stand in the files (spec §9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import orjson
from numpy.typing import NDArray

from radgen.generators.radthought.corpus import CONCLUDING, Thoughts
from radgen.generators.radthought.corpus_texts import TEXTS, evidence_text, level_text, steps_of
from radgen.generators.radthought.pair_settings import LEVELS, LevelName, TripletName
from radgen.generators.radthought.pairs_folder import FAMILY, ThoughtOrder
from radgen.generators.radthought.record import LEVELS as CONCLUDED
from radgen.generators.radthought.scores_coded import Floats, Ints
from radgen.generators.radthought.triplets_units import Units
from radgen.generators.similarity.folder import Spec, line_of
from radgen.generators.similarity.index import mixed
from radgen.generators.splits import Split

_TEXTS = ("anchor", "positive", "negative")
_STATES = ("anchor_state", "positive_state", "negative_state")
COLUMNS = (
    *_TEXTS, "id", "family", "anchor_level", "level", "positive_target", "negative_target", *_STATES, "hard",
    "shared_organs", "positive_about", "negative_about", "anchor_report", "positive_report",
    "negative_report",
)  # fmt: skip
_ABOUT = {
    "findings_alignment": "The anchor is the findings section of a report, the positive one level of its"
    " record, the negative the same level of an unrelated report.",
    "coherence": "Anchor and positive are adjacent levels of one record, the negative is the positive's level"
    " of an unrelated report.",
    "derivation": "The anchor are the first-order sentences of some findings, the positive is a conclusion"
    " that rests on them, the negative a conclusion of an unrelated report.",
}
DESCRIPTIONS = {
    "anchor": "a text of a report",
    "positive": "a text that follows from it",
    "negative": "the same kind of text of an unrelated report",
    "family": "radthought",
    "anchor_level": "findings (the report's findings section), evidence, or the level of the anchor",
    "level": "the level of positive and negative",
    "positive_target": "1: anchor and positive rest on the same findings",
    "negative_target": "RadSim of the findings of negative and anchor",
    "anchor_state": "the findings that the anchor rests on: a list of canonical findings",
    "positive_state": "the findings that the positive rests on",
    "negative_state": "the findings that the negative rests on",
    "hard": "whether negative and anchor have abnormal findings of one organ system",
    "shared_organs": "those organ systems",
    "positive_about": "derivation: the processes that the positive concludes",
    "negative_about": "derivation: the processes that the negative concludes",
    "anchor_report": "id of the report",
    "positive_report": "id of the same report",
    "negative_report": "id of the unrelated report",
}


def spec_of(name: TripletName, order: ThoughtOrder) -> Spec:
    """Return what a dataset of triplets is."""
    kinds = dict.fromkeys(_STATES, "states") | {"hard": "truth"}
    kinds |= dict.fromkeys(("shared_organs", "positive_about", "negative_about"), "texts")
    columns = tuple(column for column in COLUMNS if name == "derivation" or not column.endswith("_about"))
    return Spec(
        family=FAMILY,
        name=name,
        command=order.command("triplets", f"--family {name}"),
        seed=order.seed,
        columns=columns,
        texts=_TEXTS,
        label=None,
        kinds=kinds,
        target="negative_target",
        about=f"{_ABOUT[name]} It mentions none of the anchor's abnormal findings; hard ones have another"
        " finding of the same organ system.",
        descriptions=DESCRIPTIONS,
    )


@dataclass
class Chosen:
    """Triplets of one split.

    Attributes:
        unit: number of the unit that gives anchor and positive.
        negative: the member that is its negative.
        target: RadSim of the negative.
        organs: organ systems that both have abnormal findings of, as bits.
    """

    unit: Ints
    negative: Ints
    target: Floats
    organs: NDArray[np.uint64]
    units: Units

    @classmethod
    def empty(cls, units: Units) -> Chosen:
        """Return no triplets."""
        nothing = np.zeros(0, np.int64)
        return cls(nothing, nothing, np.zeros(0), np.zeros(0, np.uint64), units)

    def __len__(self) -> int:
        return len(self.unit)

    def keys(self) -> Ints:
        """Return a number for each triplet that tells it from the others."""
        return (self.unit << 32) | self.negative

    def joined(self, other: Chosen, most: int) -> Chosen:
        """Return the triplets of both, at most so many."""
        return Chosen(
            np.concatenate([self.unit, other.unit])[:most],
            np.concatenate([self.negative, other.negative])[:most],
            np.concatenate([self.target, other.target])[:most],
            np.concatenate([self.organs, other.organs])[:most],
            self.units,
        )


def triplet_rows(
    thoughts: Thoughts, systems: list[str], split: Split, chosen: Chosen, spec: Spec
) -> Iterator[tuple[Split, bytes]]:
    """Yield triplets as lines, in an order that does not follow the reports."""
    units = chosen.units
    order = np.argsort(mixed(chosen.keys()), kind="stable")
    columns = (chosen.unit, chosen.negative, chosen.target, chosen.organs)
    abouts = list(thoughts.abouts.numbers)
    states = thoughts.steps.states if units.derived else thoughts.states
    for unit, negative, target, organs in zip(*(column[order].tolist() for column in columns), strict=True):
        member = int(units.member[unit])
        code = int(units.level[unit])
        texts = dict(zip(_TEXTS, _texts(thoughts, units, unit, member, negative, code), strict=True))
        lists = [orjson.Fragment(thoughts.states_json(states, number)) for number in (member, negative)]
        level = CONCLUDING[CONCLUDED[code]] if units.derived else LEVELS[code]
        rest: dict[str, Any] = {
            "family": FAMILY,
            "anchor_level": "evidence" if units.derived else TEXTS[int(units.anchor[unit])],
            "level": level,
            "positive_target": 1.0,
            "negative_target": target,
            **dict(zip(_STATES, (lists[0], *lists), strict=True)),
            "hard": organs > 0,
            "shared_organs": [name for place, name in enumerate(systems) if organs >> place & 1],
        }
        if units.derived:
            rest["positive_about"], rest["negative_about"] = (
                sorted(abouts[about] for about in thoughts.steps.abouts[step]) for step in (member, negative)
            )
        mine = thoughts.ids[int(units.record[unit])]
        rest |= {
            "anchor_report": mine,
            "positive_report": mine,
            "negative_report": thoughts.ids[int(units.owners[negative])],
        }
        yield split, line_of(spec.name, {name: orjson.dumps(text) for name, text in texts.items()}, rest)


def _texts(
    thoughts: Thoughts, units: Units, unit: int, member: int, negative: int, code: int
) -> tuple[str, str, str]:
    if not units.derived:
        row = thoughts.row(member)
        anchor, level = TEXTS[int(units.anchor[unit])], LEVELS[code]
        return (
            thoughts.findings[member] if anchor == "findings" else level_text(row, cast(LevelName, anchor)),
            level_text(row, level),
            level_text(thoughts.row(negative), level),
        )
    records = [thoughts.row(thoughts.steps.record[step]) for step in (member, negative)]
    mine, other = (
        steps_of(row)[thoughts.steps.place[step]]
        for row, step in zip(records, (member, negative), strict=True)
    )
    return evidence_text(records[0], mine.derived), mine.text, other.text
