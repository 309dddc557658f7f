"""Blocks of rows: the same whatever was made before, every filter kept, masks equal to words (spec §2)."""

from __future__ import annotations

import itertools
import random
from functools import cache

import orjson
import pytest

from radgen.generators.blocks import Pool, overlap
from radgen.generators.contrasts import Contrasts, Job, schedule
from radgen.generators.recipes import recipe
from radgen.generators.splits import Splitter
from radgen.ontology import load_ontology
from radgen.templates.realiser import Realiser, jaccard

AXES = ["severity", "size", "count", "location", "laterality_controlled", "temporal_change"]
BLOCKS = 12


@cache
def contrasts(axis: str) -> Contrasts:
    ontology = load_ontology()
    return recipe(ontology, Realiser(ontology), "contrasts", axis, 7)


@cache
def jobs(axis: str) -> list[Job]:
    return list(itertools.islice(schedule(contrasts(axis)), BLOCKS))


@cache
def rows(axis: str) -> list[tuple[str, dict]]:
    made = [row for job in jobs(axis) for row in contrasts(axis).block(job).rows]
    return [(row.split, orjson.loads(row.line)) for row in made]


@pytest.mark.parametrize("axis", AXES)
def test_a_block_is_the_same_whatever_was_made_before(axis: str) -> None:
    rows(axis)  # caches are warm
    ontology = load_ontology()
    fresh = recipe(ontology, Realiser(ontology), "contrasts", axis, 7)
    for job in reversed(jobs(axis)[:4]):
        assert fresh.block(job).rows == contrasts(axis).block(job).rows


@pytest.mark.parametrize("axis", AXES)
def test_the_jaccard_of_masks_is_that_of_texts(axis: str) -> None:
    made = contrasts(axis)
    rng = random.Random(3)
    for job in jobs(axis):
        state = {"finding": job.finding, "presence": "present", **dict(job.context)}
        state.pop("dims", None)
        modality = made.ontology.findings[job.finding].modalities[0]
        if not made.realiser.can_say(state, modality):
            continue
        speaker = made.realiser.speaker(state, modality)
        said = [speaker.say(rng) for _ in range(12)]
        for a, b in itertools.combinations(said, 2):
            assert overlap(a.mask, b.mask) == jaccard(a.text, b.text)


@pytest.mark.parametrize("axis", AXES)
def test_the_texts_of_a_block_carry_the_masks_of_their_words(axis: str) -> None:
    made = contrasts(axis)
    for _, row in rows(axis)[:: 2 * made.ontology.axes.rows_per_context]:
        states = [row["anchor_state"], row["negative_state"]]
        entry = made.ontology.findings[states[0]["finding"]]
        pool = Pool(made.realiser, made.splitter, entry.modalities[0], random.Random(5))
        if not all(pool.add(index, state) for index, state in enumerate(states)):
            continue
        texts = [text for index in range(16) if (text := pool.take(index % 2, "train"))]
        assert len(texts) == 16
        for a, b in itertools.combinations(texts, 2):
            assert overlap(a[1], b[1]) == jaccard(a[0], b[0])


@pytest.mark.parametrize("axis", AXES)
def test_rows_keep_every_filter(axis: str) -> None:
    axes = load_ontology().axes
    splitter = Splitter(axes.splits)
    varying = set(contrasts(axis).varying)
    found = rows(axis)
    assert found
    seen, used = set(), {"train": [], "validation": [], "test": []}
    for split, row in found:
        texts = row["anchor"], row["positive"], row["negative"]
        assert [splitter.of(text) for text in texts] == [split] * 3
        assert len({text.lower() for text in texts}) == 3
        assert jaccard(texts[0], texts[1]) < axes.max_word_jaccard
        assert row["positive_target"] - row["negative_target"] >= axes.min_target_gap - 1e-12
        fixed = [
            {name: value for name, value in row[f"{name}_state"].items() if name not in varying}
            for name in ("anchor", "positive", "negative")
        ]
        assert fixed[0] == fixed[1] == fixed[2]
        assert row["anchor_state"] != row["negative_state"]
        seen.add(texts)
        used[split] += texts
    assert len(seen) == len(found)
    assert len({row["id"] for _, row in found}) == len(found)
    distinct = {split: len(set(texts)) / len(texts) for split, texts in used.items()}
    assert sum(len(set(texts)) for texts in used.values()) >= 0.85 * 3 * len(found), distinct


@pytest.mark.parametrize("axis", AXES)
def test_words_alone_do_not_tell_the_negative(axis: str) -> None:
    found = [row for _, row in rows(axis)]
    traps = sum(
        jaccard(row["anchor"], row["negative"]) > jaccard(row["anchor"], row["positive"]) for row in found
    )
    assert traps >= 0.25 * len(found)


@pytest.mark.parametrize("axis", ["severity"])
def test_pairs_of_levels_are_drawn_evenly(axis: str) -> None:
    made, counts = contrasts(axis), {}
    picker = next(iter(made.pickers.values())) if made.pickers else None
    if picker is None:
        made.block(jobs(axis)[0])
        picker = next(iter(made.pickers.values()))
    rng = random.Random(11)
    draws = 6000
    for _ in range(draws):
        a, p, n = picker.pick(rng)
        assert picker.targets[a][p] > picker.targets[a][n]
        counts[a, n] = counts.get((a, n), 0) + 1
    expected = draws / len(counts)
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())
