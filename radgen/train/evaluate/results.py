"""``results.json``: what was found, in one shape for the page, for ``radgen compare`` and for programs."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson

from radgen import __version__
from radgen.errors import RadgenError
from radgen.train.evaluate.bench import Bench
from radgen.train.evaluate.run import Model, Result
from radgen.train.evaluate.settings import Quoted, measures, quoted, settings_hash

FORMAT = 1
_DIGITS = 6


def as_mapping(
    bench: Bench, models: Sequence[Model], results: Sequence[Result], command: str
) -> dict[str, Any]:
    """Return the content of ``results.json``: no time stamp, no text of a report."""
    named = {value.measure for result in results for value in result.outcome.values}
    return {
        "radgen": "evaluation",
        "format": FORMAT,
        "version": __version__,
        "command": command,
        "seed": bench.settings.seed,
        "settings": settings_hash(bench.settings),
        "ontology": bench.ontology.fingerprint,
        "sources": _sources(bench),
        "models": [dataclasses.asdict(model) for model in models],
        "measures": {key: measure.model_dump() for key, measure in measures().items() if key in named},
        "suites": list(bench.request.suites),
        "results": [_result(result) for result in results],
        "quoted": [figure for item in quoted() if item.measure in named for figure in _figures(item)],
    }


def _figures(item: Quoted) -> list[dict[str, Any]]:
    return [
        {"measure": item.measure, "group": group, "encoder": encoder, "value": value, "source": item.source}
        for encoder, figures in item.figures.items()
        for group, value in figures.items()
    ]


def _sources(bench: Bench) -> dict[str, Any]:
    sets = {
        name: {"rows": made.total, "judged": len(made.rows), "sha256": made.sha256}
        for name, made in sorted(bench.sets_read.items())
    }
    request, pool = bench.request, bench.pool
    reports = None
    if pool is not None:
        reports = {
            "name": pool.path.name,
            "sha256": pool.sha256,
            "reports": len(pool.ids),
            "pairs": len(pool.pairs),
            "left_out": pool.left_out,
            "tokens": pool.tokens,
            "pool": pool.kind,
            "labels": request.labels.name if request.labels else "rules",
        }
    wrong = vars(bench).get("wrong_reports")  # only if a suite asked for them
    return {
        "judging": {"folder": request.judging.name, "sets": sets} if sets else None,
        "reports": reports,
        "discrepancies": {"rows": len(wrong)} if wrong else None,
        "radjudge": _file(request.radjudge),
        "radthought": _file(request.radthought),
    }


def _file(path: Path | None) -> dict[str, Any] | None:
    if path is None:
        return None
    file = path / "records.jsonl" if path.is_dir() else path
    digest = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None
    return {"name": path.name, "sha256": digest}


def _result(result: Result) -> dict[str, Any]:
    outcome = result.outcome
    return {
        "suite": result.suite,
        "model": result.model,
        "status": "done" if result.reason is None else "skipped",
        "reason": result.reason,
        "notes": outcome.notes,
        "values": [
            {key: item for key, item in dataclasses.asdict(value).items() if key != "reason" or item}
            for value in outcome.values
        ],
        "figures": outcome.figures,
    }


def dump(results: dict[str, Any]) -> bytes:
    """Return the bytes of ``results.json``: keys sorted, six digits."""
    options = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE
    return orjson.dumps(_rounded(results), option=options)


def _rounded(item: Any) -> Any:
    if isinstance(item, dict):
        return {str(key): _rounded(value) for key, value in item.items()}
    if isinstance(item, (list, tuple)):
        return [_rounded(value) for value in item]
    if isinstance(item, float):
        return (round(item, _DIGITS) + 0.0) if math.isfinite(item) else None  # no -0.0
    return item


def read_results(path: Path) -> dict[str, Any]:
    """Read a ``results.json``.

    Raises:
        RadgenError: it is none, or of another format.
    """
    try:
        found = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        raise RadgenError(f"{path}: no such file") from None
    except (OSError, orjson.JSONDecodeError) as error:
        raise RadgenError(f"{path}: cannot be read as JSON: {error}") from None
    if not isinstance(found, dict) or found.get("radgen") != "evaluation":
        raise RadgenError(f"{path}: no results.json of 'radgen evaluate'")
    if found.get("format") != FORMAT:
        raise RadgenError(f"{path}: format {found.get('format')}, expected {FORMAT}: evaluate anew")
    return found
