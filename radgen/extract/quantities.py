"""Numbers of a sentence: sizes now and before, distances, vertebral levels, segments, ribs, dates, counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from radgen.extract.tokens import Tokens

_ORDINAL = frozenset(("st", "nd", "rd", "th"))
_ORDINAL_WORDS = {
    "first": "1st",
    "second": "2nd",
    "third": "3rd",
    "fourth": "4th",
    "fifth": "5th",
    "sixth": "6th",
    "seventh": "7th",
    "eighth": "8th",
    "ninth": "9th",
    "tenth": "10th",
    "eleventh": "11th",
    "twelfth": "12th",
}
#: Words that may number a rib.
ORDINALS = frozenset(_ORDINAL_WORDS)


class QuantityWords:
    """The ``quantities`` section of ``cues.yaml``."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.units: dict[str, float] = data["units"]
        self.vertebrae: dict[str, int] = data["vertebrae"]
        self.comparators = [
            (tuple(text.split()), name) for name, texts in data["before"].items() for text in texts
        ]
        self.after = {tuple(text.split()): name for name, texts in data["after"].items() for text in texts}
        self.by = frozenset(data["by"])
        self.range = frozenset(data["range"])
        self.prior = frozenset(data["prior"])
        self.prior_after = frozenset(data["prior_after"])
        self.away = frozenset(data["away"])
        self.landmarks = frozenset(data["landmarks"])
        self.labels = frozenset(data["labels"])
        self.no_count = frozenset(data["no_count"])
        self.rib_fillers = frozenset(data["rib_fillers"])


@dataclass(slots=True)
class Quantity:
    """A stretch of words that a number governs, and what it states (nothing for a date)."""

    kind: str
    start: int
    end: int
    attrs: dict[str, Any] = field(default_factory=dict)


def quantities(tokens: Tokens, say: QuantityWords) -> dict[int, Quantity]:
    """Return the quantities of a sentence by their first word."""
    found: dict[int, Quantity] = {}
    order: list[int] = []
    lower = tokens.lower
    index = 0
    last: Quantity | None = None
    while index < len(lower):
        quantity = None
        if _digit(lower[index]):
            quantity = _number(tokens, say, index, last)
        elif lower[index] in _ORDINAL_WORDS:
            quantity = _rib(tokens, say, index)
        if quantity is None:
            index += 1
            continue
        if last is not None and quantity.start < last.end:
            quantity.start = last.end
        while order and order[-1] >= quantity.start:
            del found[order.pop()]
        found[quantity.start] = quantity
        order.append(quantity.start)
        last = quantity if quantity.kind == "size" else last
        index = max(index + 1, quantity.end)
    return found


def _number(tokens: Tokens, say: QuantityWords, index: int, last: Quantity | None) -> Quantity:
    lower = tokens.lower
    size = len(lower)
    before = lower[index - 1] if index else ""
    after = lower[index + 1] if index + 1 < size else ""
    glued = index > 0 and tokens.end(index - 1) == tokens.starts[index]
    if glued and before in say.vertebrae and _whole(lower[index]):
        tight = after.isalpha() and tokens.starts[index + 1] == tokens.end(index)
        if 0 < int(lower[index][:3]) <= say.vertebrae[before] and after not in say.units and not tight:
            return _level(tokens, say, index - 1)
    if after in _ORDINAL and tokens.starts[index + 1] == tokens.end(index):
        rib = _rib(tokens, say, index)
        return rib or Quantity("ignore", index, index + 2)
    if before in ("rib", "ribs"):
        return _ribs_after(tokens, say, index)
    if before in ("segment", "segments"):
        return _segment(tokens, say, index)
    measure = _measure(tokens, say, index)
    if measure is not None:
        return _role(tokens, say, *measure, last)
    if after == "/" and index + 2 < size and _digit(lower[index + 2]):
        end = index + 3
        if end + 1 < size and lower[end] in "/-" and _digit(lower[end + 1]):
            end += 2
        return Quantity("ignore", index, end)
    if index + 1 in tokens.joined and _whole(after):
        end = index + 2
        while end in tokens.joined and _whole(lower[end]):
            end += 1
        return Quantity("ignore", index, end)
    word = lower[index]
    if len(word) == 4 and word[:2] in ("19", "20"):
        return Quantity("year", index, index + 1)
    if (
        not _whole(word)
        or len(word) > 3
        or int(word) == 0
        or before in say.labels
        or after in say.no_count
        or glued
    ):
        return Quantity("ignore", index, index + 1)
    if (after in (".", ")", ":") and index == 0) or after == ":" or before in ("#", "/"):
        return Quantity("ignore", index, index + 1)
    end = index + 3 if lower[index + 1 : index + 3] in (["in", "number"], ["in", "total"]) else index + 1
    start = index - 1 if before in ("number", "numbering", "totaling", "totalling") else index
    total = lower[max(0, index - 3) : index] == ["a", "total", "of"]
    kind = "attribute" if end > index + 1 or start < index else "count"
    return Quantity(kind, index - 3 if total else start, end, {"count": int(word)})


