"""Suite ``probes``: what a linear map reads from frozen vectors (paper §3.2.4, §3.2.5)."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from radgen.train import measures as m
from radgen.train.evaluate.encoders import Encoder
from radgen.train.evaluate.outcome import Outcome, SkippedError, Sure
from radgen.train.evaluate.reports import PRESENT, Labels, Pool
from radgen.train.evaluate.settings import EvaluateFile, ProbeSettings
from radgen.train.measures.ordering import Floats, Vectors

Show = Callable[[int], None]
Ints = NDArray[np.int64]
Truths = NDArray[np.bool_]


@dataclass(frozen=True)
class Split:
    """Reports to learn from and reports to judge on, as row numbers; seeded by the reports' ids."""

    train: Ints
    test: Ints


def split(ids: list[str], share: float, seed: int) -> Split:
    """Split reports by a seeded hash of their ids, and put each part in the order of the hash."""
    keys = [
        hashlib.blake2b(f"{seed}:{name}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
        for name in ids
    ]
    order = np.array(sorted(range(len(ids)), key=lambda i: keys[i]), np.int64)
    cut = round(share * len(ids))
    return Split(order[:cut], order[cut:])


class Probe:
    """One logistic regression a label, all with one strength of L2, on one set of rows.

    Args:
        classes: status of each label, shape (n, labels); what occurs once in a column is all it predicts.
    """

    def __init__(
        self, vectors: Vectors, classes: NDArray[np.int8], strength: float, steps: int, weighted: bool
    ) -> None:
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        self.models: list[Any] = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # steps are a setting
            for column in classes.T:
                if (column == column[0]).all():
                    self.models.append(int(column[0]))
                    continue
                weight = "balanced" if weighted else None
                made = LogisticRegression(C=strength, max_iter=steps, class_weight=weight)
                self.models.append(made.fit(vectors, column))

    def classes(self, vectors: Vectors) -> NDArray[np.int8]:
        """Return the likeliest status of each label, shape (n, labels)."""
        columns = [
            np.full(len(vectors), model) if isinstance(model, int) else model.predict(vectors)
            for model in self.models
        ]
        return np.stack(columns, axis=1).astype(np.int8)

    def chances(self, vectors: Vectors, status: int = 1) -> Floats:
        """Return the probability of a status for each label, shape (n, labels)."""
        columns = []
        for model in self.models:
            if isinstance(model, int):
                columns.append(np.full(len(vectors), float(model == status)))
            else:
                found = list(model.classes_)
                chances = model.predict_proba(vectors)
                columns.append(chances[:, found.index(status)] if status in found else np.zeros(len(vectors)))
        return np.stack(columns, axis=1)


def presence_f1(predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return the mean over labels of F1 of the status 1."""
    return float(np.nanmean(m.f1_scores(predicted == 1, truth == 1)))


def status_f1(predicted: NDArray[Any], truth: NDArray[Any]) -> float:
    """Return the mean over labels of the mean F1 of the statuses that occur on either side."""
    scores = np.stack([m.f1_scores(predicted == status, truth == status) for status in range(4)])
    return float(np.nanmean(np.nanmean(scores, axis=0)))


@dataclass
class Fitted:
    """A probe fitted on labelled reports, with what was held out of them to choose its strength."""

    probe: Probe
    strength: float
    validation: tuple[Floats, Truths] | None = None


def fit(
    vectors: Vectors,
    classes: NDArray[np.int8],
    settings: ProbeSettings,
    measure: Callable[[NDArray[Any], NDArray[Any]], float],
    weighted: bool,
) -> Fitted:
    """Choose the strength on a validation part of the rows, then fit on all of them.

    Args:
        vectors, classes: the labelled reports, in the order of their hashes.
    """
    cut = max(1, round(settings.validation_share * len(vectors)))
    held, rest = slice(0, cut), slice(cut, None)
    best: tuple[float, float, Probe] | None = None
    for strength in settings.strengths:
        probe = Probe(vectors[rest], classes[rest], strength, settings.steps, weighted)
        found = measure(probe.classes(vectors[held]), classes[held])
        # Of several, the weakest penalty: few labels leave few positives to choose by, and under a strong
        # one nothing is ever predicted.
        if best is None or found >= best[0]:
            best = (found, strength, probe)
    assert best is not None
    scores = best[2].chances(vectors[held])
    final = Probe(vectors, classes, best[1], settings.steps, weighted)
    return Fitted(final, best[1], (scores, classes[held] == 1))


def probes(pool: Pool, encoder: Encoder, settings: EvaluateFile, sure: Sure, show: Show) -> Outcome:
    """Judge linear probes on findings plus impression: learning curves, AUROC, Youden, Hamming."""
    options = settings.probes
    labels = pool.labels()
    rows = np.flatnonzero(labels.known)
    if len(rows) < options.least_reports:
        raise SkippedError(
            f"{len(rows)} reports with labels ({labels.source}): fewer than {options.least_reports}"
        )
    parts = split([pool.ids[i] for i in rows], options.train_share, settings.seed)
    train, test = rows[parts.train], rows[parts.test]
    keep = _enough(labels, train, test, options)
    if not keep:
        raise SkippedError(f"no label ({labels.source}) is present in {options.least_positives} reports")
    vectors = encoder.vectors(pool.whole, settings.tokens.probes, show)
    out = Outcome(notes=[f"{len(train):,} reports to learn from, {len(test):,} to judge on"])
    out.notes.append(f"labels ({labels.source}): {', '.join(labels.names[i] for i in keep)}")
    presence = labels.present[:, keep].astype(np.int8)
    status = labels.status[:, keep]
    sizes = [size for size in options.sizes if size < len(train)]
    curve: dict[str, Any] = {"labels": [*sizes, len(train)]}
    fitted = None
    tasks = [("presence_f1", presence, presence_f1, False)]
    if labels.told_apart:
        tasks.append(("status_f1", status, status_f1, True))
    for name, classes, measure, weighted in tasks:
        points: list[list[float]] = []
        for size in [*sizes, len(train)]:
            whole = size == len(train)
            found = []
            for repeat in range(1 if whole else options.repeats):
                rng = np.random.default_rng([settings.seed, size, repeat])
                chosen = train if whole else rng.choice(train, size, replace=False)
                made = fit(vectors[chosen], classes[chosen], options, measure, weighted)
                found.append(measure(made.probe.classes(vectors[test]), classes[test]))
            points.append(found)
            group = "all" if whole else str(size)
            if whole:
                predicted = made.probe.classes(vectors[test])
                out.add(f"probes.{name}", group, _resampled(measure, predicted, classes[test], sure))
                fitted = fitted or made
            else:
                out.add(f"probes.{name}", group, float(np.mean(found)), len(test))
        curve[name] = {
            "mean": [float(np.mean(found)) for found in points],
            "low": [min(found) for found in points],
            "high": [max(found) for found in points],
        }
    if not labels.told_apart:
        out.missing("probes.status_f1", "all", f"{labels.source} does not tell absent from not named")
    out.figures["learning"] = curve
    assert fitted is not None
    _hamming(out, fitted, vectors[test], presence[test] == 1, sure)
    _tags(out, pool, vectors, train, test, fitted.strength, options)
    return out


def _enough(labels: Labels, train: Ints, test: Ints, options: ProbeSettings) -> list[int]:
    least = options.least_positives
    positives = [(labels.status[part] == PRESENT).sum(axis=0) for part in (train, test)]
    return [i for i in range(len(labels.names)) if min(counts[i] for counts in positives) >= least]


def _resampled(
    measure: Callable[[NDArray[Any], NDArray[Any]], float],
    predicted: NDArray[Any],
    truth: NDArray[Any],
    sure: Sure,
) -> m.Interval:
    return m.interval_of(
        lambda rows: measure(predicted[rows], truth[rows]),
        len(truth),
        repeats=min(sure.repeats, 200),  # a macro-F1 costs a thousand times a mean
        confidence=sure.confidence,
        seed=sure.seed,
    )


def _hamming(out: Outcome, fitted: Fitted, vectors: Vectors, truth: Truths, sure: Sure) -> None:
    scores = fitted.probe.chances(vectors)
    out.add("probes.hamming", "all", sure.mean(m.hamming(scores >= 0.5, truth)))
    assert fitted.validation is not None
    threshold = m.best_threshold(*fitted.validation)
    out.add("probes.hamming_best", "all", sure.mean(m.hamming(scores >= threshold, truth)))


def _tags(
    out: Outcome,
    pool: Pool,
    vectors: Vectors,
    train: Ints,
    test: Ints,
    strength: float,
    options: ProbeSettings,
) -> None:
    """Add AUROC and the operating point with the largest Youden's J for every label, and their means."""
    labels = pool.findings_present()
    keep = [i for i in _enough(labels, train, test, options) if not labels.present[test][:, i].all()]
    classes = labels.present[:, keep].astype(np.int8)
    scores = Probe(vectors[train], classes[train], strength, options.steps, False).chances(vectors[test])
    found: dict[str, list[float]] = {}
    for column, number in enumerate(keep):
        name, truth = labels.names[number], classes[test][:, column] == 1
        point = m.youden(scores[:, column], truth)
        if point is None:
            continue
        values = {
            "probes.auroc": m.auroc(scores[:, column], truth),
            "probes.youden_threshold": point.threshold,
            "probes.youden_sensitivity": point.sensitivity,
            "probes.youden_specificity": point.specificity,
            "probes.youden_f1": point.f1,
        }
        for measure, value in values.items():
            if np.isfinite(value):
                out.add(measure, name, value, int(truth.sum()))
                found.setdefault(measure, []).append(value)
    for measure, list_of in found.items():
        if measure != "probes.youden_threshold":
            out.add(measure, "", float(np.mean(list_of)), len(list_of))
