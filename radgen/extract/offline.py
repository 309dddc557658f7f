"""``radgen extract --backend rules``: a row of findings for each report, offline (spec §9)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import orjson

from radgen.errors import RadgenError
from radgen.extract.endpoint.export import replaced
from radgen.extract.endpoint.reading import read_reports
from radgen.extract.rules import RulesExtractor
from radgen.ontology import load_ontology

BACKEND = "rules"
SECTIONS = ("findings", "impression")


def extract_with_rules(
    reports: Path,
    out: Path,
    *,
    ontology_files: Sequence[str | Path] = (),
    limit: int | None = None,
    force: bool = False,
    progress: Callable[[int], None] = lambda rows: None,
) -> tuple[int, str]:
    """Write a row for every report, in input order; return how many, and the sha256 of the file.

    A row has the keys of the other backend: ``id``, ``extracted``, ``backend``, ``error``, ``salvaged``,
    ``dropped``; the last three say nothing here.

    Raises:
        RadgenError: a line cannot be used, or the output exists and ``force`` is not given.
    """
    if out.exists() and not force:
        raise RadgenError(f"{out}: exists already; --force replaces it")
    extractor = RulesExtractor(load_ontology(ontology_files))
    digest, count = hashlib.sha256(), 0
    with replaced(out) as file:
        for line, report in read_reports(reports, limit):
            texts = {name: report[name] for name in SECTIONS if report.get(name) is not None}
            for name, text in texts.items():
                if not isinstance(text, str):
                    kind = type(text).__name__
                    raise RadgenError(f"{reports}:{line}: '{name}' is {kind}, expected text or null")
            row = {
                "id": report["id"], "extracted": extractor.extract_report(texts), "backend": BACKEND,
                "error": None, "salvaged": False, "dropped": 0,
            }  # fmt: skip
            data = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
            digest.update(data)
            file.write(data)
            count += 1
            progress(count)
    return count, digest.hexdigest()
