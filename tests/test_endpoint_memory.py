"""Memory over 200,000 reports: reading, asking, storing and writing keep nothing of what is done."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SCRIPT = """
import multiprocessing, os, sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
import endpoint as bench
from endpoint_runs import task
from radgen.extract.endpoint import client
from radgen.extract.endpoint.command import Options, extract_with_endpoint
folder, count = Path(sys.argv[3]), int(sys.argv[4])


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main():
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=bench.serve, args=(theirs,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ours.recv()}/v1"
    seen = []
    finish = client.Client.finish

    async def watched(self, row):
        await finish(self, row)
        if self.tally.rows % (count // 20) == 0:
            seen.append(resident())

    client.Client.finish = watched
    chosen = Options(folder / "reports.jsonl", folder / "out.jsonl", base_url=url, model="bench")
    chosen.concurrency = 256
    code = extract_with_endpoint(chosen, task())
    print(code, resident(), *seen)
    server.terminate()


if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_memory_is_flat_over_200_000_reports(tmp_path: Path) -> None:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    import endpoint as bench

    count = 200_000
    with open(tmp_path / "reports.jsonl", "w") as file:
        file.writelines(json.dumps(bench.report(number)) + "\n" for number in range(count))
    (tmp_path / "run.py").write_text(SCRIPT)
    folders = [str(ROOT / "benchmarks"), str(ROOT / "tests"), str(tmp_path)]
    command = [sys.executable, str(tmp_path / "run.py"), *folders, str(count)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}, timeout=3000
    )
    assert done.returncode == 0, done.stderr
    code, at_end, *seen = map(float, done.stdout.split())
    print(f"resident MB at every {count // 20:,} rows: {seen}; after writing the output: {at_end}")
    assert code == 0
    assert len(seen) >= 19
    # From a tenth of the way to the end, and through the export: no growth but the allocator's noise.
    assert max(seen[2:]) - seen[1] < 10
    assert at_end - seen[1] < 10
    with open(tmp_path / "out.jsonl") as file:
        assert sum(1 for _ in file) == count
