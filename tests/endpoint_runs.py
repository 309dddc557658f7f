"""Runs of ``radgen extract --backend openai`` for the tests: reports, quick settings, what comes out."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from endpoint_server import FaultServer, report

from radgen.extract.endpoint.command import Options, extract_with_endpoint
from radgen.extract.endpoint.task import ExtractionTask
from radgen.ontology import load_ontology
from radgen.yamlfile import merge

#: Waits of milliseconds where the packaged file has seconds; nothing else differs.
QUICK = """
timeout_s: 2
grace_s: 0.5
retry: {first_wait_s: 0.01, longest_wait_s: 0.05, attempts: 6}
circuit: {first_wait_s: 0.05, longest_wait_s: 0.1, give_up_s: 20, probe_timeout_s: 1}
store: {reserve_mb: 1, busy_s: 0.3, patience_s: 3}
"""


@functools.cache
def task() -> ExtractionTask:
    return ExtractionTask(load_ontology())


@dataclass
class Finished:
    code: int
    rows: list[dict[str, Any]]
    dead: list[dict[str, Any]]
    folder: Path


def write_reports(folder: Path, cases: range | list[int]) -> Path:
    path = folder / "reports.jsonl"
    path.write_text("".join(json.dumps(report(case)) + "\n" for case in cases), encoding="utf-8")
    return path


def options(folder: Path, server: FaultServer | None = None, *, config: str = "", **changes: Any) -> Options:
    settings = folder / "quick.yaml"
    merged = merge(yaml.safe_load(QUICK), yaml.safe_load(config) or {})
    settings.write_text(yaml.safe_dump(merged), encoding="utf-8")
    given: dict[str, Any] = {"config": settings, "model": "test-model", **changes}
    if server is not None:
        given.setdefault("base_url", server.url)
    return Options(folder / "reports.jsonl", folder / "out.jsonl", **given)


def extract(folder: Path, server: FaultServer | None = None, **changes: Any) -> Finished:
    """Run the command in this process and read what it wrote."""
    chosen = options(folder, server, **changes)
    code = extract_with_endpoint(chosen, task())
    return Finished(code, read(chosen.out), read(folder / "out.dead-letters.jsonl"), folder)


def read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
