"""RadThought: records of reports, and pairs and triplets from records (spec §6)."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

#: What ``radgen radthought`` runs where no command of the group is named.
DEFAULT = "records"


class DefaultGroup(TyperGroup):
    """A group whose default command may be left out: ``radgen radthought reports.jsonl``.

    A file that has the name of a command is given with its folder: ``./pairs``.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the default command in front of arguments that begin with none."""
        if not args or args[0] not in self.commands:
            args = [DEFAULT, *args]
        return list(super().parse_args(ctx, args))


#: Commands of the group are added with ``@app.command()``; ``radgen.cli`` adds it as ``radthought``.
app = typer.Typer(cls=DefaultGroup)
