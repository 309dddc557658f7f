"""What identifies a dataset: the hash of all that its rows depend on, and the constants in its manifest.

The generators write both into the manifest; ``radgen verify`` works both out again by the same functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import orjson

from radgen.ontology.load import Ontology

#: Keys of a manifest that are part of the fingerprint under their own names.
PARTS = ("family", "name", "seed", "ontology", "phrasings")


def fingerprint_of(manifest: Mapping[str, Any], rows: int) -> str:
    """Return the hash of recipe version, family, name, rows, seed, holdout, ontology and phrasings.

    Worker counts and places are left out: they change no byte of the rows.

    Args:
        manifest: a mapping with the keys of :data:`PARTS`, ``recipe_version`` and ``holdout`` (its ``kind``).
        rows: rows in the three splits together.
    """
    parts = {name: manifest.get(name) for name in PARTS}
    parts.update(
        rows=rows, recipe=manifest.get("recipe_version"), holdout=(manifest.get("holdout") or {}).get("kind")
    )
    return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def axes_of(ontology: Ontology, family: str, name: str) -> tuple[str, ...]:
    """Return the axes on which the rows of a dataset differ."""
    if family == "crossaxis":
        return tuple(ontology.axes.crossaxis.combinations[name])
    controlled = ontology.axes.controlled.get(name)
    return (controlled.axis if controlled else name.removesuffix("_pairs"),)


def constants(ontology: Ontology, family: str, name: str) -> dict[str, Any]:
    """Return the constants that targets and filters of a dataset depend on, as its manifest lists them."""
    axes = ontology.axes
    return {
        "axes": {
            axis: ontology.axis(axis).model_dump(exclude_none=True)
            for axis in axes_of(ontology, family, name)
        },
        "crossaxis": axes.crossaxis.model_dump(include={"sigma", "side_penalty"}),
        "min_target_gap": axes.min_target_gap,
        "max_word_jaccard": axes.max_word_jaccard,
        "splits": axes.splits,
    }
