"""Speed of ``radgen contrasts`` against a plain Jinja2 pipeline, side by side in one process.

    python benchmarks/contrasts.py [--rows 4000] [--repeats 5] [--axis severity]

The plain pipeline does for a row what anyone would write first: pick one of the precompiled templates for
each of three texts, render it from dictionaries of words, reject by word Jaccard and by the target gap,
hash the texts for the split and for doubles, and write one line of JSON with the states. It does *not* keep
splits disjoint over three texts, agree numbers, or check that a text states its state: radgen does all that.
Medians; the ratio is what counts, the absolute figures are this machine's.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import itertools
import json
import random
import statistics
import time

import jinja2
import orjson

from radgen.generators.contrasts import Contrasts, schedule
from radgen.generators.splits import SPLITS
from radgen.ontology import graded, load_ontology
from radgen.templates.realiser import Realiser

TEMPLATES = [
    "{{ lead }}there is {{ article }} {{ severity }} {{ side }} {{ noun }}.",
    "{{ lead }}{{ article }} {{ severity }} {{ noun }} is seen on the {{ side }}.",
    "{{ severity|capitalize }} {{ side }} {{ noun }}{{ change }}.",
    "The {{ side }} {{ noun }} is {{ severity }}{{ change }}.",
    "The study shows {{ article }} {{ side }} {{ noun }}, {{ severity }} in degree.",
    "{{ noun|capitalize }} on the {{ side }}, {{ severity }}{{ change }}.",
    "Note is made of {{ article }} {{ severity }} {{ side }}-sided {{ noun }}.",
    "{{ lead }}{{ severity }} {{ noun }} on the {{ side }} side{{ change }}.",
]
WORDS = {
    "trace": ["trace", "minimal", "tiny"],
    "mild": ["mild", "small", "slight"],
    "moderate": ["moderate", "moderate-sized"],
    "severe": ["large", "marked", "extensive", "massive"],
}
NOUNS = ["pleural effusion", "effusion", "pleural fluid collection", "consolidation", "pulmonary contusion"]
LEADS = ["", "", "on this study, ", "in addition, ", "of note, ", "on the frontal view, "]
CHANGES = ["", ", unchanged", ", increased since the prior study", ", new since the prior study"]
LEVELS = list(WORDS)
ENVIRONMENT = jinja2.Environment()
COMPILED = [ENVIRONMENT.from_string(text) for text in TEMPLATES]


def plain(rows: int, seed: int) -> int:
    """Write ``rows`` rows to memory with the plain pipeline; return how many."""
    rng = random.Random(seed)
    seen: set[str] = set()
    out: list[str] = []
    while len(out) < rows:
        side, change = rng.choice(["left", "right"]), rng.choice(CHANGES)
        a, p, n = rng.choice(range(4)), rng.choice(range(4)), rng.choice(range(4))
        targets = graded(abs(a - p), 1.5), graded(abs(a - n), 1.5)
        if targets[0] - targets[1] < 0.2:
            continue
        texts, states = [], []
        noun = rng.choice(NOUNS)
        for level in (a, p, n):
            words = {
                "severity": rng.choice(WORDS[LEVELS[level]]),
                "side": side,
                "noun": noun,
                "lead": rng.choice(LEADS),
                "change": change,
                "article": "a",
            }
            texts.append(rng.choice(COMPILED).render(words))
            states.append({"finding": noun, "severity": LEVELS[level], "laterality": side})
        sets = [set(text.lower().split()) for text in texts]
        near = len(sets[0] & sets[1]) / len(sets[0] | sets[1])
        far = len(sets[0] & sets[2]) / len(sets[0] | sets[2])
        key = hashlib.sha256("|".join(texts).encode()).hexdigest()
        if near >= 0.8 or len(set(texts)) < 3 or key in seen:
            continue
        seen.add(key)
        split = SPLITS[0] if int(key[:8], 16) / 2**32 < 0.9 else SPLITS[2]
        row = {
            "anchor": texts[0],
            "positive": texts[1],
            "negative": texts[2],
            "id": key[:16],
            "split": split,
            "positive_target": targets[0],
            "negative_target": targets[1],
            "lexical": far,
            "anchor_state": states[0],
            "positive_state": states[1],
            "negative_state": states[2],
        }
        out.append(json.dumps(row))
    return len(out)


def measure(axis: str, rows: int, repeats: int) -> dict[str, float]:
    """Return medians of CPU seconds per row for both, and their ratio."""
    ontology = load_ontology()
    recipe = Contrasts(ontology, Realiser(ontology), axis, 42)
    blocks = schedule(recipe)
    per_block = ontology.axes.rows_per_context
    gc.disable()  # as in a worker process
    for job in itertools.islice(blocks, 1000):  # plans and surface forms are found once a process
        recipe.block(job)
    ours, theirs = [], []
    for repeat in range(repeats):
        start = time.process_time()
        made = sum(len(recipe.block(job).rows) for job in itertools.islice(blocks, rows // per_block))
        ours.append((time.process_time() - start) / made)
        start = time.process_time()
        made = plain(rows, repeat)
        theirs.append((time.process_time() - start) / made)
    mine, plainly = statistics.median(ours), statistics.median(theirs)
    return {"radgen_us": mine * 1e6, "plain_us": plainly * 1e6, "ratio": plainly / mine}


def main() -> None:
    """Print the figures as one line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--axis", default="severity")
    given = parser.parse_args()
    print(orjson.dumps(measure(given.axis, given.rows, given.repeats)).decode())


if __name__ == "__main__":
    main()
