"""Every measure of an encoder, each in one place with its formula and source (spec §10).

Pure functions over arrays: no text, no model, no file. Vectors are float32 rows of length one, so that a
dot product is the cosine. A measure that is not defined for what it is given (no positive label, a constant)
is NaN, never a zero.
"""

from radgen.train.measures.heads import dci, modularity
from radgen.train.measures.intervals import Interval, difference, interval_of, mean_interval
from radgen.train.measures.labels import (
    OperatingPoint,
    auroc,
    best_threshold,
    f1_scores,
    hamming,
    youden,
)
from radgen.train.measures.ordering import (
    cosines,
    matched_side_flip_response,
    ordered,
    ordering_accuracy,
    side_flip_response,
    spearman,
)
from radgen.train.measures.retrieval import Ranks, label_jaccard_ndcg, ranks, top
from radgen.train.measures.sentences import align_f1, directional, win_rate

__all__ = [
    "Interval",
    "OperatingPoint",
    "Ranks",
    "align_f1",
    "auroc",
    "best_threshold",
    "cosines",
    "dci",
    "difference",
    "directional",
    "f1_scores",
    "hamming",
    "interval_of",
    "label_jaccard_ndcg",
    "matched_side_flip_response",
    "mean_interval",
    "modularity",
    "ordered",
    "ordering_accuracy",
    "ranks",
    "side_flip_response",
    "spearman",
    "top",
    "win_rate",
    "youden",
]
