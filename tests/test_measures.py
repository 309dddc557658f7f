"""Measures against values worked out by hand and against scikit-learn and SciPy, ties included."""

from __future__ import annotations

import itertools
import math
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

from radgen.train import measures as m
from radgen.train.measures import retrieval

scipy_stats = pytest.importorskip("scipy.stats")
metrics = pytest.importorskip("sklearn.metrics")


def unit(rows: NDArray) -> NDArray[np.float32]:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def random_units(n: int, d: int, seed: int) -> NDArray[np.float32]:
    return unit(np.random.default_rng(seed).normal(size=(n, d)))


# ------------------------------------------------------------------------------------------ ordering


def test_a_tie_is_no_right_order() -> None:
    a = np.array([[1, 0]] * 3, np.float32)
    p = np.array([[1, 0], [0, 1], [0.6, 0.8]], np.float32)
    n = np.array([[0, 1], [1, 0], [0.6, 0.8]], np.float32)
    assert m.ordered(a, p, n).tolist() == [True, False, False]
    assert m.ordering_accuracy(a, p, n) == pytest.approx(1 / 3)
    assert math.isnan(m.ordering_accuracy(a[:0], p[:0], n[:0]))


def test_ordering_accuracy_is_that_of_sentence_transformers() -> None:
    paired = pytest.importorskip("sentence_transformers.util").pairwise_cos_sim
    a, p, n = (random_units(200, 8, seed) for seed in range(3))
    p[:20] = n[:20]
    expected = float((paired(a, p) > paired(a, n)).float().mean())
    assert m.ordering_accuracy(a, p, n) == pytest.approx(expected)


def test_spearman_with_ties_is_scipys() -> None:
    rng = np.random.default_rng(5)
    x, y = rng.integers(0, 5, 300).astype(float), rng.integers(0, 4, 300).astype(float)
    assert m.spearman(x, y) == pytest.approx(scipy_stats.spearmanr(x, y).statistic, abs=1e-12)
    # ranks of x: 1.5, 1.5, 3; of y: 1, 2, 3; Pearson = 1.5 / sqrt(1.5 * 2)
    assert m.spearman(np.array([0, 0, 1.0]), np.array([1, 2, 3.0])) == pytest.approx(1.5 / math.sqrt(3))
    assert math.isnan(m.spearman(np.ones(3), np.array([1, 2, 3.0])))


def test_side_flip_leaves_bilateral_out() -> None:
    cosine = np.array([0.9, 0.7, 0.5, 0.1, 0.3])
    relations = ["same", "same", "bilateral", "opposite", "opposite"]
    assert m.side_flip_response(cosine, relations) == pytest.approx(0.8 - 0.2)
    assert math.isnan(m.side_flip_response(cosine[:3], relations[:3]))


def test_matched_side_flip_by_hand() -> None:
    """Near in size: same 0.9, 0.7, opposite 0.7: 0.1. Far: same 0.2, opposite 0.1 three times: 0.1. Mean 0.1.

    The plain response is 0.6 - 0.25. A stratum of one group, and a bilateral pair, count for nothing.
    """
    cosine = np.array([0.9, 0.7, 0.7, 0.2, 0.1, 0.1, 0.1, 0.5])
    relations = ["same", "same", "opposite", "same", "opposite", "opposite", "opposite", "bilateral"]
    strata = ["near"] * 3 + ["far"] * 4 + ["near"]
    assert m.side_flip_response(cosine, relations) == pytest.approx(0.6 - 0.25)
    assert m.matched_side_flip_response(cosine, relations, strata) == pytest.approx(0.1)
    cosine, relations = np.append(cosine, -0.9), [*relations, "opposite"]
    assert m.matched_side_flip_response(cosine, relations, [*strata, "alone"]) == pytest.approx(0.1)
    assert math.isnan(m.matched_side_flip_response(cosine[:2], relations[:2], strata[:2]))


def test_matched_side_flip_weighs_by_the_smaller_group() -> None:
    """Two of each with response 0.4, one of each with 0.1: (2 * 0.4 + 0.1) / 3 = 0.3."""
    cosine = np.array([0.8, 0.8, 0.4, 0.4, 0.6, 0.5])
    relations = ["same", "same", "opposite", "opposite", "same", "opposite"]
    assert m.matched_side_flip_response(cosine, relations, [1, 1, 1, 1, 2, 2]) == pytest.approx(0.3)


# ----------------------------------------------------------------------------------------- retrieval


