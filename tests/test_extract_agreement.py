"""Agreement with what others say: the generators' states, and the labels that people gave to Open-I."""

from __future__ import annotations

import csv
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml

from radgen.extract.rules import default_extractor
from radgen.generators.contrasts import Contrasts, schedule
from radgen.ontology import FIELDS, load_ontology
from radgen.templates.realiser import Realiser

ROOT = Path(__file__).parents[1]
OPENI = ROOT.parent / "shared" / "data" / "openi"
AXES = [*load_ontology().axes.axes, *load_ontology().axes.controlled]


def sentences(axis: str, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield different generated sentences of an axis with their states, spread over its contexts."""
    ontology = load_ontology()
    recipe = Contrasts(ontology, Realiser(ontology), axis, seed=11)
    seen: set[str] = set()
    for job in schedule(recipe):
        for row in recipe.block(job).rows[:4]:
            columns = orjson.loads(row.line)
            for name in ("anchor", "positive", "negative"):
                if columns[name] not in seen:
                    seen.add(columns[name])
                    yield columns[name], columns[f"{name}_state"]
                    if len(seen) == count:
                        return


def round_trip(axis: str, count: int) -> tuple[int, int, list[str]]:
    """Return how many fields there are, how many came back, and the first sentences that lost any."""
    fields = right = 0
    missed = []
    for text, state in sentences(axis, count):
        states = [found for found, _ in default_extractor().states(text)]
        best = max(
            states, key=lambda found: sum(found.get(name) == state.get(name) for name in FIELDS), default={}
        )
        names = [name for name in FIELDS if name in state or name in best]
        good = sum(best.get(name) == state.get(name) for name in names) - max(0, len(states) - 1)
        fields += len(names)
        right += good
        if good < len(names) and len(missed) < 10:
            missed.append(f"{text} | {state} | {states}")
    return fields, right, missed


@pytest.mark.parametrize("axis", AXES)
def test_generated_sentences_give_back_their_state(axis: str) -> None:
    fields, right, missed = round_trip(axis, 300)
    assert right >= 0.995 * fields, missed


@pytest.mark.slow
@pytest.mark.parametrize("axis", AXES)
def test_five_thousand_generated_sentences_give_back_their_state(axis: str) -> None:
    fields, right, missed = round_trip(axis, 5000)
    assert right >= 0.995 * fields, missed


@pytest.mark.slow
@pytest.mark.skipif(not OPENI.exists(), reason="../shared/data/openi is absent")
def test_labels_of_open_i(capsys: pytest.CaptureFixture[str]) -> None:
    spec = importlib.util.spec_from_file_location("extraction", ROOT / "benchmarks" / "extraction.py")
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    sys.modules["extraction"] = bench
    spec.loader.exec_module(bench)
    config = yaml.safe_load((ROOT / "benchmarks" / "openi.yaml").read_text(encoding="utf-8"))
    with (OPENI / "labels14_gold.csv").open(encoding="utf-8") as file:
        gold = {row["filename"]: row for row in csv.DictReader(file)}
    test = set((OPENI / "labels14_test_ids.txt").read_text(encoding="utf-8").split())
    rows = [row for row in bench.reports(OPENI / "NLMCXR_reports.tgz") if row["id"] in gold]
    rows = [row for row in rows if row["id"] not in test]
    assert len(rows) > 3000
    micro, macro = bench.label_scores(default_extractor(), rows, gold, config)
    shares = bench.mesh_scores(default_extractor(), rows, config)
    capsys.readouterr()
    assert micro >= 0.90
    assert macro >= 0.80
    assert shares["laterality"] >= 0.97
    assert shares["severity"] >= 0.93
    assert shares["lobe"] >= 0.93
