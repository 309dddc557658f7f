"""How separate the attribute heads are: modularity and DCI of their response matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def modularity(response: NDArray[Any]) -> float:
    """Return the mean response on the diagonal over the mean off it.

    Args:
        response: |correlation| of head i's cosine with the target of attribute j, shape (A, A); NaN entries
            are left out.

    Source: paper §3.2.6 and table 4 (3.634). NaN where the mean off the diagonal is zero or there is none.
    """
    matrix = np.asarray(response, np.float64)
    own = np.eye(len(matrix), dtype=bool)
    inside, outside = matrix[own], matrix[~own]
    inside, outside = inside[~np.isnan(inside)], outside[~np.isnan(outside)]
    if not len(inside) or not len(outside) or outside.mean() == 0:
        return float("nan")
    return float(inside.mean() / outside.mean())


def dci(response: NDArray[Any]) -> tuple[float, float]:
    """Return disentanglement and completeness of a response matrix.

    With P_ij = R_ij / Σ_j R_ij and A attributes: D_i = 1 − H_A(P_i.), D = Σ_i ρ_i D_i, where ρ_i is head i's
    share of all response; completeness is the same over the columns. H_A is the entropy to base A.
    Source: Eastwood and Williams 2018, section 2; the paper's table 4 (0.073 and 0.076).

    Args:
        response: importance of head i for attribute j, not negative, shape (A, A); NaN counts as zero.
    """
    matrix = np.nan_to_num(np.asarray(response, np.float64))
    return _informative(matrix), _informative(matrix.T)


def _informative(matrix: NDArray[np.float64]) -> float:
    total = matrix.sum()
    if total <= 0 or matrix.shape[1] < 2:
        return float("nan")
    sums = matrix.sum(axis=1, keepdims=True)
    shares = np.divide(matrix, sums, out=np.zeros_like(matrix), where=sums > 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    entropy = -(shares * logs).sum(axis=1) / np.log(matrix.shape[1])
    return float(((1 - entropy) * sums[:, 0]).sum() / total)