def test_ranks_by_hand() -> None:
    gallery = np.eye(4, dtype=np.float32)
    queries = unit(np.array([[4, 3, 2, 1], [4, 3, 2, 1], [1, 1, 1, 1], [0, 0, 0, 1]], float))
    found = m.ranks(queries, gallery, np.array([0, 2, 1, 3]))
    assert found.above.tolist() == [0, 2, 0, 0]
    assert found.tied.tolist() == [1, 1, 4, 1]
    assert found.hits(1).tolist() == [1, 0, 0.25, 1]
    assert found.hits(3).tolist() == [1, 1, 0.75, 1]
    assert found.recall(1) == pytest.approx(2.25 / 4)
    # the third query's text stands at rank 1, 2, 3 or 4, each as likely
    assert found.reciprocal(10).tolist() == pytest.approx([1, 1 / 3, (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4, 1])
    assert found.reciprocal(2).tolist() == pytest.approx([1, 0, (1 + 1 / 2) / 4, 1])


def test_equal_texts_strict_and_as_hits() -> None:
    """The nearest text stands three times in the gallery; strict, one of the three is right."""
    gallery, counts = np.eye(3, dtype=np.float32), np.array([3, 1, 1])
    queries = unit(np.array([[3, 2, 1], [3, 2, 1]], float))
    target = np.array([0, 1])
    strict = m.ranks(queries, gallery, target, counts)
    assert strict.hits(1).tolist() == pytest.approx([1 / 3, 0])
    assert strict.hits(3).tolist() == pytest.approx([1, 0])
    assert strict.reciprocal().tolist() == pytest.approx([(1 + 1 / 2 + 1 / 3) / 3, 1 / 4])
    equal = m.ranks(queries, gallery, target, counts, equal=np.arange(3))
    assert equal.hits(1).tolist() == [1, 0]
    assert equal.reciprocal().tolist() == pytest.approx([1, 1 / 4])
    # the second and third text are one but for a capital: the nearer of them counts for both
    grouped = m.ranks(queries, gallery, np.array([2, 1]), counts, equal=np.array([0, 1, 1]))
    assert grouped.above.tolist() == [3, 3]
    assert grouped.tied.tolist() == [1, 1]


def test_ties_are_the_mean_over_all_orders() -> None:
    """Two hits among five tied entries behind one nearer entry, against every order of the five."""
    found = m.Ranks(np.array([1]), np.array([5]), np.array([2]))
    orders = list(itertools.permutations([1, 1, 0, 0, 0]))
    first = [order.index(1) + 2 for order in orders]
    for k in (1, 2, 3, 4, 5, 10):
        assert found.hits(k)[0] == pytest.approx(np.mean([rank <= k for rank in first])), k
        assert found.reciprocal(k)[0] == pytest.approx(np.mean([(1 / r) * (r <= k) for r in first])), k


@pytest.mark.parametrize("block", [1, 7, 1000])
def test_blocks_change_nothing(block: int) -> None:
    queries, gallery = random_units(40, 6, 1), random_units(40, 6, 2)
    target = np.random.default_rng(3).permutation(40)
    cosine = queries @ gallery.T
    expected = [int((row > row[t]).sum()) for row, t in zip(cosine, target, strict=True)]
    assert m.ranks(queries, gallery, target, block=block).above.tolist() == expected
    found, values = m.top(queries, gallery, 5, block=block)
    assert found.tolist() == np.argsort(-cosine, axis=1, kind="stable")[:, :5].tolist()
    assert values == pytest.approx(np.take_along_axis(cosine, found, axis=1), abs=1e-6)


@pytest.mark.parametrize("block", [3, None])
def test_ndcg_is_scikit_learns(block: int | None) -> None:
    rng = np.random.default_rng(11)
    gallery = random_units(12, 4, 4)
    entries = rng.integers(0, 12, 60)  # texts that stand several times: exact ties
    queries = random_units(25, 4, 6)
    query_labels, entry_labels = rng.random((25, 5)) < 0.4, rng.random((60, 5)) < 0.4
    query_labels[0] = False
    scores = m.label_jaccard_ndcg(queries, gallery, entries, query_labels, entry_labels, block=block)
    for i, labels in enumerate(query_labels):
        gains = [
            metrics.jaccard_score(labels, other) if (labels | other).any() else 1.0 for other in entry_labels
        ]
        cosine = (queries[i] @ gallery.T)[entries]
        assert scores[i] == pytest.approx(metrics.ndcg_score([gains], [cosine], k=10), abs=1e-6), i


def test_ndcg_without_any_gain_is_not_a_zero() -> None:
    one = np.ones((1, 1), np.float32)
    labels, other = np.array([[True, False]]), np.array([[False, True]])
    assert math.isnan(m.label_jaccard_ndcg(one, one, np.array([0]), labels, other)[0])


def test_no_square_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 queries against as many texts: no block of cosines is larger than the limit."""
    sizes: list[int] = []
    real = retrieval._blocks

    def watched(*args: object, **options: object):  # type: ignore[no-untyped-def]
        for rows, cosine in real(*args, **options):  # type: ignore[arg-type]
            sizes.append(cosine.size)
            yield rows, cosine

    monkeypatch.setattr(retrieval, "_blocks", watched)
    vectors = random_units(20_000, 8, 9)
    found = m.ranks(vectors, vectors, np.arange(20_000))
    assert found.recall(1) > 0.99
    assert max(sizes) <= retrieval._BLOCK
    assert len(sizes) > 20


@pytest.mark.slow
def test_100_000_vectors_fit_into_a_gigabyte() -> None:
    """Ranks of 100,000 queries among 100,000 texts, in a process of its own; the square would be 40 GB."""
    code = """
import resource
import numpy as np
from radgen.train import measures as m
rng = np.random.default_rng(0)
vectors = rng.normal(size=(100_000, 16)).astype(np.float32)
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
found = m.ranks(vectors, vectors, np.arange(100_000))
print(found.recall(1), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    recall, gigabytes = map(float, run.stdout.split())
    assert recall > 0.99
    assert gigabytes < 1


# ----------------------------------------------------------------------------------------- intervals


def test_bootstrap_interval_is_scipys() -> None:
    values = (np.random.default_rng(2).random(400) < 0.3).astype(float)
    ours = m.mean_interval(values, repeats=4000, seed=1)
    theirs = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(3)
    ).confidence_interval
    assert ours.value == values.mean()
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high), abs=0.006)
    assert ours == m.mean_interval(values, repeats=4000, seed=1)