def _level(tokens: Tokens, say: QuantityWords, index: int) -> Quantity:
    """Read "T8", "T8-T9", "T12/L1", "T7 and T8" from its letter on."""
    lower = tokens.lower
    letter = lower[index].upper()
    text = f"{letter}{lower[index + 1]}"
    at = index + 2
    while at < len(lower):
        join = at
        link = "-" if at in tokens.joined else ""
        if not link:
            if lower[at] in ("-", "/", "\u2013") or lower[at] in ("to", "through"):
                link = "-"
            elif lower[at] in ("and", ","):
                link = " and "
            else:
                break
            join = at + 1
            if lower[join : join + 1] == ["and"]:
                join += 1
        if join + 1 < len(lower) and lower[join] in say.vertebrae and _whole(lower[join + 1]):
            if tokens.starts[join + 1] != tokens.end(join):
                break
            text += f"{link}{lower[join].upper()}{lower[join + 1]}"
            at = join + 2
        elif (
            join < len(lower) and _whole(lower[join]) and link == "-" and lower[join + 1 : join + 2] != ["mm"]
        ):
            text += f"{link}{letter}{lower[join]}"
            at = join + 1
        else:
            break
    return Quantity("level", index, at, {"level": text})


def _rib(tokens: Tokens, say: QuantityWords, index: int) -> Quantity | None:
    """Read "8th rib", "right 7th and 8th ribs", "eighth posterior rib"; nothing if no rib follows."""
    lower = tokens.lower
    numbers: list[str] = []
    at = index
    end = index
    while at < len(lower) and at < index + 14:
        word = lower[at]
        if word in _ORDINAL_WORDS:
            numbers.append(_ORDINAL_WORDS[word])
        elif _digit(word) and _whole(word) and lower[at + 1 : at + 2] and lower[at + 1] in _ORDINAL:
            numbers.append(word + lower[at + 1])
            at += 1
        elif word in ("rib", "ribs") or word == "costochondral":
            break
        elif word not in say.rib_fillers:
            return None
        at += 1
        end = at if len(numbers) and word not in say.rib_fillers else end
    else:
        return None
    if at >= len(lower):
        return None
    name = numbers[0] if len(numbers) == 1 else " and ".join([", ".join(numbers[:-1]), numbers[-1]])
    return Quantity(
        "level", index, max(end, index + 1), {"level": f"{name} rib{'s' if len(numbers) > 1 else ''}"}
    )


def _ribs_after(tokens: Tokens, say: QuantityWords, index: int) -> Quantity:
    """Read the numbers of "ribs 8 through 10"."""
    lower = tokens.lower
    at = index + 1
    text = lower[index]
    while at + 1 < len(lower) and (lower[at] in ("-", "through", "to", "and", ",") or at in tokens.joined):
        link = "-" if lower[at] in ("-", "through", "to") or at in tokens.joined else " and "
        number = at if at in tokens.joined else at + 1
        if not _whole(lower[number]):
            break
        text += link + lower[number]
        at = number + 1
    return Quantity(
        "level", index, at, {"level": f"rib{'s' if len(text) > len(lower[index]) else ''} {text}"}
    )


def _segment(tokens: Tokens, say: QuantityWords, index: int) -> Quantity:
    lower = tokens.lower
    text = lower[index]
    at = index + 1
    while at + 1 < len(lower) and lower[at] in ("/", "and", "-", ",") and _whole(lower[at + 1]):
        text += ("/" if lower[at] == "/" else " and ") + lower[at + 1]
        at += 2
    if at < len(lower) and lower[at] in ("a", "b") and tokens.starts[at] == tokens.end(at - 1):
        text += lower[at]
        at += 1
    return Quantity("level", index - 1, at, {"segment": text})


