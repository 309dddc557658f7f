"""The rules extractor on sentences with known values: the shared open cases, and five more of each kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from extraction_cases import problems

from radgen.extract.rules import default_extractor

HERE = Path(__file__).parent
SHARED = HERE.parents[1] / "shared" / "cases_open.jsonl"
OWN: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    (HERE / "data" / "extraction_cases.yaml").read_text("utf-8")
)


def found(text: str) -> list[dict[str, Any]]:
    return [finding.stated() for finding in default_extractor().extract(text)]


def shared_cases() -> list[Any]:
    if not SHARED.exists():
        return [pytest.param({}, marks=pytest.mark.skip(reason="../shared/cases_open.jsonl is absent"))]
    with SHARED.open(encoding="utf-8") as lines:
        return [pytest.param(case, id=case["id"]) for case in map(json.loads, lines)]


@pytest.mark.parametrize("case", shared_cases())
def test_open_cases(case: dict[str, Any]) -> None:
    assert problems(case, found(case["text"])) == []


@pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=f"{kind}-{n}") for kind, cases in OWN.items() for n, case in enumerate(cases, 1)],
)
def test_own_cases(case: dict[str, Any]) -> None:
    assert problems({"expected": case["expect"]}, found(case["text"])) == []


def test_own_cases_cover_every_kind() -> None:
    assert all(len(cases) >= 5 for cases in OWN.values())
    if SHARED.exists():
        kinds = {json.loads(line)["kind"] for line in SHARED.read_text(encoding="utf-8").splitlines()}
        assert kinds == set(OWN)
