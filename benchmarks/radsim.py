"""Speed of RadSim, and of mining and scoring pairs of findings sections; one core.

    python benchmarks/radsim.py                        # 100,000 synthetic reports are made first (minutes)
    python benchmarks/radsim.py REPORTS.jsonl          # of 'radgen reports --synthetic 100000'
    python benchmarks/radsim.py REPORTS.jsonl --radjudge radjudge.json

Printed: pairs a second of the plain and the vectorised function; then for 10,000, 30,000 and 100,000 reports
the seconds to read and code them, to mine and score ten pairs a report, and the most memory (a process for
each).
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from radgen.generators.radsim import load_policy, score
from radgen.generators.radsim.coded import Scorer
from radgen.generators.radsim.coding import Coder
from radgen.generators.similarity.corpus import build
from radgen.generators.similarity.pairs import mine
from radgen.generators.similarity.settings import settings
from radgen.generators.similarity.source import ReportStates
from radgen.generators.splits import SPLITS, Splitter
from radgen.ontology import load_ontology

SIZES = (10_000, 30_000, 100_000)
PER_REPORT = 10


def functions(path: Path) -> None:
    """Compare the plain and the vectorised function on random pairs of sections, in processor seconds."""
    ontology = load_ontology()
    policy = load_policy(ontology)
    sections = [
        [state for state, _ in read.states["findings"]]
        for read, _ in zip(ReportStates(path, ontology, truth=True), range(3000), strict=False)
    ]
    coder = Coder(policy)
    for states in sections:
        coder.add(states)
    scorer = Scorer(coder)
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, len(sections), (2, 200_000))
    scorer.score(first[:1000], second[:1000])
    start = time.process_time()
    values = scorer.score(first, second).value
    fast = len(first) / (time.process_time() - start)
    start = time.process_time()
    plain = [
        score(sections[i], sections[j], policy).value
        for i, j in zip(first[:2000], second[:2000], strict=True)
    ]
    slow = len(plain) / (time.process_time() - start)
    print(f"plain {slow:,.0f} pairs/s, vectorised {fast:,.0f} pairs/s: {fast / slow:.0f} times")
    print(f"largest difference {np.abs(np.array(plain) - values[:2000]).max():.1e}")


def first_lines(path: Path, count: int, out: Path) -> Path:
    """Write the first reports of a file to another one."""
    with path.open("rb") as source, out.open("wb") as target:
        for _, line in zip(range(count), source, strict=False):
            target.write(line)
    return out


def mined(path: str, reports: int) -> dict[str, Any]:
    """Read, mine and score in this process; return seconds and the most memory."""
    ontology = load_ontology()
    policy = load_policy(ontology)
    start = time.perf_counter()
    corpus = build(ReportStates(Path(path), ontology, truth=True), "findings", policy)
    read = time.perf_counter() - start
    start = time.perf_counter()
    scorer = Scorer(corpus.coder, corpus.coded)
    quotas = Splitter(ontology.axes.splits).quotas(PER_REPORT * reports)
    parts = [mine(corpus, scorer, split, quotas[split], 42, settings().pairs) for split in SPLITS]
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    values = np.concatenate([part.scores.value for part in parts])
    return {
        "texts": len(corpus.texts),
        "read": read,
        "mined": seconds,
        "pairs": len(values),
        "candidates": sum(part.candidates for part in parts),
        "memory": peak,
        "histogram": np.histogram(values, 20, (-1, 1))[0].tolist(),
    }


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("reports", type=Path, nargs="?", help="synthetic reports (JSONL with truth)")
    parser.add_argument("--radjudge", type=Path, help="also judge the rankings of radjudge.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.reports
        if path is None:
            from radgen.generators.reports import write_synthetic

            path = Path(folder) / "reports.jsonl"
            write_synthetic(max(SIZES), path)
        functions(path)
        for size in SIZES:
            part = first_lines(path, size, Path(folder) / f"{size}.jsonl")
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                got = pool.apply(mined, (str(part), size))
            print(
                f"{size:>7,} reports, {got['texts']:,} texts: read and coded {got['read']:.1f} s, mined"
                f" and scored {got['pairs']:,} pairs of {got['candidates']:,} candidates in"
                f" {got['mined']:.1f} s;"
                f" {got['memory']:.0f} MB"
            )
            print(f"        rows a tenth from -1 to 1: {got['histogram']}")
    if arguments.radjudge:
        import radjudge

        radjudge.report(arguments.radjudge)


if __name__ == "__main__":
    main()
