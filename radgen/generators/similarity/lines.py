"""Rows of scored pairs and mined triplets as they stand in the files."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import orjson

from radgen.generators.similarity.corpus import Corpus, jaccard
from radgen.generators.similarity.folder import Spec, line_of
from radgen.generators.similarity.index import mixed
from radgen.generators.similarity.pairs import Mined
from radgen.generators.similarity.triplets import Triplets
from radgen.generators.splits import Split

PAIR_COLUMNS = (
    "sentence1",
    "sentence2",
    "score",
    "id",
    "family",
    "level",
    "state1",
    "state2",
    "agreement",
    "family_bonus",
    "organ_bonus",
    "jitter",
    "report1",
    "report2",
)
TRIPLET_COLUMNS = (
    "anchor",
    "positive",
    "negative",
    "id",
    "family",
    "level",
    "contrast",
    "positive_target",
    "negative_target",
    "anchor_state",
    "positive_state",
    "negative_state",
    "word_overlap",
    "anchor_report",
    "positive_report",
    "negative_report",
)
DESCRIPTIONS = {
    "sentence1": "a text of one report",
    "sentence2": "a text of another report",
    "score": "RadSim of the two, in [-1, 1]: agreement + family_bonus + organ_bonus + jitter, clipped",
    "family": "radsim or mined",
    "level": "sentence, findings, impression or report",
    "state1": "what the first text states: a list of canonical findings",
    "state2": "what the second text states",
    "agreement": "weighted agreement of the attributes",
    "family_bonus": "what related findings add",
    "organ_bonus": "what different findings of one organ system add",
    "jitter": "reproducible noise, a hash of both lists of findings",
    "report1": "id of the first report",
    "report2": "id of the second report",
    "anchor": "a text of a report",
    "positive": "a text of another report that agrees with it",
    "negative": "a text that shares labels, a family or words, and agrees less",
    "contrast": "what the negative was chosen to differ in, or hardest: the most alike that agrees less",
    "positive_target": "RadSim of positive and anchor",
    "negative_target": "RadSim of negative and anchor",
    "anchor_state": "what the anchor states: a list of canonical findings",
    "word_overlap": "word Jaccard of anchor and negative",
    "anchor_report": "id of its report",
    "positive_report": "id of its report",
    "negative_report": "id of its report",
}


def contrast_name(names: list[str], number: int) -> str:
    """Return what a negative was chosen for."""
    return names[number] if number >= 0 else "hardest"


def _dumped(corpus: Corpus) -> Callable[[int], bytes]:
    """Return what writes a text as JSON; each text once."""
    known: dict[int, bytes] = {}

    def dumped(number: int) -> bytes:
        if number not in known:
            known[number] = orjson.dumps(corpus.texts[number])
        return known[number]

    return dumped


def pair_rows(corpus: Corpus, split: Split, mined: Mined, spec: Spec) -> Iterator[tuple[Split, bytes]]:
    """Yield the pairs of a split as lines, in an order that does not follow the reports."""
    dumped = _dumped(corpus)
    scores = mined.scores
    order = np.argsort(mixed(mined.first * 0x9E37 + mined.second), kind="stable")
    columns = zip(
        *(
            values[order].tolist()
            for values in (
                mined.first,
                mined.second,
                scores.value,
                scores.agreement,
                scores.family,
                scores.organ,
                scores.jitter,
            )
        ),
        strict=True,
    )
    for i, j, value, agreement, family, organ, noise in columns:
        texts = {"sentence1": dumped(i), "sentence2": dumped(j), "score": orjson.dumps(value)}
        rest = {
            "family": spec.family,
            "level": spec.name,
            "state1": orjson.Fragment(corpus.states_json(i)),
            "state2": orjson.Fragment(corpus.states_json(j)),
            "agreement": agreement,
            "family_bonus": family,
            "organ_bonus": organ,
            "jitter": noise,
            "report1": corpus.reports[i],
            "report2": corpus.reports[j],
        }
        yield split, line_of(spec.name, texts, rest)


def triplet_rows(
    corpus: Corpus, split: Split, mined: Triplets, spec: Spec, contrasts: list[str]
) -> Iterator[tuple[Split, bytes]]:
    """Yield the triplets of a split as lines, in an order that does not follow the reports."""
    dumped = _dumped(corpus)
    order = np.argsort(mixed(mined.anchor * 0x9E37 + mined.negative), kind="stable")
    columns = zip(
        *(
            values[order].tolist()
            for values in (
                mined.anchor,
                mined.positive,
                mined.negative,
                mined.positive_score,
                mined.negative_score,
                mined.contrast,
            )
        ),
        strict=True,
    )
    for a, p, n, high, low, contrast in columns:
        texts = {"anchor": dumped(a), "positive": dumped(p), "negative": dumped(n)}
        rest = {
            "family": spec.family,
            "level": spec.name,
            "contrast": contrast_name(contrasts, contrast),
            "positive_target": high,
            "negative_target": low,
            "anchor_state": orjson.Fragment(corpus.states_json(a)),
            "positive_state": orjson.Fragment(corpus.states_json(p)),
            "negative_state": orjson.Fragment(corpus.states_json(n)),
            "word_overlap": jaccard(corpus.texts[a], corpus.texts[n]),
            "anchor_report": corpus.reports[a],
            "positive_report": corpus.reports[p],
            "negative_report": corpus.reports[n],
        }
        yield split, line_of(spec.name, texts, rest)
