"""Speed and memory of RadThought's records by rules.

    python benchmarks/radthought.py                       # 100,000 synthetic reports, two workers (minutes)
    python benchmarks/radthought.py --reports 10000       # fewer, extrapolated to 100,000
    python benchmarks/radthought.py REPORTS.jsonl         # reports of a file

Printed: seconds by the clock and of the processors, what 100,000 reports would take, and the most memory of
the parent and of a worker, after a tenth of the reports and after all. On a busy machine the processor
seconds are what to trust: two free cores take half of them.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

from radgen.generators.radthought.records import RecordOrder, record_lines
from radgen.generators.radthought.source import Source

SIZE = 100_000


def megabytes(who: int) -> float:
    """Return the largest resident size so far: of this process, or of the largest of its children."""
    return resource.getrusage(who).ru_maxrss / 1024


def processor_seconds() -> float:
    """Return what this process and its children that have ended have used."""
    return sum(
        resource.getrusage(who).ru_utime + resource.getrusage(who).ru_stime
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )


def run(source: Source, workers: int) -> None:
    """Make the records of a source, throw them away, and print what it took."""
    began, used = time.perf_counter(), processor_seconds()
    size = count = rejected = 0
    for _, line, _, _ in record_lines(RecordOrder(source), workers):
        count += 1
        rejected += line is None
        size += len(line or b"")
    seconds, used = time.perf_counter() - began, processor_seconds() - used
    print(f"{count:,} reports, {rejected:,} rejected, {size / 1e6:.0f} MB, {workers} workers")
    print(f"{seconds:.1f} s by the clock, {used:.1f} s of processors ({1000 * used / count:.2f} ms a report)")
    print(f"{SIZE:,} reports: {SIZE * used / count / 2:.0f} s on two free cores")
    print(
        f"most memory: parent {megabytes(resource.RUSAGE_SELF):.0f} MB, "
        f"worker {megabytes(resource.RUSAGE_CHILDREN):.0f} MB"
    )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="reports of any source; synthetic ones if absent")
    parser.add_argument("--reports", type=int, default=SIZE, help="synthetic reports to make")
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    if given.file is not None:
        run(Source(given.file), given.workers)
        return
    for number in (max(1, given.reports // 10), given.reports):  # the second may not need more memory
        run(Source(synthetic=number), given.workers)


if __name__ == "__main__":
    main()