def test_bootstrap_of_many_values_and_of_a_statistic() -> None:
    values = np.random.default_rng(4).normal(size=500)
    spread = 1.96 * values.std() / math.sqrt(500)
    ours = m.mean_interval(values, repeats=4000)
    again = m.interval_of(lambda rows: float(values[rows].mean()), 500, repeats=4000, seed=8)
    for found in (ours, again):
        assert found.low == pytest.approx(values.mean() - spread, abs=0.01)
        assert found.high == pytest.approx(values.mean() + spread, abs=0.01)


def test_nothing_to_average_is_nan() -> None:
    empty = m.mean_interval(np.array([np.nan]))
    assert math.isnan(empty.value)
    assert empty.n == 0
    assert math.isnan(m.interval_of(lambda _: 1.0, 0).value)


def test_difference_by_hand() -> None:
    a, b = m.Interval(0.5, 0.4, 0.7, 10), m.Interval(0.8, 0.7, 0.85, 10)
    found = m.difference(a, b)
    assert found.value == pytest.approx(0.3)
    assert found.low == pytest.approx(0.3 - math.sqrt(0.1**2 + 0.2**2))
    assert found.high == pytest.approx(0.3 + math.sqrt(0.05**2 + 0.1**2))


# -------------------------------------------------------------------------------------------- labels


def test_auroc_with_ties_is_scikit_learns() -> None:
    rng = np.random.default_rng(7)
    scores, truth = rng.integers(0, 6, 200).astype(float), rng.random(200) < 0.3
    assert m.auroc(scores, truth) == pytest.approx(metrics.roc_auc_score(truth, scores))
    assert math.isnan(m.auroc(scores, np.zeros(200, bool)))


def test_youden_takes_the_highest_of_equal_thresholds() -> None:
    # at 4: 1/2 - 0 = 0.5; at 3: 1/2 - 1/2 = 0; at 2: 1 - 1/2 = 0.5; at 1: 0
    scores, truth = np.array([4.0, 3, 2, 1]), np.array([True, False, True, False])
    found = m.youden(scores, truth)
    assert found is not None
    assert (found.threshold, found.sensitivity, found.specificity) == (4.0, 0.5, 1.0)
    assert found.j == pytest.approx(0.5)
    assert found.f1 == pytest.approx(2 / 3)


def test_youden_takes_tied_scores_together() -> None:
    # one group at 2 (one positive, one negative) cannot be cut; the all-negative end has J = 0 as well
    found = m.youden(np.array([2.0, 2]), np.array([True, False]))
    assert found is not None
    assert found.threshold == math.inf
    assert (found.sensitivity, found.specificity, found.f1) == (0, 1, 0)
    assert m.youden(np.array([2.0, 2]), np.array([True, True])) is None


def test_youden_against_every_threshold_of_scikit_learn() -> None:
    rng = np.random.default_rng(9)
    for _ in range(20):
        scores, truth = rng.integers(0, 12, 80).astype(float), rng.random(80) < 0.4
        false, true, thresholds = metrics.roc_curve(truth, scores, drop_intermediate=False)
        best = (true - false).max()
        found = m.youden(scores, truth)
        assert found is not None
        assert found.j == pytest.approx(best)
        assert found.threshold == thresholds[np.isclose(true - false, best)].max()
        assert found.f1 == pytest.approx(metrics.f1_score(truth, scores >= found.threshold))


