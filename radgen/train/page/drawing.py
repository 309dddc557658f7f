"""The figures of each suite, after the paper's: from the values and figures of results.json to plots."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from radgen.train.page.canvas import Spec, distinct
from radgen.train.page.charts import Plots
from radgen.train.page.evaluation import Evaluation
from radgen.train.page.figures import (
    Figure,
    Grid,
    Panel,
    key_of,
    pivot,
    points,
    share_domain,
    square,
    three,
    zero_domain,
)
from radgen.train.page.settings import PageSettings

#: The boxes of a finding that are drawn, side by side.
_STATES = ("within", "across")


class Drawing:
    """Draws the figures of an evaluation."""

    def __init__(self, found: Evaluation, settings: PageSettings) -> None:
        self.found = found
        self.settings = settings
        self.plots = Plots(found.models, settings.style)
        self._by_suite: dict[str, Callable[[], Iterable[Panel]]] = {
            "contrasts": self._contrasts,
            "crossaxis": self._crossaxis,
            "probe": self._probe,
            "retrieval": self._retrieval,
            "queries": self._queries,
            "discrepancies": self._discrepancies,
            "probes": self._probes,
            "heads": self._heads,
            "states": self._states,
        }

    def of_suite(self, suite: str) -> list[Panel]:
        """Return the panels of a suite; one with nothing to draw is left out."""
        panels = self._by_suite.get(suite, lambda: ())()
        return [panel for panel in panels if panel.figures]

    def curriculum(self) -> list[Panel]:
        """Return the models in their order and the curves of training (the paper's figure 3)."""
        rows = [
            {"measure": tile.title, "x": model, "value": number}
            for tile in self.settings.tiles
            for model in self.found.models
            if (number := self.found.number(model, tile.measure, tile.group)) is not None
        ]
        often = Counter(row["measure"] for row in rows)
        rows = [row for row in rows if often[row["measure"]] > 1]
        figures = []
        if rows:
            spec = self.plots.lines(
                rows, x="", y=self.settings.figures["stages"].y, by="measure", kind="names", height=320
            )
            figures.append(self._figure("stages", spec, groups=distinct(rows, "measure")))
        for info in self.found.data["models"]:
            figures += [figure for key in self.settings.curves if (figure := self._curve(key, info))]
        return [Panel(figures)] if figures else []

    def _curve(self, key: str, info: Any) -> Figure | None:
        """Draw what was measured while a model was trained, its stages laid end to end."""
        rows: list[dict[str, Any]] = []
        starts: list[tuple[int, str]] = []
        offset = 0
        curve = info.get("curriculum") or {"stages": [], "points": []}
        for stage in curve["stages"]:
            mine = [point for point in curve["points"] if point["stage"] == stage]
            for point in mine:
                rows += [
                    {"measure": self.settings.name(name), "x": offset + point["step"], "value": float(value)}
                    for name, value in point["values"].items()
                    if value is not None and self.settings.on_curve(key, name)
                ]
            if mine:
                starts.append((offset, f"stage {stage}"))
                offset += max(point["step"] for point in mine)
        if not rows:
            return None
        words = self.settings.figures[key]
        spec = self.plots.lines(rows, x=words.x, y=words.y, by="measure", marks=starts, height=320)
        grid = pivot(rows, "measure", "step")
        return self._figure(key, spec, grid=grid, model=info["name"], groups=distinct(rows, "measure"))

    def _contrasts(self) -> Iterable[Panel]:
        rows = self._rows("contrasts.accuracy", overall=False)
        yield Panel(self._dots("contrasts", rows, chance=0.5))
        yield self._levels()
        rows = []
        for model in self.found.models:
            zones = self.found.figure("contrasts", model, "zones")
            if zones:
                rows += [{"model": model, **point} for point in points(zones["separation"], zones)]
        yield Panel(self._lines("zones", rows))

    def _levels(self) -> Panel:
        found = [
            (model, kind, figure["levels"], figure["matrix"])
            for model in self.found.models
            for kind, figure in sorted(
                (self.found.figure("contrasts", model, "levels") or {}).items(),
                key=lambda item: self.settings.order(item[0]),
            )
        ]
        every = [value for _, _, _, matrix in found for line in matrix for value in line if value is not None]
        domain = [min(every), max(every)] if len(set(every)) > 1 else [0.0, 1.0]
        figures = []
        for model, kind, levels, matrix in found:
            if any(value is not None for line in matrix for value in line):
                names = [self.settings.name(level) for level in levels]
                spec = self.plots.matrix(names, matrix, domain=domain)
                key, title = key_of("levels", kind, model), self.settings.name(kind).capitalize()
                figures.append(Figure(key, title, "", spec, square(names, matrix), model))
        return self._panel("levels", figures)

    def _crossaxis(self) -> Iterable[Panel]:
        rows = self._rows("crossaxis.spearman", overall=False)
        figures = self._dots("spearman", rows, low=0.0)
        rows = self._rows("crossaxis.side_flip", overall=False)
        if rows:
            spec = self.plots.bars(rows, title=self.settings.figures["side_flip"].x)
            figures.append(self._figure("side_flip", spec, grid=self._sides()))
        yield Panel(figures)

    def _sides(self) -> Grid | None:
        rows = []
        for model in self.found.models:
            for name, side in (self.found.figure("crossaxis", model, "sides") or {}).items():
                numbers = [three(side.get(key)) for key in ("same", "bilateral", "opposite")]
                rows.append([self.settings.name(name), model, *numbers])
        return Grid(["pairs", "model", "same side", "bilateral", "opposite side"], rows) if rows else None

    def _probe(self) -> Iterable[Panel]:
        yield Panel(
            [
                figure
                for key in ("match", "ordinal")
                for figure in self._dots(key, self._rows(f"probe.{key}", overall=False), chance=0.5)
            ]
        )

    def _retrieval(self) -> Iterable[Panel]:
        measure, words = "retrieval.recall@1", self.settings.figures["recall"]
        figures = []
        levels: list[dict[str, Any]] = []
        for group in (group for key, group in self.found.keys("retrieval") if key == measure):
            rows = self._rows(measure, groups=[group])
            quoted = self.found.quoted(measure, group)
            if not quoted:  # nothing stands beside the models: one figure for all of these
                levels += rows
                continue
            rows = [row | {"label": row["model"]} for row in rows]
            rows += [
                {"label": encoder, "quoted": encoder, "value": entry["value"]}
                for encoder, entry in quoted.items()
            ]
            spec = self.plots.dots(rows, title=words.x, domain=zero_domain(rows))
            title = f"{words.title}, {self.settings.name(group)}"
            figures.append(Figure(key_of("recall", group), title, words.note, spec))
        if levels:
            spec = self.plots.dots(levels, title=words.x, domain=zero_domain(levels))
            figures.append(Figure("recall", words.title, "", spec))
        yield Panel(figures)
        yield self._maps()

    def _maps(self) -> Panel:
        maps = {model: self.found.figure("retrieval", model, "tsne") for model in self.found.models}
        often = Counter(label for points in maps.values() if points for label in points["label"])
        labels = [label for label, _ in often.most_common(len(self.settings.style.colours))]
        names = [self.settings.name(label) for label in labels]
        figures = []
        for model, found in maps.items():
            if found:
                rows = [
                    {"x": x, "y": y, "group": self.settings.name(label)}
                    for x, y, label in zip(found["x"], found["y"], found["label"], strict=True)
                    if label in labels
                ]
                spec = self.plots.scatter(rows, names)
                figures.append(Figure(key_of("tsne", model), "", "", spec, model=model))
        return self._panel("tsne", figures, names)

    def _queries(self) -> Iterable[Panel]:
        rows = []
        for measure, group in self.found.keys("queries"):
            if not group:
                label = str(self.found.measures[measure]["title"])
                rows += [row | {"label": label} for row in self._rows(measure, groups=[group])]
        yield Panel(self._dots("queries", rows, domain=[0, 1]))

    def _discrepancies(self) -> Iterable[Panel]:
        measure, words = "discrepancies.win_rate", self.settings.figures["wins"]
        groups = [group for key, group in self.found.keys("discrepancies") if key == measure]
        figures = []
        for comparison in dict.fromkeys(group.partition("/")[0] for group in groups):
            mine = [group for group in groups if group.partition("/")[0] == comparison]
            rows = self._rows(measure, groups=mine)
            for row in rows:
                kind = row["group"].partition("/")[2]
                row["label"] = self.settings.name(kind) if kind else self.settings.name("all kinds")
            if rows:
                spec = self.plots.dots(rows, title=words.x, domain=[0, 1], rule=0.5)
                name = self.settings.name(comparison)
                figures.append(Figure(key_of("wins", comparison), name[:1].upper() + name[1:], "", spec))
        yield self._panel("wins", figures)

    def _probes(self) -> Iterable[Panel]:
        figures: list[Figure] = []
        for key in ("presence_f1", "status_f1"):
            rows = []
            for model in self.found.models:
                curve = self.found.figure("probes", model, "learning")
                if curve and key in curve:
                    rows += [{"model": model, **point} for point in points(curve["labels"], curve[key])]
            figures += self._lines(key, rows, kind="log")
        yield Panel(figures)

    def _heads(self) -> Iterable[Panel]:
        figures = []
        for model in self.found.models:
            response = self.found.figure("heads", model, "response")
            if response:
                names = [self.settings.name(name) for name in response["attributes"]]
                matrix = response["matrix"]
                spec = self.plots.matrix(names, matrix, domain=[0, 1], digits=1, step=34)
                grid = square(names, matrix)
                figures.append(Figure(key_of("response", model), "", "", spec, grid, model))
        yield self._panel("response", figures)

    def _states(self) -> Iterable[Panel]:
        groups = [self.settings.name(key) for key in _STATES]
        figures = []
        for model in self.found.models:
            rows = [
                {"label": self.settings.name(finding), "group": self.settings.name(key), **boxes[key]}
                for finding, boxes in (self.found.figure("states", model, "boxes") or {}).items()
                for key in _STATES
                if boxes.get(key) and boxes[key]["n"]
            ]
            if rows:
                spec = self.plots.boxes(rows, groups, title=self.settings.figures["boxes"].x, domain=[-1, 1])
                figures.append(Figure(key_of("boxes", model), "", "", spec, _quantiles(rows), model))
        yield self._panel("boxes", figures, groups)

    def _dots(
        self,
        key: str,
        rows: list[dict[str, Any]],
        *,
        chance: float | None = None,
        low: float | None = None,
        domain: Sequence[float] | None = None,
    ) -> list[Figure]:
        """Return a figure of values with intervals, or none where there are no rows."""
        if not rows:
            return []
        least = chance if low is None else low
        if domain is None and least is not None:
            domain = share_domain(rows, least)
        spec = self.plots.dots(rows, title=self.settings.figures[key].x, domain=domain, rule=chance)
        return [self._figure(key, spec)]

    def _lines(self, key: str, rows: list[dict[str, Any]], kind: str = "linear") -> list[Figure]:
        """Return a figure of a curve a model, or none where there are no rows."""
        if not rows:
            return []
        words = self.settings.figures[key]
        spec = self.plots.lines(rows, x=words.x, y=words.y, kind=kind)
        return [self._figure(key, spec, grid=pivot(rows, "model", words.x))]

    def _figure(self, key: str, spec: Spec, *, model: str | None = None, **more: Any) -> Figure:
        words = self.settings.figures[key]
        name = key_of(key, model) if model else key
        return Figure(name, words.title, words.note, spec, model=model, **more)

    def _panel(self, key: str, figures: list[Figure], groups: Sequence[str] = ()) -> Panel:
        words = self.settings.figures[key]
        return Panel(figures, words.title, words.note, list(groups))

    def _rows(
        self, measure: str, *, overall: bool = True, groups: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """Return the values of a measure as rows of a plot."""
        rows = []
        for key, group in self.found.keys(measure.partition(".")[0]):
            if key != measure or (groups is not None and group not in groups) or not (overall or group):
                continue
            for model in self.found.models:
                value = self.found.value(model, measure, group)
                if value is not None and value["value"] is not None:
                    place = {"label": self.settings.name(group), "group": group, "model": model}
                    rows.append(place | {key: value.get(key) for key in ("value", "low", "high")})
        return rows


def _quantiles(rows: Sequence[dict[str, Any]]) -> Grid:
    """Return the numbers of boxes."""
    names = ("low", "q1", "median", "q3", "high", "mean")
    header = ["finding", "state", "5 %", "25 %", "median", "75 %", "95 %", "mean"]
    return Grid(header, [[row["label"], row["group"], *(three(row[name]) for name in names)] for row in rows])
