"""Which surface forms a state's fields can take, position by position (``words.yaml``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from radgen.ontology.schema import Site
from radgen.templates.phrasings import Frame, Words, agree

Place = tuple[str | None, str | None, str | None]
#: Groups of one field whose value is a word.
WORD_GROUPS = ("certainty", "temporal_change", "severity", "distribution", "margin", "density")


def group_values(state: Mapping[str, Any], further: Sequence[str] = ()) -> dict[str, Any]:
    """Return the groups that a state states, each with what decides its forms.

    A size is its kind with both dimensions (the second 0 where there is none), a count the number or the
    category, a place its side, lobe and zone; the rest are their words.

    Args:
        further: groups of a user's phrasings, each a field of its own.
    """
    words = (*WORD_GROUPS, *further)
    values: dict[str, Any] = {name: state[name] for name in words if state.get(name) is not None}
    if state.get("count") is not None:
        values["count"] = state["count"]
    elif state.get("count_category") is not None:
        values["count"] = state["count_category"]
    if state.get("size_mm") is not None:
        dims = state.get("size_dims_mm")
        kind = "dims" if dims else state.get("size_comparator", "plain")
        values["size"] = (kind, *dims[:2]) if dims else (kind, state["size_mm"], 0.0)
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


def size_forms(words: Words, size: tuple[str, float, float], position: str) -> list[str]:
    """Return how a size (its kind and both dimensions in millimetres) is said in a position."""
    kind, first, second = size
    slots = {
        "mm": millimetres(first),
        "cm": centimetres(first),
        "mm2": millimetres(second),
        "cm2": centimetres(second),
    }
    return [text.format(**slots) for text in words.size_forms.get(kind, {}).get(position, [])]


def number_forms(words: Words, count: int, position: str) -> list[str]:
    """Return how an integer count is said in a position."""
    forms = words.number_forms
    if count == 1:
        return list(forms.one.get(position, []))
    word = forms.words[count] if count < len(forms.words) else str(count)
    shapes = {"adj": forms.adj, "post": forms.post, "pred": forms.pred}.get(position, [])
    return list(dict.fromkeys(text.format(word=word, digit=count) for text in shapes))


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


class Meaning(NamedTuple):
    """What is said of one group, and of what: all that decides which forms suit it.

    Attributes:
        group: the group of fields.
        value: what the state gives for it (`group_values`).
        classes: classes of the finding (``for`` in ``words.yaml``).
        plural: the number of the noun phrase.
        site: where the finding sits; decides how a side is said.
    """

    group: str
    value: Any
    classes: frozenset[str]
    plural: bool
    site: Site | None

    def forms(self, words: Words, position: str) -> list[str]:
        """Return the forms in a position, without what attaches them."""
        if self.group == "place":
            return place_forms(words, self.value, self.site, position)
        if self.group == "size":
            texts = size_forms(words, self.value, position)
        elif self.group == "count" and isinstance(self.value, int):
            texts = number_forms(words, self.value, position)
        else:
            found = words.words.get(self.group, {}).get(self.value, {}).get(position, [])
            return [form.say(self.plural) for form in found if form.suits(self.classes, self.plural)]
        return [agree(text, self.plural) for text in texts]

    def positions(self, words: Words) -> tuple[str, ...]:
        """Return the positions in which it can be said; ``adj.the`` is an adjective after "the"."""
        found = [name for name in POSITIONS if self.forms(words, name)]
        if "adj" in found and attach(self.forms(words, "adj"), "adj", definite=True):
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
    ruled_out = (entry.only and group not in entry.only) or group in entry.excludes
    if slot in ("pred", "of", "hedge") and ruled_out:
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
