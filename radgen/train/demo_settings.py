"""Sizes of ``radgen demo``: ``data/demo.yaml``, the user's files and options over it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import Field

from radgen.errors import RadgenError, unknown
from radgen.ontology.schema import Modality, Strict
from radgen.yamlfile import merge, read_yaml, validate, where

STAGES = ("stage2", "stage3")
_PACKAGED = Path(__file__).parent / "data" / "demo.yaml"


class CollectionSize(Strict):
    """How much of the collection is made."""

    scale: Annotated[float, Field(gt=0, le=1)]


class ReportsSize(Strict):
    """How many synthetic reports are made, and of which modality."""

    number: Annotated[int, Field(ge=1)]
    modality: Modality | Literal["both"]


class Judged(Strict):
    """What is judged, and the settings of ``radgen evaluate`` that are not the packaged ones."""

    suites: Annotated[list[str], Field(min_length=1)]
    pool: str
    settings: dict[str, Any]


class DemoSettings(Strict):
    """``data/demo.yaml``; the comments there say what each key means."""

    seed: int
    preset: str
    model: str
    collection: CollectionSize
    reports: ReportsSize
    without: list[str]
    stages: dict[str, dict[str, Any]]
    evaluate: Judged


def load_demo(files: Sequence[Path] = (), **overrides: Any) -> DemoSettings:
    """Return the packaged settings with the user's files, then the options that are not None, over them.

    Raises:
        RadgenError: a file cannot be read.
        OntologyError: with every mistake in the files, by line.
    """
    sources = [read_yaml(_PACKAGED, name="demo.yaml", careful=False), *(read_yaml(path) for path in files)]
    data: dict[str, Any] = {}
    for source in sources:
        data = merge(data, source.data)
    given = {"seed": overrides.get("seed"), "collection": {"scale": overrides.get("scale")}}
    settings = validate(DemoSettings, merge(data, _stated(given)), sources)
    for name in settings.stages:
        if name not in STAGES:
            raise RadgenError(f"{where(sources, ('stages', name))}: stages: {unknown('stage', name, STAGES)}")
    return settings


def assignments(tree: dict[str, Any], path: str = "") -> tuple[str, ...]:
    """Return a mapping as what ``radgen train --set`` takes.

    >>> assignments({"steps": 9, "validation": {"rows": 4}, "compute.tf32": False})
    ('steps=9', 'validation.rows=4', 'compute.tf32=false')
    """
    out: list[str] = []
    for key, value in tree.items():
        if isinstance(value, dict):
            out += assignments(value, f"{path}{key}.")
        else:
            said = yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("\n...\n").strip()
            out.append(f"{path}{key}={said}")
    return tuple(out)


def _stated(tree: dict[str, Any]) -> dict[str, Any]:
    """Return a tree without what is None."""
    inner = {key: _stated(value) if isinstance(value, dict) else value for key, value in tree.items()}
    return {key: value for key, value in inner.items() if value is not None}
