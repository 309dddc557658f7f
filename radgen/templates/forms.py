"""Which surface forms a state's fields can take, position by position (``words.yaml``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from radgen.ontology.schema import Site
from radgen.templates.phrasings import Frame, Words, agree

Place = tuple[str | None, str | None, str | None]


def group_values(state: Mapping[str, Any], further: Sequence[str] = ()) -> dict[str, Any]:
    """Return the groups that a state states, with what decides their forms.

    Sizes and integer counts are reduced to their kind, so that all states of one kind share plans.

    Args:
        further: groups of a user's phrasings, each a field of its own.
    """
    values: dict[str, Any] = {}
    for name in ("certainty", "temporal_change", "severity", "distribution", "margin", "density", *further):
        if state.get(name) is not None:
            values[name] = state[name]
    if state.get("count") is not None:
        values["count"] = "one" if state["count"] == 1 else "some"
    elif state.get("count_category") is not None:
        values["count"] = state["count_category"]
    if state.get("size_mm") is not None:
        values["size"] = "dims" if state.get("size_dims_mm") else state.get("size_comparator", "plain")
    place = (state.get("laterality"), state.get("lobe"), state.get("zone"))
    if any(place):
        values["place"] = place
    return values


def millimetres(value: float) -> str:
    """Return millimetres as a report writes them: "8", "8.5"."""
    return f"{value:g}"


def centimetres(value: float) -> str:
    """Return millimetres in centimetres as a report writes them: "0.8", "1.2", "2.0"."""
    text = f"{value / 10:.2f}".rstrip("0")
    return text + "0" if text.endswith(".") else text


def own_forms(words: Words, state: Mapping[str, Any]) -> dict[str, dict[str, list[str]]]:
    """Return the forms of a state's size and integer count, by group and position."""
    out: dict[str, dict[str, list[str]]] = {}
    if state.get("size_mm") is not None:
        kind = "dims" if state.get("size_dims_mm") else state.get("size_comparator", "plain")
        first, second = (state.get("size_dims_mm") or [state["size_mm"], 0.0])[:2]
        slots = {
            "mm": millimetres(first),
            "cm": centimetres(first),
            "mm2": millimetres(second),
            "cm2": centimetres(second),
        }
        forms = words.size_forms.get(kind, {})
        out["size"] = {
            position: [text.format(**slots) for text in texts] for position, texts in forms.items()
        }
    if state.get("count") is not None:
        count = state["count"]
        if count == 1:
            out["count"] = {position: list(texts) for position, texts in words.number_forms.one.items()}
        else:
            names = words.number_forms.words
            word = names[count] if count < len(names) else str(count)
            slots = {"word": word, "digit": str(count)}
            shapes = {name: getattr(words.number_forms, name) for name in ("adj", "post", "pred")}
            out["count"] = {
                position: list(dict.fromkeys(text.format(**slots) for text in texts))
                for position, texts in shapes.items()
            }
    return out


def attach(texts: Sequence[str], position: str, *, comma: bool = False, definite: bool = False) -> list[str]:
    """Add what joins a form to its neighbours: a space after an adjective, a closing comma."""
    if position == "adj":
        if definite:
            texts = [
                text
                for text in texts
                if not text.startswith(("a ", "only ", "just ")) and text not in ("one", "1")
            ]
        return [text + " " for text in texts]
    if comma:
        return [text + "," if text.startswith(",") else text for text in texts]
    return list(texts)


@dataclass(frozen=True)
class Meaning:
    """What a state says of each group, and of what: all that decides which forms suit it.

    Attributes:
        classes: classes of the finding (``for`` in ``words.yaml``).
        site: where it sits; decides how a side is said.
        plural: the number of the noun phrase.
        values: by group, what it states (sizes and integer counts by their kind only).
    """

    classes: frozenset[str]
    site: Site | None
    plural: bool
    values: dict[str, Any]

    def forms(self, words: Words, group: str, position: str) -> list[str]:
        """Return the forms of a group in a position, without what attaches them.

        Sizes and integer counts give their patterns: enough to know whether there are any.
        """
        value = self.values[group]
        if group == "size":
            return words.size_forms.get(value, {}).get(position, [])
        if group == "place":
            return place_forms(words, value, self.site, position)
        if group == "count" and value in ("one", "some"):
            if value == "one":
                return words.number_forms.one.get(position, [])
            return list(getattr(words.number_forms, position, []))
        found = words.words.get(group, {}).get(value, {}).get(position, [])
        return [form.say(self.plural) for form in found if form.suits(self.classes, self.plural)]

    def positions(self, words: Words, group: str) -> tuple[str, ...]:
        """Return the positions in which a group can be said; ``adj.the`` is an adjective after "the"."""
        found = [name for name in POSITIONS if self.forms(words, group, name)]
        if "adj" in found and attach(self.forms(words, group, "adj"), "adj", definite=True):
            found.append("adj.the")
        return tuple(found)