def _measure(tokens: Tokens, say: QuantityWords, index: int) -> tuple[int, int, list[float], bool] | None:
    """Read "8 mm", "1.2 x 0.8 cm", "3-5 mm" from a number on: start, end, millimetres, whether a range."""
    lower = tokens.lower
    size = len(lower)
    values: list[tuple[float, float | None]] = []
    spread = False
    at = index
    while at < size and _digit(lower[at]):
        value = float(lower[at])
        at += 1
        unit = None
        if at < size and lower[at] in say.units:
            unit = say.units[lower[at]]
            at += 1
        values.append((value, unit))
        if at + 1 < size and lower[at] in say.by and _digit(lower[at + 1]) and not spread and len(values) < 3:
            at += 1
            continue
        if len(values) == 1 and at < size:
            if at in tokens.joined and _digit(lower[at]):
                spread = True
                continue
            between = lower[at] == "and" and index and lower[index - 1] == "between"
            if at + 1 < size and (lower[at] in say.range or between) and _digit(lower[at + 1]):
                spread = True
                at += 1
                continue
        break
    units = [unit for _, unit in values if unit]
    if not units:
        return None
    if spread and len(values) == 2 and values[1][1] is None:
        return None
    filled: list[float] = []
    for position, (value, unit) in enumerate(values):
        factor = unit or next((u for _, u in values[position:] if u), units[-1])
        filled.append(_round(value * factor))
    return index, at, filled, spread and len(values) == 2


def _round(value: float) -> float:
    return round(value, 3)


def _role(
    tokens: Tokens,
    say: QuantityWords,
    start: int,
    end: int,
    values: list[float],
    spread: bool,
    last: Quantity | None,
) -> Quantity:
    """Say what a measurement is: the size, a former size, a distance, a range."""
    lower = tokens.lower
    if any(not 0 < value <= 2000 for value in values):
        return Quantity("ignore", start, end)
    floor = last.end if last is not None else 0
    head = start
    comparator = None
    for words, name in say.comparators:
        if head - len(words) >= floor and tuple(lower[head - len(words) : head]) == words:
            comparator, head = name, head - len(words)
            break
    for words, name in say.after.items():
        if tuple(lower[end : end + 2]) == words:
            comparator, end = name, end + 2
    context = lower[max(floor, head - 5) : head]
    if "," in context:
        context = context[len(context) - context[::-1].index(",") :]
    if (
        spread
        and context[-1:] == ["from"]
        and not {"ranging", "range", "ranges"} & set(lower[max(0, head - 3) : head])
    ):
        return Quantity("size", head - 1, end, {"prior_size_mm": values[0], "size_mm": values[1]})
    if _is_distance(lower, say, context, end):
        return Quantity("size", head, end, {"distance_mm": max(values)})
    if (context[-1:] == ["from"] and last is not None) or _is_prior(lower, say, context, end, last):
        return Quantity("size", head, end, {"prior_size_mm": max(values)})
    if context[-1:] == ["from"] and lower[end : end + 1] == ["to"]:
        return Quantity("size", head - 1, end, {"prior_size_mm": max(values)})
    attrs: dict[str, Any] = {"size_mm": max(values)}
    if spread:
        attrs["size_range_mm"] = values
    elif len(values) > 1:
        attrs["size_dims_mm"] = values
    if comparator:
        attrs["size_comparator"] = comparator
    return Quantity("size", head, end, attrs)


def _whole(word: str) -> bool:
    """Whether a word is a whole number in ASCII digits."""
    return word.isascii() and word.isdigit()


def _digit(word: str) -> bool:
    return word[0] in "0123456789"


def _is_distance(lower: list[str], say: QuantityWords, context: list[str], end: int) -> bool:
    after = lower[end : end + 4]
    if after and (
        after[0] in say.away or (after[0] == "from" and not say.away.isdisjoint(lower[end - 1 : end + 1]))
    ):
        return True
    if after[:1] in (["from"], ["of"], ["to"]) and not say.landmarks.isdisjoint(lower[end + 1 : end + 6]):
        return not {"measuring", "measures", "measure", "size"} & set(context[-2:])
    return "distance" in context


def _is_prior(
    lower: list[str], say: QuantityWords, context: list[str], end: int, last: Quantity | None
) -> bool:
    words = set(context[-4:])
    if "now" in words or "currently" in words:
        return False
    if words & say.prior:
        return True
    if last is not None and {"compared", "versus", "vs"} & words:
        return True
    after = lower[end : end + 4]
    if after[:1] == ["on"]:
        return not {"prior", "previous"}.isdisjoint(after)
    return bool(after) and after[0] in say.prior_after
