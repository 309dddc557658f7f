"""Suite ``cost``: how long encoding and comparing take on this machine (paper §3.4, table 7)."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from radgen.train import measures as m
from radgen.train.evaluate.comparing import Comparer, split
from radgen.train.evaluate.encoders import Encoder
from radgen.train.evaluate.outcome import Outcome, SkippedError
from radgen.train.evaluate.reports import Pool
from radgen.train.evaluate.settings import EvaluateFile


def cost(pool: Pool, encoder: Encoder, settings: EvaluateFile) -> Outcome:
    """Measure reports a second and seconds for 1,000 pairs, with no vector kept from before."""
    texts = pool.whole[: settings.sample.cost]
    texts = texts[: len(texts) // 2 * 2]
    if len(texts) < 2:
        raise SkippedError(f"{pool.path.name}: fewer than two reports")
    tokens = settings.tokens.probes
    encoder.fresh(texts[:2], tokens)  # the first call allocates
    where = _machine(encoder.model)
    out = Outcome(notes=[f"{where}, {encoder.limit(tokens)} tokens; differs from run to run"])
    seconds = _timed(lambda: encoder.fresh(texts, tokens))
    out.add("cost.reports_per_second", "", len(texts) / seconds, len(texts))
    pairs = list(zip(texts[::2], texts[1::2], strict=True))

    def whole() -> None:
        vectors = encoder.fresh(texts, tokens)
        m.cosines(vectors[::2], vectors[1::2])

    comparer = Comparer(encoder, settings, pool.extractor, tokens, lambda _: None)

    def aligned(directional: bool) -> None:
        parts = [split(text) for text in texts]
        vectors = encoder.fresh([part for some in parts for part in some], settings.tokens.sentences)
        bounds = np.cumsum([0, *map(len, parts)])
        for number in range(0, len(texts), 2):
            a, b, c = bounds[number : number + 3]
            if directional:
                abnormal = np.array([comparer.abnormal(part) for part in parts[number + 1]], bool)
                m.directional(vectors[a:b], vectors[b:c], abnormal, settings.discrepancies.aggregate)
            else:
                m.align_f1(vectors[a:b], vectors[b:c])

    for name, work in (
        ("cosine", whole),
        ("align_f1", lambda: aligned(False)),
        ("directional", lambda: aligned(True)),
    ):
        seconds = _timed(work)
        out.add("cost.seconds_per_1000_pairs", name, 1000 * seconds / len(pairs), len(pairs))
    out.add("cost.peak_memory", "", _peak(encoder.model), 1)
    out.add("cost.bytes_per_vector", "", 2.0 * encoder.dimensions, 1)
    return out


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _machine(model: Any) -> str:
    import torch

    if model.device.type == "cuda":
        return f"measured on one {torch.cuda.get_device_name(model.device)}"
    return f"measured on this machine, {torch.get_num_threads()} threads"


def _peak(model: Any) -> float:
    """Return the peak memory in MiB: of the accelerator, or of the whole process."""
    import torch

    if model.device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(model.device)) / 2**20
    try:
        import resource
    except ImportError:  # not on Windows
        return float("nan")
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes there, KiB here
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