POSITIONS = ("adj", "post", "pred", "of", "exist", "hedge", "front", "label", "whole")


@dataclass(frozen=True)
class Shape:
    """What decides which frames can say a state, and with its groups where.

    There are few shapes and many states, so placements are found once a shape.

    Attributes:
        mode: ``present``, ``absent`` (a plain negation) or ``resolved``.
        is_new: whether the change is ``new``, which introduces the finding ("development of a …").
        groups: each group with the positions that it has forms for.
    """

    mode: str
    is_new: bool
    groups: tuple[tuple[str, tuple[str, ...]], ...]

    def options(self, frame: Frame, slots: Sequence[str]) -> list[list[str]]:
        """Return for each group the positions in a frame where it can stand; empty lists rule it out."""
        definite = "the_np" in frame.slots or ("of_np" in frame.slots and not self.is_new)
        return [
            [
                slot
                for slot in slots
                if _fits(frame, group, slot, positions, definite)
                and not (slot == "pred" and self.mode == "resolved" and group != "temporal_change")
            ]  # what has resolved "has resolved" and no longer "is mild"
            for group, positions in self.groups
        ]


def _fits(frame: Frame, group: str, slot: str, positions: tuple[str, ...], definite: bool) -> bool:
    """Whether a group can stand in a slot of a frame."""
    entry = frame.entry
    if slot in ("pred", "of", "hedge"):
        if (entry.only and group not in entry.only) or group in entry.excludes:
            return False
    if slot == "of" and group != "temporal_change":
        return False
    if slot == "hedge" and group != "certainty":
        return False
    if slot in ("front", "label", "whole") and group != "place":
        return False
    if slot == "adj" and group == "count" and "pred" in frame.slots and "the_np" not in frame.slots:
        return False  # "three nodules are calcified" speaks of three among others
    if slot == "post" and entry.negates and group != "place":
        return False  # "no nodule, new since the prior study" says two things
    if slot in ("adj", "post") and group == "certainty" and frame.slots & {"the_np", "of_np"}:
        return False  # "the possible nodule" takes the nodule for granted
    return ("adj.the" if slot == "adj" and definite else slot) in positions


def place_forms(words: Words, place: Place, site: Site | None, position: str) -> list[str]:
    """Return how a side, a lobe or a zone is said in a position; empty where it is not said so."""
    side, lobe, zone = place
    both = side == "bilateral"
    number = "both" if both else "one"
    forms = words.place
    slots = {"side": side or "", "lobe": lobe or "", "abbr": ""}
    if side is None or site is None or side == "midline":
        return []
    if lobe:
        shape = forms.lobe.lingula if lobe == "lingula" else getattr(forms.lobe, number)
        slots["abbr"] = forms.lobe.abbreviations.get(side, {}).get(lobe, "")
        texts = [text for text in shape.get(position, []) if slots["abbr"] or "{abbr}" not in text]
    elif zone:
        texts = forms.zone[zone][number].get(position, [])
    else:
        texts = list(forms.side[number].get(position, []))
        if site.within is not None:
            slots["one"], slots["both"] = site.within.text, site.within.form(True)
            texts += forms.within[number].get(position, [])
    return [text.format(**slots) for text in texts]


def all_forms(words: Words, group: str, value: str) -> dict[str, list[str]]:
    """Return every form of a value by position, in the singular and the plural: for dictionaries of words."""
    out: dict[str, list[str]] = {}
    for position, found in words.words[group][value].items():
        texts = [agree(form.text, plural) for form in found for plural in (False, True)]
        out[position] = list(dict.fromkeys(texts))
    return out
