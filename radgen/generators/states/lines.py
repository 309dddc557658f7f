"""Rows of state sentences, pairs and triplets as they stand in the files (spec §9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson

from radgen.generators.similarity.folder import Spec, line_of
from radgen.generators.splits import SPLITS, Split
from radgen.generators.states.corpus import UNNAMED, StateCorpus
from radgen.generators.states.mine import Mined, generator

FAMILY = "states"
SENTENCE_COLUMNS = ("sentence", "id", "family", "finding", "presence", "state", "phrasing", "report")
PAIR_COLUMNS = (
    "sentence1",
    "sentence2",
    "score",
    "id",
    "family",
    "finding",
    "presence1",
    "presence2",
    "state1",
    "state2",
    "phrasing1",
    "phrasing2",
    "report1",
    "report2",
)
TRIPLET_COLUMNS = (
    "anchor",
    "positive",
    "negative",
    "id",
    "family",
    "finding",
    "presence",
    "positive_target",
    "negative_target",
    "anchor_state",
    "positive_state",
    "negative_state",
    "anchor_phrasing",
    "positive_phrasing",
    "negative_phrasing",
    "anchor_report",
    "positive_report",
    "negative_report",
)
#: What the columns of texts hold, in the names of the others (``state1``, ``anchor_state``).
_PAIR, _TRIPLET = ("1", "2"), ("anchor", "positive", "negative")
WITHIN, ACROSS, OTHER = 1.0, -1.0, 0.0
DESCRIPTIONS = {
    "sentence": "a sentence of a report",
    "sentence1": "a sentence of a report",
    "sentence2": "another sentence about the same finding",
    "score": "1: both state the same of the finding; -1: present and absent; 0: the second names no finding",
    "family": "states",
    "id": "the dataset's name and a hash of the row",
    "finding": "the finding that the row is about",
    "presence": "what is said of it: present, absent or (kept apart) indeterminate",
    "presence1": "what the first sentence says of it: present or absent",
    "presence2": "what the second sentence says of it; unnamed: it names none of the findings",
    "state": "all that the sentence states: a list of canonical findings",
    "state1": "all that the first sentence states: a list of canonical findings",
    "state2": "all that the second sentence states",
    "anchor": "a sentence about the finding",
    "positive": "a sentence that states the same of it in another phrasing",
    "negative": "a sentence that states the other state, in words like the anchor's",
    "positive_target": "1: the same state",
    "negative_target": "-1: the other state",
    "phrasing": "hash of the sentence without findings, places, sizes, adjectives; it decides the split",
    "report": "id of the first report with the sentence",
    **{f"phrasing{n}": "hash of its phrasing, which decides the split" for n in _PAIR},
    **{f"report{n}": "id of the first report with the sentence" for n in _PAIR},
    **{f"{name}_phrasing": "hash of its phrasing, which decides the split" for name in _TRIPLET},
    **{f"{name}_report": "id of the first report with the sentence" for name in _TRIPLET},
}


def sentence_rows(corpus: StateCorpus) -> Iterator[tuple[Split, bytes]]:
    """Yield a row for every sentence and finding that it speaks of, sentences in the order of the reports."""
    for split in SPLITS:
        for number, said in enumerate(corpus.said):
            if corpus.splits[number] != split:
                continue
            text = orjson.dumps(corpus.texts[number])
            for tag, presence in said:
                if presence == UNNAMED:
                    continue
                rest = {
                    "family": FAMILY,
                    "finding": tag,
                    "presence": presence,
                    "state": orjson.Fragment(corpus.states[number]),
                    "phrasing": corpus.phrasings[number],
                    "report": corpus.reports[number],
                }
                yield split, line_of("sentences", {"sentence": text}, rest)


def score_of(first: str, second: str) -> float:
    """Return the score of a pair by what its texts say of the finding."""
    if UNNAMED in (first, second):
        return OTHER
    return WITHIN if first == second else ACROSS


def mined_rows(
    corpus: StateCorpus, split: Split, mined: Mined, spec: Spec, seed: int
) -> Iterator[tuple[Split, bytes]]:
    """Yield the pairs or triplets of a split as lines, findings mixed."""
    if not len(mined):
        return
    columns = np.concatenate(mined.columns)
    order = generator("order", spec.name, split, seed).permutation(len(columns))
    pairs = spec.label is not None
    names = [f"sentence{n}" for n in _PAIR] if pairs else list(_TRIPLET)
    for row in order.tolist():
        numbers, states = columns[row].tolist(), mined.states[row]
        texts = {name: orjson.dumps(corpus.texts[n]) for name, n in zip(names, numbers, strict=True)}
        rest: dict[str, Any] = {"family": FAMILY, "finding": mined.findings[row]}
        if pairs:
            texts["score"] = orjson.dumps(score_of(*states))
            rest |= {"presence1": states[0], "presence2": states[1]}
        else:
            rest |= {"presence": states[0], "positive_target": WITHIN, "negative_target": ACROSS}
        for what, values in (
            ("state", corpus.states),
            ("phrasing", corpus.phrasings),
            ("report", corpus.reports),
        ):
            for place, number in zip(_PAIR if pairs else _TRIPLET, numbers, strict=True):
                value: Any = values[number]
                name = f"{what}{place}" if pairs else f"{place}_{what}"
                rest[name] = orjson.Fragment(value) if what == "state" else value
        yield split, line_of(spec.name, texts, rest)


__all__ = [
    "ACROSS",
    "DESCRIPTIONS",
    "FAMILY",
    "OTHER",
    "PAIR_COLUMNS",
    "SENTENCE_COLUMNS",
    "TRIPLET_COLUMNS",
    "WITHIN",
    "mined_rows",
    "score_of",
    "sentence_rows",
]
