"""From results to HTML: a pure function, and the one that writes the file."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import orjson
from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from radgen.atomic import AtomicFile
from radgen.errors import RadgenError
from radgen.train.page.drawing import Drawing
from radgen.train.page.evaluation import Evaluation
from radgen.train.page.failures import cards, counts
from radgen.train.page.figures import Figure, Panel
from radgen.train.page.settings import PageSettings, Tile, load_page_settings
from radgen.train.page.tables import Table, suite_tables

#: What tells a page of radgen from another file, and within how many bytes it stands.
_MARK, _HEAD = b'<meta name="generator" content="radgen">', 1000


@dataclass(frozen=True)
class Section:
    """What the page shows of one suite."""

    key: str
    title: str
    short: str
    lead: str
    notes: list[str]
    reasons: list[str]
    panels: list[Panel]
    tables: list[Table]
    formulas: list[tuple[str, str]]


def render(results: Mapping[str, Any]) -> str:
    """Return the page of an evaluation as HTML: the same text for the same results.

    Args:
        results: the content of results.json.

    Raises:
        RadgenError: it is no evaluation of a known format, or the plotting library is not installed.
    """
    found, settings = Evaluation(results), load_page_settings()
    drawing = Drawing(found, settings)
    sections = [_section(found, drawing, suite, settings) for suite in found.suites]
    training = drawing.curriculum()
    shown = cards(found, settings)
    figures = [figure for panel in training for figure in panel.figures]
    figures += [figure for section in sections for panel in section.panels for figure in panel.figures]
    template = _environment().get_template("page.html.j2")
    page = template.render(
        found=found,
        settings=settings,
        looks=_looks(found.models, settings),
        tiles=[tile for tile in settings.tiles if any(_known(found, model, tile) for model in found.models)],
        sections=sections,
        training=training,
        cards=shown,
        counts=counts(found, shown, settings),
        styles=Markup(_text("page.css")),
        program=Markup(_text("page.js")),
        library=Markup(plot_library()),
        charts=Markup(_charts(figures)),
    )
    return page.strip() + "\n"


def check_place(path: Path) -> None:
    """Refuse a place where a file stands that is no page of radgen.

    Raises:
        RadgenError: naming it.
    """
    if path.is_file():
        with path.open("rb") as file:
            head = file.read(_HEAD)
        if _MARK not in head:
            raise RadgenError(f"{path}: is no page of radgen; give another --out (nothing was changed)")


def write_page(results: Mapping[str, Any], path: Path) -> None:
    """Write the page; what stands there is replaced only when the new page is complete.

    Raises:
        RadgenError: as :func:`render`; or a file that is no page of radgen stands there.
        OSError: the file cannot be written.
    """
    check_place(path)
    page = render(results).encode()
    with AtomicFile(path, force=True) as file:
        file.write(page)


@functools.lru_cache(maxsize=1)
def plot_library() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, from the package vl-convert-python.

    Raises:
        RadgenError: the package is not installed.
    """
    try:
        import vl_convert
    except ImportError:
        raise RadgenError(
            "the package 'vl-convert-python' is not installed, which draws the plots of the page: "
            "pip install 'radgen[train]'"
        ) from None
    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")).replace(
        "</script", "<\\/script"
    )


def _section(found: Evaluation, drawing: Drawing, suite: str, settings: PageSettings) -> Section:
    said = settings.suite(suite)
    reasons = [
        f"{', '.join(skip.models)}: {skip.reason}" if len(skip.models) < len(found.models) else skip.reason
        for skip in found.skipped()
        if skip.suite == suite
    ]
    return Section(
        suite,
        said.title,
        said.short,
        said.lead,
        found.notes(suite),
        reasons,
        drawing.of_suite(suite),
        suite_tables(found, suite, settings),
        found.formulas(suite),
    )


def _known(found: Evaluation, model: str, tile: Tile) -> bool:
    return found.number(model, tile.measure, tile.group) is not None


def _looks(names: list[str], settings: PageSettings) -> dict[str, tuple[str, str]]:
    """Return the colour and the path of the mark of each model."""
    style = settings.style
    return {
        name: (style.colour(index), settings.shapes[style.mark(index)]) for index, name in enumerate(names)
    }


def _charts(figures: list[Figure]) -> str:
    """Return the plots as JSON that can stand inside a script element."""
    specs = {figure.key: {"description": figure.title or figure.key, **figure.spec} for figure in figures}
    return orjson.dumps(specs).decode().replace("<", "\\u003c")


def _text(name: str) -> str:
    return resources.files("radgen.train.page").joinpath("data", name).read_text(encoding="utf-8")


@functools.lru_cache(maxsize=1)
def _environment() -> Environment:
    return Environment(
        loader=FunctionLoader(_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
