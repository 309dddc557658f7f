"""Plots of the page as Vega-Lite specifications: plain data in, a JSON-ready mapping out.

Every plot takes the width of its place (``"width": "container"``), so that one page serves a wide screen and
a telephone. A model has the same colour and mark everywhere; the page explains them once, in its bar.
"""

from __future__ import annotations

from collections.abc import Sequence

from radgen.train.page.canvas import Canvas, Rows, Spec, distinct, intervals, tooltip

#: Names above a matrix of more levels than this stand upright.
_SLANTED = 6
#: ... unless no name is longer than this.
_SHORT = 3


class Plots(Canvas):
    """The plots of one page; see `Canvas` for what they are made with."""

    def dots(
        self, rows: Rows, *, title: str, domain: Sequence[float] | None = None, rule: float | None = None
    ) -> Spec:
        """Values with their intervals: a line of the plot for each ``label``, a dot for each ``model``.

        Args:
            rows: mappings with ``label``, ``model``, ``value`` and, where known, ``low`` and ``high``; a row
                with ``quoted`` in place of ``model`` is a figure from elsewhere, drawn hollow.
            title: what the scale measures.
            domain: ends of the scale; the data's own if None.
            rule: where a thin line stands (chance), or None.
        """
        y, place = self.bands(rows, padding=0.6)
        scale: Spec = {"domain": list(domain), "nice": False} if domain else {"zero": False, "padding": 8}
        x = {"field": "value", "type": "quantitative", "title": title, "scale": scale}
        x["axis"] = {"tickCount": 6}
        layers: list[Spec] = []
        if rule is not None:
            layers.append(self.rule(rule, self.style.faint, [4, 3], scale))
        if intervals(rows):
            layers.append(
                {
                    "transform": [{"filter": "isValid(datum.low)"}],
                    "mark": {"type": "rule", "strokeWidth": 2.5, "opacity": 0.6},
                    "encoding": {
                        "x": x | {"field": "low"},
                        "x2": {"field": "high"},
                        "y": y,
                        **place,
                        "color": self.tint("model", self.models),
                    },
                }
            )
        layers.append(
            {
                "transform": [{"filter": "isValid(datum.model)"}],
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {
                    "x": x,
                    "y": y,
                    **place,
                    "color": self.tint("model", self.models),
                    "shape": self.shape("model", self.models),
                    "tooltip": tooltip(rows, ("model", "label", "value", "low", "high")),
                },
            }
        )
        if any(row.get("quoted") for row in rows):
            layers.append(
                {
                    "transform": [{"filter": "isValid(datum.quoted)"}],
                    "mark": {"type": "point", "size": 70, "strokeWidth": 1.8, "color": self.style.quoted},
                    "encoding": {"x": x, "y": y, "tooltip": tooltip(rows, ("quoted", "value"))},
                }
            )
        return self.plot(rows, layer=layers, height=self.tall(rows, 11))

    def bars(self, rows: Rows, *, title: str) -> Spec:
        """Signed values as bars from zero: a group for each ``label``, a bar for each ``model``."""
        y, place = self.bands(rows)
        layers: list[Spec] = [
            {
                "mark": {"type": "bar", "height": {"band": 0.8}},
                "encoding": {
                    "x": {"field": "value", "type": "quantitative", "title": title, "axis": {"tickCount": 6}},
                    "y": y,
                    **place,
                    "color": self.tint("model", self.models),
                    "tooltip": tooltip(rows, ("model", "label", "value", "low", "high")),
                },
            },
            self.rule(0, self.style.ink),
        ]
        if intervals(rows):
            layers.insert(
                1,
                {
                    "transform": [{"filter": "isValid(datum.low)"}],
                    "mark": {"type": "rule", "color": self.style.ink, "strokeWidth": 1.3},
                    "encoding": {
                        "x": {"field": "low", "type": "quantitative", "title": title},
                        "x2": {"field": "high"},
                        "y": y,
                        **place,
                    },
                },
            )
        return self.plot(rows, layer=layers, height=self.tall(rows, 14))

    def boxes(self, rows: Rows, groups: Sequence[str], *, title: str, domain: Sequence[float]) -> Spec:
        """Box plots: a band for each ``label`` and in it a box for each ``group``; a dot is the mean.

        Args:
            rows: mappings with ``label``, ``group``, ``low``, ``q1``, ``median``, ``q3``, ``high``, ``mean``.
            groups: the groups in the order of their colours.
            title: what the scale measures.
            domain: ends of the scale.
        """
        y, place = self.bands(rows, by="group", order=groups)
        scale = {"domain": list(domain), "nice": False}
        x: Spec = {"type": "quantitative", "title": title, "scale": scale, "axis": {"tickCount": 5}}
        there = {"y": y, **place}
        tint = {"color": self.tint("group", groups)}
        said = ("label", "group", "low", "q1", "median", "q3", "high", "mean")
        half = {"band": 0.72}
        layers: list[Spec] = [
            self.rule(0, self.style.faint, [4, 3], scale),
            {
                "mark": {"type": "rule", "strokeWidth": 1.3},
                "encoding": {"x": x | {"field": "low"}, "x2": {"field": "high"}, **there, **tint},
            },
            {
                "mark": {"type": "bar", "height": half},
                "encoding": {
                    "x": x | {"field": "q1"},
                    "x2": {"field": "q3"},
                    **there,
                    **tint,
                    "tooltip": tooltip(rows, said),
                },
            },
            {
                "mark": {"type": "tick", "color": self.style.paper, "thickness": 2, "height": half},
                "encoding": {"x": x | {"field": "median"}, **there},
            },
            {
                "mark": {"type": "point", "filled": True, "size": 16, "opacity": 1, "color": self.style.ink},
                "encoding": {"x": x | {"field": "mean"}, **there},
            },
        ]
        labels = distinct(rows, "label")
        return self.plot(rows, layer=layers, height=len(labels) * (14 * len(groups) + 10))

    def lines(
        self,
        rows: Rows,
        *,
        x: str,
        y: str,
        by: str = "model",
        kind: str = "linear",
        domain: Sequence[float] | None = None,
        marks: Sequence[tuple[float, str]] = (),
        height: int = 280,
    ) -> Spec:
        """Lines over ``x``: one for each value of ``by``, with a band where ``low`` and ``high`` are known.

        Args:
            rows: mappings with ``x``, ``value``, the field ``by`` and, where known, ``low`` and ``high``.
            x: title of the horizontal scale.
            y: title of the vertical scale.
            by: the field that tells lines apart; the page says which colour is which.
            kind: horizontal scale: "linear", "log", or "names" in the order of the rows.
            domain: ends of the vertical scale; the data's own if None.
            marks: places on the horizontal scale with a thin line and a word each.
        """
        names = self.models if by == "model" else distinct(rows, by)
        places = distinct(rows, "x")
        axis: Spec = {"grid": False, "labelAngle": 0, "labelLimit": 120}
        across: Spec = {"field": "x", "title": x, "axis": axis, "type": "quantitative"}
        if kind == "names":
            across |= {"type": "ordinal", "sort": places}
        else:
            axis["values"] = sorted(places)
            across["scale"] = {"type": kind, "nice": False, "padding": 14}
            if kind == "linear":
                across["scale"]["zero"] = False
        colour, shape = self.tint(by, names), self.shape(by, names)
        scale: Spec = {"domain": list(domain), "nice": False} if domain else {"zero": False, "padding": 8}
        up = {"field": "value", "type": "quantitative", "title": y, "scale": scale}
        layers: list[Spec] = []
        if intervals(rows):
            layers.append(
                {
                    "transform": [{"filter": "isValid(datum.low)"}],
                    "mark": {"type": "area", "opacity": 0.15},
                    "encoding": {
                        "x": across,
                        "y": {"field": "low", "type": "quantitative", "title": y},
                        "y2": {"field": "high"},
                        "color": colour,
                    },
                }
            )
        layers.append(
            {
                "mark": {"type": "line", "strokeWidth": 2.2},
                "encoding": {"x": across, "y": up, "color": colour},
            }
        )
        layers.append(
            {
                "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                "encoding": {
                    "x": across,
                    "y": up,
                    "color": colour,
                    "shape": shape,
                    "tooltip": tooltip(rows, (by, "x", "value", "low", "high")),
                },
            }
        )
        if marks:
            layers = [*self.marks(marks), *layers]
        return self.plot(rows, layer=layers, height=height)

    def matrix(
        self,
        levels: Sequence[str],
        values: Sequence[Sequence[float | None]],
        *,
        domain: Sequence[float],
        digits: int = 2,
        step: int = 40,
    ) -> Spec:
        """A square matrix of numbers, written into its cells.

        Args:
            levels: names of rows and columns.
            values: rows of the matrix; None leaves a cell empty.
            domain: ends of the scale of colours.
            digits: digits after the point in a cell.
            step: height of a row in pixels.
        """
        rows = [
            {"row": row, "column": column, "value": value}
            for row, line in zip(levels, values, strict=True)
            for column, value in zip(levels, line, strict=True)
            if value is not None
        ]
        middle = (domain[0] + domain[1]) / 2
        axis = {"title": None, "labelLimit": 120, "domain": False, "ticks": False, "grid": False}
        many = len(levels) > _SLANTED
        angle = 0 if max(map(len, levels)) <= _SHORT else -90 if many else -40
        turn = {"orient": "top", "labelAngle": angle}
        across: Spec = {"field": "column", "type": "ordinal", "sort": list(levels), "axis": axis | turn}
        down: Spec = {"field": "row", "type": "ordinal", "sort": list(levels), "axis": axis}
        colours = {"domain": list(domain), "scheme": self.style.heat, "clamp": True}
        number = {"field": "value", "type": "quantitative"}
        layers: list[Spec] = [
            {
                "mark": {"type": "rect", "stroke": self.style.paper, "strokeWidth": 2},
                "encoding": {
                    "x": across,
                    "y": down,
                    "color": number | {"legend": None, "scale": colours},
                    "tooltip": tooltip(rows, ("row", "column", "value")),
                },
            },
            {
                "mark": {"type": "text", "fontSize": self.style.size},
                "encoding": {
                    "x": across,
                    "y": down,
                    "text": number | {"format": f".{digits}f"},
                    "opacity": {"condition": {"test": f"width > {27 * len(levels)}", "value": 1}, "value": 0},
                    "color": {
                        "condition": {"test": f"datum.value > {middle}", "value": self.style.ink},
                        "value": self.style.paper,
                    },
                },
            },
        ]
        # Slanted names above the last columns reach beyond the plot.
        room = {"left": 2, "right": 34 if angle == -40 else 2, "top": 2, "bottom": 2}
        return self.plot(rows, layer=layers, height=step * len(levels), padding=room)

    def scatter(self, rows: Rows, groups: Sequence[str]) -> Spec:
        """A map of points with ``x``, ``y``, ``group``; its distances have no unit, so it has no axes."""
        place = {"type": "quantitative", "axis": None, "scale": {"zero": False, "nice": False, "padding": 8}}
        return self.plot(
            rows,
            mark={"type": "point", "filled": True, "size": 26, "opacity": 0.8},
            encoding={
                "x": place | {"field": "x"},
                "y": place | {"field": "y"},
                "color": self.tint("group", groups),
                "shape": self.shape("group", groups),
                "tooltip": tooltip(rows, ("group",)),
            },
            height=300,
        )
