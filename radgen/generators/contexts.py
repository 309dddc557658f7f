"""Contexts: states without the axis that varies, and no combination that no radiologist would write."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from radgen.ontology.load import Ontology
from radgen.ontology.schema import FindingEntry

Fields = tuple[tuple[str, Any], ...]
SIDES = ("left", "right", "bilateral")


def possible(state: Mapping[str, Any]) -> bool:
    """Whether a radiologist could write the combination of fields."""
    if state.get("laterality") == "bilateral":
        if state.get("count") == 1 or state.get("count_category") == "single":
            return False
        if state.get("distribution") == "focal":
            return False
    plural = state.get("count", 1) > 1 or state.get("count_category") in ("few", "multiple", "innumerable")
    plural = plural or state.get("laterality") == "bilateral"
    plural = plural or state.get("distribution") in ("multifocal", "diffuse")
    if plural and state.get("size_mm") and state.get("size_comparator") != "up_to":
        return False  # one size for several lesions is the size of the largest
    if state.get("distribution") and ("count" in state or "count_category" in state):
        return False
    if state.get("size_mm") and ("count" in state or "count_category" in state):
        return state.get("size_comparator") == "up_to" and plural
    if state.get("temporal_change") == "resolved":
        return not (state.get("certainty") or "count" in state or "count_category" in state)
    return True


def zones(ontology: Ontology, tag: str) -> list[str]:
    """Return the zones a finding can be said to be in, from the top down."""
    found = {zone for _, site in ontology.sites(tag) for zone in site.zones}
    return [zone for zone in ontology.anatomy.zones if zone in found]


def lobes(ontology: Ontology, tag: str) -> list[str]:
    """Return the lobes a finding can be said to be in."""
    return list(ontology.anatomy.lobes) if any(site.lobes for _, site in ontology.sites(tag)) else []


def places(ontology: Ontology, tag: str, *, sided: bool = True) -> Iterator[Fields]:
    """Yield the places that can be stated of a finding: sides, sides with lobes, sides with zones."""
    entry = ontology.findings[tag]
    if "laterality" in entry.axes and sided:
        for side in SIDES:
            yield (("laterality", side),)
    if "location" in entry.axes:
        for lobe in lobes(ontology, tag):
            for side in ontology.anatomy.lobes[lobe].sides:
                yield (("laterality", side), ("lobe", lobe))
        for zone in zones(ontology, tag):
            for side in SIDES:
                yield (("laterality", side), ("zone", zone))


def sizes(entry: FindingEntry, steps: int = 6) -> list[int]:
    """Return up to ``steps`` whole millimetres spread evenly in log over the plausible range."""
    if entry.size_mm is None:
        return []
    low, high = entry.size_mm
    ratio = (high / low) ** (1 / (steps - 1))
    return sorted({round(low * ratio**step) for step in range(steps)} - {0})


def size_options(entry: FindingEntry) -> Iterator[Fields]:
    """Yield ways to state a size: plain, up to, about, in two dimensions."""
    for size in sizes(entry):
        value = float(size)
        yield (("size_mm", value),)
        yield (("size_mm", value), ("size_comparator", "up_to"))
        yield (("size_mm", value), ("size_comparator", "approx"))
        if size >= 4:
            yield (("size_mm", value), ("size_dims_mm", [value, second_dimension(value)]))


def second_dimension(first: float) -> float:
    """Return the shorter dimension of a lesion: about three quarters of the longer, whole millimetres."""
    return float(max(1, round(first * 0.75)))


def group_options(ontology: Ontology, tag: str, group: str) -> list[Fields]:
    """Return all the ways in which a finding can state one group of fields."""
    entry = ontology.findings[tag]
    axes = ontology.axes.axes
    if group == "size":
        return list(size_options(entry))
    if group == "count":
        top = entry.max_count or 0
        numbers = [(("count", n),) for n in axes["count"].integers if n <= top]
        words = [(("count_category", word),) for word in count_words(ontology, entry)]
        return [*numbers, *words]
    if group == "certainty":
        return [
            (("certainty", level), ("presence", "indeterminate" if level == "cannot_exclude" else "present"))
            for level in axes["certainty"].levels
        ]
    if group == "temporal_change":
        changes = entry.levels_on(group, axes["temporal_change"].levels)
        return [(("temporal_change", level),) for level in changes if level != "resolved"]
    levels: Sequence[str] = axes[group].levels  # the remaining groups are axes
    return [((group, level),) for level in entry.levels_on(group, levels)]


def count_words(ontology: Ontology, entry: FindingEntry) -> list[str]:
    """Return the count categories a finding can have: those worth no more than its largest count."""
    top = entry.max_count or 0
    axis = ontology.axes.axes["count"]
    return [word for word in axis.levels if axis.values[word] <= top or (word != "innumerable" and top >= 3)]


GROUP_AXES = (
    "size",
    "count",
    "severity",
    "temporal_change",
    "density",
    "margin",
    "certainty",
    "distribution",
)


def contexts(
    ontology: Ontology,
    tag: str,
    varying: Sequence[str],
    *,
    place_options: Sequence[Fields],
    extra: int = 2,
) -> list[Fields]:
    """Return every context of a finding: a place and up to ``extra`` further groups, none of them varying.

    Args:
        varying: axes that the context must leave open.
        place_options: the places to combine with, the empty one included.
        extra: how many further groups may be stated.
    """
    entry = ontology.findings[tag]
    groups = [axis for axis in GROUP_AXES if axis in entry.axes and axis not in varying]
    options = {group: group_options(ontology, tag, group) for group in groups}
    out: list[Fields] = []
    for place in place_options:
        for number in range(extra + 1):
            for chosen in itertools.combinations(groups, number):
                for combination in itertools.product(*(options[group] for group in chosen)):
                    fields = place + tuple(itertools.chain.from_iterable(combination))
                    if possible(dict(fields)):
                        out.append(fields)
    return out


def open_to(axes: Sequence[str], fields: Fields) -> bool:
    """Whether a context can be written with a size, two counts, several places, where those vary."""
    context = {name: value for name, value in fields if name != "dims"}
    if "size" in axes and not possible({"size_mm": 8.0, **context}):
        return False
    if "distribution" in axes and not possible({"distribution": "multifocal", **context}):
        return False
    return "count" not in axes or all(possible({"count": count, **context}) for count in (2, 4))
