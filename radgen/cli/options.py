"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

OntologyFiles = Annotated[
    list[Path] | None,
    typer.Option("--ontology", help="Your own YAML file over the packaged ontology; may be given again."),
]
Out = Annotated[Path, typer.Option("--out", help="Folder for the datasets: OUT/FAMILY/NAME.")]
Rows = Annotated[
    int | None, typer.Option("--n", help="Rows in all three splits together; the recipe's volume if absent.")
]
Seed = Annotated[int, typer.Option("--seed", help="Seed of every random draw.")]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, help="Processes; all cores if absent. Changes no byte.")
]
Force = Annotated[bool, typer.Option("--force", help="Replace another radgen dataset in the place.")]
Preview = Annotated[
    int | None, typer.Option("--preview", min=1, help="Print so many rows as a table and write nothing.")
]
HoldoutKind = Annotated[
    str | None, typer.Option("--holdout", help="Also keep out of train: states, phrasings or findings.")
]


def files(paths: list[Path] | None) -> tuple[str, ...]:
    return tuple(str(path) for path in paths or ())
