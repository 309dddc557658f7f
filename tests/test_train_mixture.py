"""The mixture: probabilities, expected loss, what a batch holds, what is formed in a context."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import train_runs
from dataset_runs import dataset, rows_of

from radgen.errors import RadgenError
from radgen.ontology.distance import axis_target, joint_target
from radgen.ontology.load import load_ontology
from radgen.train import forming
from radgen.train.losses import KINDS, Given, Term
from radgen.train.mixture import Mixture
from radgen.train.parts import Part, part_of
from radgen.train.rows import Rows
from radgen.train.settings import DatasetSettings, StageSettings, load_stage


def settings(**changes: object) -> StageSettings:
    base = load_stage("2", "laptop").settings
    fixed = {
        "batch": 8,
        "datasets_per_step": 1,
        "grouping": base.grouping.model_copy(update={"rows_per_context": 2}),
        "steps": 100,
        "cap": None,
    }
    return base.model_copy(update={**fixed, **changes})


def written(tmp_path: Path, name: str, rows: int) -> Rows:
    """A file of triplets without contexts."""
    lines = [{"anchor": f"a{i}", "positive": f"p{i}", "negative": f"n{i}"} for i in range(rows)]
    return Rows(train_runs.write_rows(tmp_path / name / "train.jsonl", lines))  # type: ignore[arg-type]


def part(source: Rows, name: str, stage: StageSettings, **entry: Any) -> Part:
    return part_of(name, source, KINDS["triplet"], DatasetSettings(loss="triplet", **entry), stage)


def test_expected_loss_is_the_sum_of_p_w_l(tmp_path: Path) -> None:
    """Sizes 300, 1,000 capped at 600, 100: p = 0.3, 0.6, 0.1. Where vectors are equal a triplet costs m."""
    stage = settings(steps=1000)
    entries = {"x/a": (300, None, 3.0, 0.35), "x/b": (1000, 600, 0.5, 0.45), "x/c": (100, None, 2.0, 0.30)}
    parts = [
        part(written(tmp_path, name, rows), name, stage, cap=cap, weight=weight, margin=margin)
        for name, (rows, cap, weight, margin) in entries.items()
    ]
    mixture = Mixture(parts, stage)
    assert mixture.probabilities.tolist() == pytest.approx([0.3, 0.6, 0.1])
    assert [int((mixture.order == i).sum()) for i in range(3)] == [300, 600, 100]
    losses = {
        name: Term(KINDS["triplet"].build({"margin": margin}, Given(2, [], 0)), weight)
        for name, (_, _, weight, margin) in entries.items()
    }
    total = 0.0
    for step in range(len(mixture)):
        batch = mixture.batch(step)
        vectors = torch.tensor([[1.0, 0.0]]).expand(len(batch.texts), 2)
        (segment,) = batch.segments
        term = losses[segment.dataset]
        total += term.weight * float(term(vectors, {"rows": torch.from_numpy(segment.rows)}))
    expected = 0.3 * 3.0 * 0.35 + 0.6 * 0.5 * 0.45 + 0.1 * 2.0 * 0.30
    assert total / len(mixture) == pytest.approx(expected, abs=1e-6)


def test_short_stages_keep_the_mixture(tmp_path: Path) -> None:
    stage = settings(steps=7)
    mixture = Mixture([part(written(tmp_path, f"x/{n}", n), f"x/{n}", stage) for n in (20, 50, 30)], stage)
    counts = [int((mixture.order == i).sum()) for i in range(3)]
    assert sum(counts) == 7
    for count, p in zip(counts, (0.2, 0.5, 0.3), strict=True):
        assert count in (math.floor(7 * p), math.ceil(7 * p))


def test_several_datasets_a_step_differ_and_keep_their_shares(tmp_path: Path) -> None:
    """Four of five datasets a step, sizes 10 to 50, the last with a third of its share: 1, 2, 3, 4, 5/3."""
    stage = settings(steps=300, datasets_per_step=4, batch=8)
    shares = {10: 1.0, 20: 1.0, 30: 1.0, 40: 1.0, 50: 1 / 3}
    parts = [part(written(tmp_path, f"x/{n}", n), f"x/{n}", stage, share=s) for n, s in shares.items()]
    mixture = Mixture(parts, stage)
    total = 1 + 2 + 3 + 4 + 5 / 3
    for number, size in enumerate((1, 2, 3, 4, 5 / 3)):
        assert mixture.probabilities[number] == pytest.approx(size / total)
        assert int((mixture.order == number).sum()) == pytest.approx(1200 * size / total, abs=1.01)
    for step in range(len(mixture)):
        names = [segment.dataset for segment in mixture.batch(step).segments]
        # at most 4 · 0.343 = 1.37 of the largest a step, one of the others at most but for its rounding
        assert all(names.count(name) <= 2 for name in names)
        assert sum(len(segment.rows) for segment in mixture.batch(step).segments) == 8


def test_a_dataset_may_have_its_own_number_of_rows(tmp_path: Path) -> None:
    """Eight rows over two datasets are four each; the second takes seven."""
    stage = settings(steps=7, datasets_per_step=2, batch=8)
    one = part(written(tmp_path, "x/a", 50), "x/a", stage)
    two = part(written(tmp_path, "x/b", 50), "x/b", stage, rows=7)
    mixture = Mixture([one, two], stage)
    for step in range(7):
        counts = {segment.dataset: len(segment.rows) for segment in mixture.batch(step).segments}
        assert counts == {"x/a": 4, "x/b": 7}


def test_one_pass_over_the_capped_rows_where_no_steps_are_given(tmp_path: Path) -> None:
    stage = settings(steps=None)
    parts = [part(written(tmp_path, f"x/{n}", n), f"x/{n}", stage, cap=60) for n in (40, 100)]
    mixture = Mixture(parts, stage)
    assert len(mixture) == 12  # 40 + 60 rows in batches of 8


def test_every_row_once_a_pass(tmp_path: Path) -> None:
    stage = settings(batch=8)
    one = part(written(tmp_path, "x/a", 40), "x/a", stage)
    seen = [int(row) for turn in range(5) for row in one.take(turn, 8)]
    assert sorted(seen) == list(range(40))
    again = [int(row) for turn in range(5, 10) for row in one.take(turn, 8)]
    assert sorted(again) == list(range(40))
    assert again != seen


def test_batches_depend_on_seed_and_step_alone(tmp_path: Path) -> None:
    def made(seed: int) -> Mixture:
        stage = settings(seed=seed)
        return Mixture([part(written(tmp_path, f"x/{n}", n), f"x/{n}", stage) for n in (40, 70)], stage)

    one, two = made(1), made(1)
    backwards = [two.batch(step).texts for step in reversed(range(50))][::-1]
    assert [one.batch(step).texts for step in range(50)] == backwards
    assert [made(2).batch(step).texts for step in range(50)] != backwards


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("data")
    for family, name, rows in (
        ("contrasts", "size", 400),
        ("contrasts", "location", 400),
        ("contrasts", "laterality_controlled", 300),
        ("contrasts", "certainty", 300),
        ("crossaxis", "severity_laterality", 400),
        ("crossaxis", "size_location", 400),
    ):
        dataset(out, family, name, rows)
    return out


def states_of(folder: Path) -> dict[str, tuple[str, dict[str, object]]]:
    """Context and state of every training text."""
    found = {}
    columns = [("anchor", "anchor_state"), ("positive", "positive_state"), ("negative", "negative_state")]
    columns += [("sentence1", "state1"), ("sentence2", "state2")]
    for row in rows_of(folder, "train"):
        for text, state in columns:
            if text in row:
                found[row[text]] = (row["context"], row[state])
    return found


@pytest.mark.parametrize("name", ["size", "location", "laterality_controlled", "certainty"])
def test_formed_triplets_are_all_the_valid_ones(data: Path, name: str) -> None:
    """Against the ontology's own targets, which forming does not read: none too many, hardly one missing."""
    stage = settings(batch=24)
    one = part_of(f"contrasts/{name}", Rows(data / "contrasts" / name / "train.jsonl"), KINDS["triplet"],
                  DatasetSettings(loss="triplet"), stage)  # fmt: skip
    mixture = Mixture([one], stage)
    ontology = load_ontology()
    axis = ontology.axis(name.removesuffix("_controlled"))
    state = states_of(data / "contrasts" / name)
    found = expected = 0
    for step in range(6):
        batch = mixture.batch(step)
        (segment,) = batch.segments
        formed = {tuple(row) for row in segment.rows.tolist()}
        valid = set()
        for a, p, n in itertools.permutations(range(len(batch.texts)), 3):
            (ca, sa), (cp, sp), (cn, sn) = (state[batch.texts[i]] for i in (a, p, n))
            if ca == cp == cn:
                near, far = (axis_target(axis, ontology.anatomy, sa, other) for other in (sp, sn))
                if near - far >= 0.20 - 1e-9:
                    valid.add((a, p, n))
        assert formed <= valid
        found, expected = found + len(formed), expected + len(valid)
    assert found > 0.9 * expected  # a few hundred rows do not tell every pair of states
    assert found > 3 * 6 * 24  # far more than the rows as written


