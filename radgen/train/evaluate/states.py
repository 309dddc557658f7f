"""Suite states: cosines within and across the states of a finding, on phrasings that training has not seen.

MApLe's figure 2 and section 5.1: the mean pairwise cosine of sentences within a state and across the two
states of a finding. Pairs of one phrasing are left out: they differ in what they speak of, not in how they
say it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from radgen.errors import RadgenError
from radgen.train.codebook.book import STATES
from radgen.train.evaluate.encoders import Encoder
from radgen.train.evaluate.outcome import Outcome, SkippedError, Sure
from radgen.train.evaluate.settings import EvaluateFile
from radgen.train.measures.ordering import Vectors

Show = Callable[[int], None]
#: Sentences of a finding by state: number of the text, phrasing.
Said = dict[str, dict[str, list[tuple[int, str]]]]
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def read_test(folder: Path) -> tuple[list[str], Said]:
    """Read the test sentences that ``radgen states`` made: distinct texts, and each finding's by state.

    Raises:
        SkippedError: there are none.
        RadgenError: a line is no such row.
    """
    root = folder / "states" if (folder / "states").is_dir() else folder
    path = root / "sentences" / "test.jsonl"
    if not path.is_file():
        raise SkippedError("needs --states, the folder that radgen states wrote")
    places: dict[str, int] = {}
    said: Said = {}
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            row = orjson.loads(line)
            text, tag, presence, phrasing = (
                row[name] for name in ("sentence", "finding", "presence", "phrasing")
            )
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise RadgenError(f"{path}:{number}: no row of radgen states; make the folder anew") from None
        if presence in STATES:
            at = places.setdefault(text, len(places))
            said.setdefault(tag, {state: [] for state in STATES})[presence].append((at, phrasing))
    return list(places), said


def mean_cosines(own: Vectors, phrasing: NDArray[Any], other: Vectors) -> tuple[Any, Any]:
    """Return each sentence's mean cosine with the others of its state, and with those of the other state.

    Args:
        own: unit vectors of the sentences of a state, (n, d).
        phrasing: (n,), numbers of their phrasings; sentences of one phrasing are not compared.
        other: unit vectors of the sentences of the other state, (m, d).

    Returns:
        (k,) within, of the k sentences that have one of another phrasing beside them, and (n,) across.
    """
    vectors = own.astype(np.float64)
    count = np.bincount(phrasing)
    sums = np.zeros((len(count), vectors.shape[1]))
    np.add.at(sums, phrasing, vectors)
    rest = len(own) - count[phrasing]
    total = vectors @ vectors.sum(axis=0) - (vectors * sums[phrasing]).sum(axis=1)
    across = vectors @ other.astype(np.float64).mean(axis=0)
    return total[rest > 0] / rest[rest > 0], across


def states(folder: Path, encoder: Encoder, settings: EvaluateFile, sure: Sure, show: Show) -> Outcome:
    """Judge the states of each finding.

    Raises:
        SkippedError: there are no sentences.
    """
    texts, said = read_test(folder)
    vectors = encoder.vectors(texts, settings.tokens.sentences, show)
    out = Outcome()
    overall: dict[str, list[float]] = {"within": [], "across": []}
    boxes: dict[str, Any] = {}
    for tag in sorted(said):
        parts = [said[tag][state] for state in STATES]
        if not all(parts):
            state = STATES[0] if not parts[0] else STATES[1]
            for measure in overall:
                out.missing(f"states.{measure}", tag, f"no test sentence states it {state}")
            continue
        found = _finding(vectors, parts)
        boxes[tag] = {name: _box(values) for name, values in found.items()}
        for state, values in zip(STATES, (found["within_present"], found["within_absent"]), strict=True):
            out.add("states.within", f"{tag}/{state}", sure.mean(values), len(values))
        for measure, collected in overall.items():
            interval = sure.mean(found[measure])
            out.add(f"states.{measure}", tag, interval)
            if interval.n:
                collected.append(interval.value)
    for measure, collected in overall.items():
        out.add(f"states.{measure}", "", sure.mean(np.array(collected)))
    out.figures["boxes"] = boxes
    out.notes.append(f"{len(texts):,} sentences of test phrasings; pairs of one phrasing left out")
    return out


def _finding(vectors: Vectors, parts: Sequence[list[tuple[int, str]]]) -> dict[str, Any]:
    """Return the mean cosines of the sentences of a finding: within (both states, and each), across."""
    own = [vectors[[at for at, _ in part]] for part in parts]
    within, across = [], []
    for side in (0, 1):
        names = [phrasing for _, phrasing in parts[side]]
        codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
        inside, outside = mean_cosines(own[side], np.array([codes[name] for name in names]), own[1 - side])
        within.append(inside)
        across.append(outside)
    return {
        "within": np.concatenate(within),
        "across": np.concatenate(across),
        "within_present": within[0],
        "within_absent": within[1],
    }


def _box(values: Any) -> dict[str, float | int | None]:
    """Return what a box plot draws: quantiles, mean, count."""
    names = ("low", "q1", "median", "q3", "high")
    if not len(values):
        return {**dict.fromkeys((*names, "mean"), None), "n": 0}
    found = zip(names, np.quantile(values, _QUANTILES).tolist(), strict=True)
    return {**dict(found), "mean": float(np.mean(values)), "n": len(values)}
