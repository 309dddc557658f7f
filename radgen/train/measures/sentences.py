"""Comparing reports sentence by sentence: Align-F1, Directional, win rate."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from radgen.train.measures.ordering import Vectors

Aggregate = Literal["mean", "min"]


def align_f1(candidate: Vectors, reference: Vectors) -> float:
    """Return Align-F1 of two reports.

    P = mean over candidate sentences of their best cosine with a reference sentence, R the same the other
    way; F = 2·P·R / (P + R), and 0 where P or R is not positive: the harmonic mean means nothing there. NaN
    where one side has no sentence. Source: paper §3.1.

    Args:
        candidate, reference: unit vectors of the sentences, shapes (c, d) and (r, d).
    """
    if not len(candidate) or not len(reference):
        return float("nan")
    cosine = (candidate @ reference.T).astype(np.float64)
    precision, recall = float(cosine.max(axis=1).mean()), float(cosine.max(axis=0).mean())
    return 2 * precision * recall / (precision + recall) if precision > 0 and recall > 0 else 0.0


def directional(
    candidate: Vectors,
    reference: Vectors,
    abnormal: NDArray[np.bool_],
    aggregate: Aggregate = "mean",
) -> float:
    """Return Directional of a candidate against a reference.

    min(support, coverage): support = mean (or minimum) over candidate sentences of their best cosine with a
    reference sentence; coverage = the same over the abnormal reference sentences and the candidate. Without
    an abnormal sentence it is support alone. NaN where one side has no sentence. Source: paper §3.1, which
    leaves open how the sentences' best cosines are taken together.

    Args:
        candidate, reference: unit vectors of the sentences, shapes (c, d) and (r, d).
        abnormal: which reference sentences state something abnormal, shape (r,).
    """
    if not len(candidate) or not len(reference):
        return float("nan")
    cosine = (candidate @ reference.T).astype(np.float64)
    together = np.min if aggregate == "min" else np.mean
    support = float(together(cosine.max(axis=1)))
    if not abnormal.any():
        return support
    return min(support, float(together(cosine.max(axis=0)[abnormal])))


def win_rate(harmless: NDArray[Any], wrong: NDArray[Any]) -> NDArray[np.float64]:
    """Return for each pair 1 where the wrong report scores below its harmless rewrite, ½ for a tie, else 0.

    Source: paper §3.1. NaN where a score is missing.

    Args:
        harmless, wrong: scores, shape (n,).
    """
    won = (wrong < harmless) + 0.5 * (wrong == harmless)
    values: NDArray[np.float64] = np.where(np.isnan(harmless) | np.isnan(wrong), np.nan, won)
    return values