def test_hamming_and_f1_are_scikit_learns() -> None:
    rng = np.random.default_rng(10)
    truth, predicted = rng.random((50, 6)) < 0.3, rng.random((50, 6)) < 0.4
    assert m.hamming(predicted, truth).mean() == pytest.approx(metrics.hamming_loss(truth, predicted))
    assert m.f1_scores(predicted, truth) == pytest.approx(metrics.f1_score(truth, predicted, average=None))
    nobody = np.zeros((4, 1), bool)
    assert math.isnan(m.f1_scores(nobody, nobody)[0])


def test_best_threshold_by_hand_and_by_trying_all() -> None:
    assert m.best_threshold(np.array([3.0, 2, 1]), np.array([True, True, False])) == 2.0
    assert m.best_threshold(np.array([3.0, 2]), np.array([False, False])) == math.inf
    assert m.best_threshold(np.array([2.0, 2]), np.array([True, False])) == math.inf  # a tie: the highest
    rng = np.random.default_rng(12)
    scores, truth = rng.integers(0, 9, (30, 4)).astype(float), rng.random((30, 4)) < 0.5
    chosen = m.best_threshold(scores, truth)
    errors = {t: ((scores >= t) != truth).mean() for t in [*np.unique(scores), math.inf]}
    assert errors[chosen] == min(errors.values())
    assert chosen == max(t for t, error in errors.items() if error == min(errors.values()))


# ----------------------------------------------------------------------------------------- sentences


def test_align_f1_by_hand() -> None:
    reference = np.eye(2, dtype=np.float32)
    candidate = unit(np.array([[1, 0], [3, 4]], float))
    # candidate: best 1 and 0.8, mean 0.9; reference: best 1 and 0.8
    assert m.align_f1(candidate, reference) == pytest.approx(0.9)
    # one sentence left out: precision 1, recall (1 + 0) / 2
    assert m.align_f1(candidate[:1], reference) == pytest.approx(2 * 0.5 / 1.5)
    assert m.align_f1(-reference[:1], reference[:1]) == 0
    assert math.isnan(m.align_f1(candidate[:0], reference))


def test_directional_by_hand() -> None:
    reference = np.eye(3, dtype=np.float32)
    candidate = unit(np.array([[1, 0, 0], [0, 3, 4]], float))
    # support: best 1 and 0.8; coverage of the reference: 1, 0.6, 0.8
    both = np.array([False, True, True])
    assert m.directional(candidate, reference, both) == pytest.approx(0.7)
    assert m.directional(candidate, reference, np.array([True, False, False])) == pytest.approx(0.9)
    assert m.directional(candidate, reference, np.zeros(3, bool)) == pytest.approx(0.9)
    assert m.directional(candidate, reference, both, "min") == pytest.approx(0.6)
    assert math.isnan(m.directional(candidate, reference[:0], both[:0]))


def test_a_tie_is_half_a_win() -> None:
    won = m.win_rate(np.array([0.9, 0.5, 0.4, np.nan]), np.array([0.8, 0.5, 0.6, 0.1]))
    assert won[:3].tolist() == [1, 0.5, 0]
    assert math.isnan(won[3])


# --------------------------------------------------------------------------------------------- heads


def test_modularity_by_hand() -> None:
    response = np.array([[0.9, 0.1, 0.3], [0.2, 0.8, 0.2], [0.1, 0.3, 0.7]])
    assert m.modularity(response) == pytest.approx(0.8 / 0.2)
    response[0, 1] = np.nan  # off the diagonal: 0.3, 0.2, 0.2, 0.1, 0.3
    assert m.modularity(response) == pytest.approx(0.8 / 0.22)
    assert math.isnan(m.modularity(np.eye(3)))


def test_dci_of_perfect_useless_and_mixed_heads() -> None:
    assert m.dci(np.eye(4)) == pytest.approx((1, 1))
    assert m.dci(np.ones((4, 4))) == pytest.approx((0, 0), abs=1e-12)
    # both heads answer to attribute 1 alone: each head is pure, attribute 1 is spread, attribute 2 unseen
    assert m.dci(np.array([[1.0, 0], [1.0, 0]])) == pytest.approx((1, 0), abs=1e-12)
    # rows (3/4, 1/4) and (0, 1), weights 2/3 and 1/3
    entropy = scipy_stats.entropy([0.75, 0.25], base=2)
    found = m.dci(np.array([[3.0, 1], [0, 2]]))
    assert found[0] == pytest.approx(((1 - entropy) * 4 + 1 * 2) / 6)
    column = scipy_stats.entropy([1 / 3, 2 / 3], base=2)
    assert found[1] == pytest.approx((1 * 3 + (1 - column) * 3) / 6)
