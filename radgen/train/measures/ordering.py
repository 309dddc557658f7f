"""Do cosines follow the targets: ordering accuracy, rank correlation, side-flip response."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]


def cosines(a: Vectors, b: Vectors) -> Floats:
    """Return the cosine of each row of ``a`` with the same row of ``b``.

    Args:
        a, b: unit vectors, shape (n, d).

    Returns:
        Shape (n,).
    """
    found: Floats = np.einsum("ij,ij->i", a, b, dtype=np.float64)
    return found


def ordered(anchor: Vectors, positive: Vectors, negative: Vectors) -> NDArray[np.bool_]:
    """Tell for each triplet whether cos(a, p) > cos(a, n); a tie is wrong.

    Args:
        anchor, positive, negative: unit vectors, shape (n, d).

    Returns:
        Shape (n,). Source: paper §3.1; ties as sentence-transformers' TripletEvaluator.
    """
    result: NDArray[np.bool_] = cosines(anchor, positive) > cosines(anchor, negative)
    return result


def ordering_accuracy(anchor: Vectors, positive: Vectors, negative: Vectors) -> float:
    """Return the share of triplets with cos(a, p) > cos(a, n); see ``ordered``. NaN without triplets."""
    right = ordered(anchor, positive, negative)
    return float(right.mean()) if len(right) else float("nan")


def spearman(values: NDArray[Any], targets: NDArray[Any]) -> float:
    """Return Spearman's rank correlation; tied values share their mean rank.

    ρ = Pearson correlation of the ranks (SciPy's ``spearmanr``). NaN where one side is constant or there are
    fewer than two pairs. Source: paper §3.1, CrossAxis-8.

    Args:
        values, targets: shape (n,).
    """
    from scipy.stats import rankdata

    if len(values) < 2 or np.ptp(values) == 0 or np.ptp(targets) == 0:
        return float("nan")
    return float(np.corrcoef(rankdata(values), rankdata(targets))[0, 1])


def side_flip_response(cosine: NDArray[Any], relations: Sequence[str | None]) -> float:
    """Return the mean cosine of same-side pairs minus that of opposite-side pairs.

    R = mean{cos | same} − mean{cos | opposite}; bilateral against one side belongs to neither group. NaN
    where a group is empty. Source: paper §3.1 and figure 8.

    Args:
        cosine: shape (n,).
        relations: "same", "opposite", "bilateral" or None for each pair.
    """
    sides = np.array([relation or "" for relation in relations])
    same, opposite = cosine[sides == "same"], cosine[sides == "opposite"]
    return float(same.mean() - opposite.mean()) if len(same) and len(opposite) else float("nan")


def matched_side_flip_response(
    cosine: NDArray[Any], relations: Sequence[str | None], strata: Sequence[Hashable]
) -> float:
    """Return the side-flip response among pairs that are alike, or equally far apart, in all but the side.

    The mean over strata of R (``side_flip_response``), weighted by a stratum's smaller group. The plain R is
    a contrast of groups: where opposite-side pairs also differ more in the other attribute, part of it is
    that attribute's. NaN where no stratum has both groups. (ours)

    Args:
        cosine: shape (n,).
        relations: as in ``side_flip_response``.
        strata: what each pair has of the other attribute, or how far apart it is there.
    """
    places: dict[Hashable, list[int]] = {}
    for at, stratum in enumerate(strata):
        places.setdefault(stratum, []).append(at)
    total = weight = 0.0
    for own in places.values():
        sides = [relations[at] for at in own]
        smaller = min(sides.count("same"), sides.count("opposite"))
        if smaller:
            total += smaller * side_flip_response(cosine[own], sides)
            weight += smaller
    return total / weight if weight else float("nan")