@pytest.mark.parametrize("name", ["severity_laterality", "size_location"])
def test_formed_pairs_have_the_joint_target(data: Path, name: str) -> None:
    stage = settings(batch=24)
    one = part_of(f"crossaxis/{name}", Rows(data / "crossaxis" / name / "train.jsonl"), KINDS["cosent"],
                  DatasetSettings(loss="cosent"), stage)  # fmt: skip
    mixture = Mixture([one], stage)
    ontology = load_ontology()
    axes = tuple(ontology.axes.crossaxis.combinations[name])
    state = states_of(data / "crossaxis" / name)
    count = 0
    for step in range(6):
        batch = mixture.batch(step)
        (segment,) = batch.segments
        assert segment.scores is not None
        for (i, j), score in zip(segment.rows, segment.scores, strict=True):
            (ci, si), (cj, sj) = state[batch.texts[i]], state[batch.texts[j]]
            assert ci == cj
            expected = joint_target(ontology.axes, ontology.anatomy, axes, si, sj)
            assert score == pytest.approx(expected, abs=1e-9)
            count += 1
    assert count > 2 * 6 * 24


def test_rows_that_contradict_each_other_leave_no_target() -> None:
    targets = forming.Targets()
    a, b, c = (targets.number({"finding": "nodule", "size_mm": size}) for size in (4, 8, 16))
    targets.learn(a, b, 0.6)
    targets.learn(b, c, 0.1)
    targets.learn(c, b, 0.2)
    table = targets.table(np.array([a, b, c]))
    assert table[0, 1] == table[1, 0] == 0.6
    assert np.isnan(table[1, 2])
    assert np.isnan(table[0, 2])


