"""Side-flip response with the other attribute held: how much of it is the side.

    python benchmarks/side_flips.py data/judging MODEL [MODEL ...]

The response is a contrast of groups: mean cosine of same-side pairs minus that of opposite-side pairs
(spec §10). Where opposite pairs also differ more in the other attribute, part of it is that attribute's.
Printed for each combination: the response as it is, and matched: the same difference among pairs whose
other attribute has the same two values (size: the same distance in log2, rounded), averaged with the
smaller group's size as weight.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Hashable
from pathlib import Path

from radgen.train import measures
from radgen.train.encoder import encode, load_encoder
from radgen.train.evaluate.judging_sets import Row, read


def other(row: Row) -> Hashable:
    """Return what the pair has of the attribute that is not the side."""
    name = str(row["combination"]).removesuffix("_laterality")
    a, b = row["state1"], row["state2"]
    if name == "size":
        return round(abs(math.log2(a["size_mm"] / b["size_mm"])))
    return tuple(sorted((str(a.get(name)), str(b.get(name)))))


def main() -> None:
    """Judge models."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("judging", type=Path, help="folder of radgen benchmark")
    parser.add_argument("models", nargs="+", help="folders, hub ids, or minilm")
    options = parser.parse_args()
    rows = [
        row
        for row in read(options.judging, "crossaxis_8", 0, 42).rows
        if row["combination"].endswith("_laterality")
    ]
    for model in options.models:
        encoder = load_encoder(model, max_tokens=128, device="cpu")
        for name in dict.fromkeys(row["combination"] for row in rows):
            own = [row for row in rows if row["combination"] == name]
            cosine = measures.cosines(*(encode(encoder, [r[f"sentence{i}"] for r in own]) for i in (1, 2)))
            relations = [row["side_relation"] for row in own]
            plain = measures.side_flip_response(cosine, relations)
            matched = measures.matched_side_flip_response(cosine, relations, [other(row) for row in own])
            print(f"{model} {name}: {plain:.2f}, matched {matched:.2f}", flush=True)


if __name__ == "__main__":
    main()
