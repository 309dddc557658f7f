"""RadSim over rule-extracted findings on RadJudge's ranking tests (needs ../shared)."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT.parent / "shared" / "data" / "evaluation" / "radjudge.json"


@pytest.mark.skipif(not FILE.exists(), reason="../shared/data/evaluation/radjudge.json is not here")
def test_at_least_24_of_30_rankings_are_as_expected() -> None:
    spec = importlib.util.spec_from_file_location("radjudge", ROOT / "benchmarks" / "radjudge.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    results = module.judge(FILE)
    misses = [result["id"] for result in results if result["wrong"]]
    assert len(results) == 30
    assert len(results) - len(misses) >= 24, misses
