"""Labels recovered from scores: AUROC, Youden thresholds, F1, Hamming error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.train.measures.ordering import Floats

Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold and what it gives: scores at or above it are positive; infinite means that none is."""

    threshold: float
    sensitivity: float
    specificity: float
    f1: float

    @property
    def j(self) -> float:
        """Youden's J = sensitivity + specificity − 1."""
        return self.sensitivity + self.specificity - 1


def auroc(scores: NDArray[Any], truth: Truths) -> float:
    """Return the area under the ROC curve: P(a positive scores above a negative) + ½ P(they tie).

    NaN where one class is empty. Source: paper §3.2.5; the same as scikit-learn's ``roc_auc_score``.

    Args:
        scores, truth: shape (n,).
    """
    from scipy.stats import rankdata

    positive = int(truth.sum())
    negative = len(truth) - positive
    if not positive or not negative:
        return float("nan")
    rank_sum = float(rankdata(scores)[truth].sum())
    return (rank_sum - positive * (positive + 1) / 2) / (positive * negative)


def youden(scores: NDArray[Any], truth: Truths) -> OperatingPoint | None:
    """Return the threshold with the largest J; of several the highest. None where one class is empty.

    Every distinct score is a threshold, and the one above all scores (nothing is positive); scores at or
    above it are positive, so that tied scores go together. Source: paper, appendix C.
    """
    positive, negative = int(truth.sum()), int((~truth).sum())
    if not positive or not negative:
        return None
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))  # the last of each group of ties
    true = np.cumsum(truth[order])[last]
    false = last + 1 - true
    thresholds = np.concatenate([[np.inf], ranked[last]])
    true, false = np.concatenate([[0], true]), np.concatenate([[0], false])
    # Whole numbers: J·positive·negative, so that equal J are equal.
    best = int(np.argmax(true * negative - false * positive))  # the first: the highest threshold
    hits, wrong = int(true[best]), int(false[best])
    return OperatingPoint(
        threshold=float(thresholds[best]),
        sensitivity=hits / positive,
        specificity=1 - wrong / negative,
        f1=2 * hits / (hits + wrong + positive),
    )


def hamming(predicted: Truths, truth: Truths) -> Floats:
    """Return for each report H = 1/K Σ_k 1[ŷ_k ≠ y_k], the share of its K labels that are wrong.

    Source: paper §2.1.3.

    Args:
        predicted, truth: shape (n, K).
    """
    wrong: Floats = (predicted != truth).mean(axis=1)
    return wrong


def best_threshold(scores: NDArray[Any], truth: Truths) -> float:
    """Return the one threshold over all labels with the smallest Hamming error; of several the highest.

    Candidates are the distinct scores and infinity; scores at or above it are positive.

    Args:
        scores, truth: any shape, the same.
    """
    flat, right = scores.ravel(), truth.ravel()
    order = np.argsort(-flat, kind="stable")
    ranked = flat[order]
    last = np.flatnonzero(np.append(ranked[1:] != ranked[:-1], True))
    true = np.cumsum(right[order])[last]
    errors = np.concatenate([[0], (last + 1 - true) - true])  # relative to calling nothing positive
    thresholds = np.concatenate([[np.inf], ranked[last]])
    return float(thresholds[int(np.argmin(errors))])


def f1_scores(predicted: NDArray[Any], truth: NDArray[Any]) -> Floats:
    """Return F1 = 2·TP / (2·TP + FP + FN) for each label; NaN where neither side has it.

    Args:
        predicted, truth: shape (n, K), true where the label is there.
    """
    hits = (predicted & truth).sum(axis=0)
    total = predicted.sum(axis=0) + truth.sum(axis=0)
    with np.errstate(invalid="ignore"):
        scores: Floats = np.where(total > 0, 2 * hits / total, np.nan)
    return scores
