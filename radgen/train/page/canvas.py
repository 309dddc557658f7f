"""What all plots of the page share: the frame, bands, colours and marks, tooltips."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from radgen.train.page.settings import Style

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]


class Canvas:
    """What the plots of one page are made with.

    Args:
        models: names of the models in their order, which gives each its colour and mark.
        style: colours, marks and sizes.
    """

    def __init__(self, models: Sequence[str], style: Style) -> None:
        self.models = list(models)
        self.style = style

    def plot(self, rows: Rows, **parts: Any) -> Spec:
        """Return a whole specification over ``rows``, as wide as its place."""
        return {
            "width": "container",
            "data": {"values": [dict(row) for row in rows]},
            "config": self.style.config(),
            **parts,
        }

    def bands(
        self, rows: Rows, padding: float = 0.0, by: str = "model", order: Sequence[str] = ()
    ) -> tuple[Spec, Spec]:
        """Return the encodings of a band for each label and, where it holds several, of their places."""
        axis = {"labelLimit": 150, "domain": False, "ticks": False, "labelPadding": 6}
        labels = distinct(rows, "label")
        y = {"field": "label", "type": "nominal", "sort": labels, "title": None, "axis": axis}
        if len(labels) == len(rows):
            return y, {}
        present = [name for name in order or self.models if name in distinct(rows, by)]
        scale = {"paddingOuter": padding} if padding else {}
        return y, {"yOffset": {"field": by, "type": "nominal", "sort": present, "scale": scale}}

    def tall(self, rows: Rows, each: int) -> int:
        """Return the height of all bands: ``each`` pixels for a model in a band."""
        labels = len(distinct(rows, "label"))
        several = labels < len(rows)
        return labels * max(28, each * len(distinct(rows, "model")) + 10 if several else 0)

    def rule(self, at: float, colour: str, dash: Sequence[int] = (), scale: Spec | None = None) -> Spec:
        """Return a thin line across the bands at one value."""
        return {
            "mark": {"type": "rule", "color": colour, "strokeDash": list(dash)},
            "data": {"values": [{"at": at}]},
            "encoding": {"x": {"field": "at", "type": "quantitative", "scale": scale or {}}},
        }

    def tint(self, field: str, names: Sequence[str]) -> Spec:
        """Return the colour of each name, by its place in the order of ``names``."""
        scale = {"domain": list(names), "range": [self.style.colour(index) for index in range(len(names))]}
        return {"field": field, "type": "nominal", "legend": None, "scale": scale}

    def shape(self, field: str, names: Sequence[str]) -> Spec:
        """Return the mark of each name, by its place in the order of ``names``."""
        scale = {"domain": list(names), "range": [self.style.mark(index) for index in range(len(names))]}
        return {"field": field, "type": "nominal", "legend": None, "scale": scale}

    def marks(self, marks: Sequence[tuple[float, str]]) -> list[Spec]:
        """Return thin upright lines at places of the horizontal scale, with a word each."""
        values = {"values": [{"x": at, "text": text} for at, text in marks]}
        place = {"x": {"field": "x", "type": "quantitative"}}
        rule = {"type": "rule", "color": self.style.faint, "strokeDash": [4, 3]}
        word = {"type": "text", "align": "left", "baseline": "top", "dx": 4, "y": 0}
        word |= {"color": self.style.soft, "fontSize": self.style.size}
        return [
            {"data": values, "mark": rule, "encoding": place},
            {"data": values, "mark": word, "encoding": place | {"text": {"field": "text"}}},
        ]


def distinct(rows: Rows, field: str) -> list[Any]:
    """Return the values of a field, each once, in the order of the rows."""
    return list(dict.fromkeys(row[field] for row in rows if field in row))


def intervals(rows: Rows) -> bool:
    """Tell whether any row has an interval."""
    return any(row.get("low") is not None for row in rows)


def tooltip(rows: Rows, fields: Sequence[str]) -> list[Spec]:
    """Return the fields of a tooltip: those that any row has; numbers with three digits."""
    out: list[Spec] = []
    for field in fields:
        values = [row.get(field) for row in rows if row.get(field) is not None]
        if values and all(isinstance(value, float) for value in values):
            out.append({"field": field, "type": "quantitative", "format": ".3f"})
        elif values:
            out.append({"field": field, "type": "nominal"})
    return out
