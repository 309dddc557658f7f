"""Words, colours and order of the page: ``data/page.yaml``."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase
from typing import Annotated, Any, Literal

from pydantic import Field

from radgen.ontology.load import packaged
from radgen.ontology.schema import Strict
from radgen.yamlfile import validate

Hex = Annotated[str, Field(pattern="^#[0-9a-f]{6}$")]


class Style(Strict):
    """Colours, marks and sizes of the plots."""

    colours: Annotated[list[Hex], Field(min_length=1)]
    marks: Annotated[list[str], Field(min_length=1)]
    ink: Hex
    soft: Hex
    faint: Hex
    line: Hex
    paper: Hex
    quoted: Hex
    heat: str
    font: str
    size: Annotated[int, Field(ge=10)]

    def colour(self, index: int) -> str:
        """Return the colour of the model or group with this number."""
        return self.colours[index % len(self.colours)]

    def mark(self, index: int) -> str:
        """Return its mark; the counts of marks and colours differ, so that few share both."""
        return self.marks[index % len(self.marks)]

    def config(self) -> dict[str, Any]:
        """Return the Vega-Lite configuration of every plot."""
        text = {"labelFontSize": self.size, "titleFontSize": self.size}
        return {
            "font": self.font,
            "background": None,
            "view": {"stroke": None},
            "axis": {
                **text,
                "labelColor": self.ink,
                "titleColor": self.soft,
                "titleFontWeight": "normal",
                "gridColor": self.line,
                "domainColor": self.faint,
                "tickColor": self.faint,
                "titlePadding": 8,
            },
            "tooltip": {"content": "encoding"},
        }


class Tile(Strict):
    """One measure at the top of the page."""

    measure: str
    group: str
    title: str
    asks: str
    chance: float | None = None


class Suite(Strict):
    """The section of a suite."""

    title: str
    short: str
    lead: str
    overall: str
    by: Literal["measure", "group", "flat"]


class Words(Strict):
    """What is said of a figure: its title, how to read it, what its scales measure."""

    title: str
    note: str
    x: str = ""
    y: str = ""


class Limits(Strict):
    """How much is shown."""

    failures_an_axis: Annotated[int, Field(ge=1)]
    failures_at_once: Annotated[int, Field(ge=1)]
    open_rows: Annotated[int, Field(ge=0)]


class PageSettings(Strict):
    """``data/page.yaml``; the comments there say what each key means."""

    title: str
    style: Style
    shapes: dict[str, str]
    tiles: list[Tile]
    suites: dict[str, Suite]
    levels: list[str]
    names: dict[str, str]
    limits: Limits
    figures: dict[str, Words]
    curves: dict[str, list[str]]

    def suite(self, key: str) -> Suite:
        """Return what is said of a suite; of one that these settings do not know, its name."""
        name = self.name(key).capitalize()
        return self.suites.get(key) or Suite(title=name, short=name, lead="", overall="", by="flat")

    def on_curve(self, figure: str, key: str) -> bool:
        """Say whether a measure of a training run stands in a figure: ``curves`` has patterns, ! excludes."""
        patterns = self.curves[figure]
        if any(fnmatchcase(key, pattern[1:]) for pattern in patterns if pattern.startswith("!")):
            return False
        return any(fnmatchcase(key, pattern) for pattern in patterns)

    def order(self, key: str) -> int:
        """Return the place of a similarity matrix among the others."""
        return self.levels.index(key) if key in self.levels else len(self.levels)

    def name(self, key: str) -> str:
        """Return how a key of results.json is said to a reader; the part before a slash comes last."""
        if key in self.names or "/" not in key:
            return self.names.get(key) or key.replace("_", " ")
        first, _, rest = key.partition("/")
        return f"{self.name(rest)} · {self.name(first)}"


@functools.lru_cache(maxsize=1)
def load_page_settings() -> PageSettings:
    """Load the packaged settings of the page."""
    sources = packaged("radgen.train.page", "page.yaml")
    return validate(PageSettings, sources[0].data, sources)