def test_triplets_and_pairs_of_a_small_table() -> None:
    """Texts 0 and 1 state the same, 2 is a step from 0, unknown from 1: one triplet, two pairs."""
    table = np.array([[1.0, 1.0, 0.6], [1.0, 1.0, np.nan], [0.6, np.nan, 1.0]])
    assert forming.triplets(table, 0.2).tolist() == [[0, 1, 2]]
    found, scores = forming.pairs(table)
    assert found.tolist() == [[0, 1], [0, 2]]
    assert scores.tolist() == [1.0, 0.6]


def test_rows_as_written_where_nothing_is_formed(data: Path) -> None:
    stage = settings(batch=8)
    alone = stage.grouping.model_copy(update={"form": False, "rows_per_context": 1})
    stage = stage.model_copy(update={"grouping": alone})
    path = data / "contrasts" / "size" / "train.jsonl"
    one = part_of("contrasts/size", Rows(path), KINDS["triplet"], DatasetSettings(loss="triplet"), stage)
    batch = Mixture([one], stage).batch(0)
    folder = data / "contrasts" / "size"
    rows = {(row["anchor"], row["positive"], row["negative"]) for row in rows_of(folder, "train")}
    (segment,) = batch.segments
    assert len(segment.rows) == 8
    assert {tuple(batch.texts[i] for i in row) for row in segment.rows} <= rows
    assert len(set(batch.texts)) == len(batch.texts)


def test_a_cap_takes_whole_contexts(data: Path) -> None:
    stage = settings()
    path = data / "contrasts" / "size" / "train.jsonl"
    entry = DatasetSettings(loss="triplet", cap=150)
    one = part_of("contrasts/size", Rows(path), KINDS["triplet"], entry, stage)
    assert one.size == 150
    contexts = [one.rows[int(number)]["context"] for number in one.used]
    sizes = [len(list(group)) for _, group in itertools.groupby(contexts)]
    everywhere = [row["context"] for row in rows_of(data / "contrasts" / "size", "train")]
    found = zip(dict.fromkeys(contexts), sizes, strict=True)
    cut = [name for name, size in found if size != everywhere.count(name)]
    assert len(sizes) == len(set(contexts))
    assert len(cut) <= 1


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"anchor": "a", "positive": "p"}, r"train.jsonl:1: column 'negative': expected text, found nothing"),
        ({"anchor": "a", "positive": " ", "negative": "n"}, r"'positive': expected text, found an empty"),
        ({"anchor": 3, "positive": "p", "negative": "n"}, r"column 'anchor': expected text, found int"),
    ],
)
def test_rows_that_are_none(tmp_path: Path, row: dict[str, object], expected: str) -> None:
    path = train_runs.write_rows(tmp_path / "train.jsonl", [row])
    with pytest.raises(RadgenError, match=expected):
        part(Rows(path), "x/a", settings())


def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(RadgenError, match="no such file"):
        Rows(tmp_path / "nowhere.jsonl")
    empty = tmp_path / "train.jsonl"
    empty.touch()
    with pytest.raises(RadgenError, match=r"train.jsonl: has no rows"):
        Rows(empty)
    empty.write_text('{"anchor": "a"}\n{broken')
    with pytest.raises(RadgenError, match=r"train.jsonl:2: not JSON"):
        Rows(empty)[1]
