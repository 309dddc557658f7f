"""Where the fields of a state can stand in a frame (``frames.yaml``)."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from radgen.templates import forms as word_forms
from radgen.templates.forms import Shape
from radgen.templates.phrasings import Frame, FramesFile

NOUN = "noun"
#: Slots that hold the finding itself.
NOUN_PHRASES = frozenset({"np", "a_np", "the_np", "of_np"})


@dataclass(frozen=True, eq=False)
class Placement:
    """A position for each group of a state, in any frame of one kind.

    Attributes:
        adjectives: slot keys (``group.position.flags``) of the groups before the noun, in order.
        posts: slot keys of the groups after the noun, in order.
        others: slot keys by slot, for the remaining groups.
        counted: whether a count stands before the noun.
    """

    adjectives: tuple[str, ...]
    posts: tuple[str, ...]
    others: dict[str, str]
    counted: bool


def kind_of(frame: Frame) -> Hashable:
    """Return what placements depend on: frames of one kind have the same ones."""
    entry = frame.entry
    slots = frame.slots & (NOUN_PHRASES | set(word_forms.POSITIONS))
    return slots, frame.post_closes, entry.asserts, entry.negates, *entry.only, "not", *entry.excludes


def find_places(frame: Frame, shape: Shape, layout: FramesFile) -> Iterator[Placement]:
    """Yield every way in which a frame can state exactly the groups of a shape."""
    entry, slots = frame.entry, frame.slots
    if entry.negates != (shape.mode == "absent") or (entry.asserts and shape.mode == "resolved"):
        return
    named = [name for name in word_forms.POSITIONS if name in slots]
    options = shape.options(frame, ["adj", *named])
    if not all(options) and shape.groups:
        return
    must = [name for name in named if name not in ("post", "exist")]
    if len(must) > len(shape.groups):
        return
    limits, never = layout.limits, layout.never_both_after
    for placed in itertools.product(*options):
        if placed.count("adj") > limits["adj"] or placed.count("post") > limits["post"]:
            continue
        if any(placed.count(name) != 1 for name in must) or placed.count("exist") > 1:
            continue
        where = {group: slot for (group, _), slot in zip(shape.groups, placed, strict=True)}
        if any(all(where.get(group) == "post" for group in both) for both in never):
            continue
        yield from _orderings(frame, shape, where, layout)


def _orderings(frame: Frame, shape: Shape, where: dict[str, str], layout: FramesFile) -> Iterator[Placement]:
    definite = "the_np" in frame.slots or ("of_np" in frame.slots and not shape.is_new)
    posts = [f"{group}.post" for group in layout.post_order if where.get(group) == "post"]
    if posts and frame.post_closes:
        posts[-1] += ".comma"
    others = {slot: f"{group}.{slot}" for group, slot in where.items() if slot not in ("adj", "post")}
    before = [group for group, slot in where.items() if slot == "adj"]
    suffix = ".adj.the" if definite else ".adj"
    seen = set()
    for order in layout.np_orders:
        adjectives = tuple(group + suffix for group in sorted(before, key=order.index))
        if adjectives not in seen:
            seen.add(adjectives)
            yield Placement(adjectives, tuple(posts), others, "count" in before)
