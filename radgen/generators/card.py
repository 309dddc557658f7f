"""Dataset cards: the README.md of a dataset folder, which ``datasets.load_dataset(folder)`` understands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from radgen.ontology.finding import Finding

_TEXT = {"dtype": "string"}
_NUMBER = {"dtype": "float64"}
_LISTS = {"size_dims_mm": "float64", "size_range_mm": "float64", "morphology": "string"}
#: Keys of a conclusion in a row, before the list of its evidence.
CONCLUSIONS = (
    "level", "about", "assertion", "certainty", "severity", "acuity", "temporal", "mechanism", "significance",
    "side",
)  # fmt: skip
_FLOATS = {"size_mm", "prior_size_mm", "distance_mm"}


def _column(name: str, kind: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, **kind}


def state_features() -> list[dict[str, Any]]:
    """Return the columns of a state as `datasets` features: each field of §1, so that all rows load alike."""
    out = []
    for name in Finding.model_fields:
        if name == "evidence":
            continue
        if name in _LISTS:
            out.append({"name": name, "list": _LISTS[name]})
        elif name in _FLOATS:
            out.append(_column(name, _NUMBER))
        else:
            out.append(_column(name, {"dtype": "int64"} if name == "count" else _TEXT))
    return out


def features(
    columns: Sequence[str], struct: Mapping[str, Sequence[str]], kinds: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the `datasets` features of a dataset's columns.

    Args:
        columns: the columns in order.
        struct: for columns that are objects of numbers, their keys.
        kinds: for columns that their name does not tell: "states" (a list of states), "texts", "numbers",
            "number", "truth"; "conclusions" (a list of RadThought's).
    """
    out: list[dict[str, Any]] = []
    for name in columns:
        kind = (kinds or {}).get(name)
        if kind == "states":
            out.append({"name": name, "list": state_features()})
        elif kind == "conclusions":
            told = [*(_column(key, _TEXT) for key in CONCLUSIONS), {"name": "evidence", "list": "string"}]
            out.append({"name": name, "list": told})
        elif kind in ("texts", "numbers"):
            out.append({"name": name, "list": "string" if kind == "texts" else "float64"})
        elif kind is not None:
            out.append(_column(name, {"number": _NUMBER, "truth": {"dtype": "bool"}}[kind]))
        elif name in ("state1", "state2") or name.endswith("_state"):
            out.append({"name": name, "struct": state_features()})
        elif name in struct:
            out.append({"name": name, "struct": [_column(key, _NUMBER) for key in struct[name]]})
        elif name == "phrasings":
            out.append({"name": name, "list": "string"})
        elif name == "score" or name.endswith(("_target", "_penalty")) or name in ("distance", "sigma"):
            out.append(_column(name, _NUMBER))
        else:
            out.append(_column(name, _TEXT))
    return out


def card(
    *,
    title: str,
    about: str,
    columns: Sequence[str],
    texts: Sequence[str],
    label: str | None,
    rows: Mapping[str, int],
    manifest: Mapping[str, Any],
    struct: Mapping[str, Sequence[str]],
    examples: Sequence[Mapping[str, Any]],
    kinds: Mapping[str, str] | None = None,
    origin: str = "All sentences are synthetic: no patient's words are in them.",
    descriptions: Mapping[str, str] | None = None,
) -> str:
    """Return the card of one dataset: what it is, how to load it and train on it, and three rows."""
    configs = [
        {
            "config_name": "default",
            "data_files": [{"split": split, "path": f"{split}.jsonl"} for split in rows],
        }
    ]
    head = yaml.safe_dump(
        {
            "language": ["en"],
            "tags": ["radiology", "sentence-similarity", "synthetic", "sentence-transformers"],
            "configs": configs,
            "dataset_info": {"features": features(columns, struct, kinds)},
        },
        sort_keys=False,
        allow_unicode=True,
    )
    known = {**DESCRIPTIONS, **(descriptions or {})}
    picked = [*texts, label] if label else list(texts)
    triplets = "TripletLoss(model, TripletDistanceMetric.COSINE, 0.35)"
    loss = "CoSENTLoss(model, scale=20.0)" if label else triplets
    lines = [
        "---",
        head.rstrip(),
        "---",
        "",
        f"# {title}",
        "",
        about,
        "",
        f"Made by radgen {manifest['version']} with `{manifest['command']}`. {origin} What each row's"
        " target says, its texts say; check with `radgen verify` on this folder.",
        "",
        "| split | rows |",
        "|---|---|",
        *[f"| {split} | {count} |" for split, count in rows.items()],
        "",
        "## Load and train",
        "",
        "sentence-transformers tokenises every column that is no label as text, so the columns are selected:",
        "",
        "```python",
        "from datasets import load_dataset",
        "from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer",
        "from sentence_transformers.sentence_transformer.losses import "
        + ("CoSENTLoss" if label else "TripletDistanceMetric, TripletLoss"),
        "",
        'model = SentenceTransformer("path/to/an/encoder")',
        f'data = load_dataset("path/to/this/folder")["train"].select_columns({picked!r})'.replace("'", '"'),
        f"SentenceTransformerTrainer(model, train_dataset=data, loss={loss}).train()",
        "```",
        "",
        "## Columns",
        "",
        *[f"- `{name}`: {known.get(name, 'see the manifest')}" for name in columns],
        "",
        "## Three rows",
        "",
        "| " + " | ".join(picked if label else [*texts, "positive_target", "negative_target"]) + " |",
        "|" + "---|" * len(picked if label else [*texts, "", ""]),
    ]
    for row in examples:
        shown = picked if label else [*texts, "positive_target", "negative_target"]
        cells = [f"{row[name]:.3f}" if isinstance(row[name], float) else str(row[name]) for name in shown]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


DESCRIPTIONS = {
    "anchor": "a sentence",
    "positive": "a sentence that says the same, or something nearer to the anchor than the negative",
    "negative": "a sentence that differs on the axis and on nothing else",
    "sentence1": "a sentence",
    "sentence2": "a sentence that differs from the first in nothing but what the score speaks of",
    "score": "the graded target of the pair, in [-1, 1]",
    "id": "the dataset's name and a hash of the row",
    "axis": "the axis on which the texts differ",
    "combination": "the two axes on which the texts differ",
    "positive_target": "graded target of the positive against the anchor, in [-1, 1]",
    "negative_target": "graded target of the negative against the anchor, in [-1, 1]",
    "anchor_state": "what the anchor states: a canonical finding, stated fields only",
    "positive_state": "what the positive states",
    "negative_state": "what the negative states",
    "state1": "what the first sentence states: a canonical finding, stated fields only",
    "state2": "what the second sentence states",
    "distance": "distance of the two states on the axis",
    "sigma": "width of the target's bell curve on the axis",
    "distances": "distance of the two states on each graded axis",
    "sigmas": "width of the bell curve on each graded axis",
    "side_relation": "same, bilateral (against one side) or opposite; empty where the side is no axis",
    "side_penalty": "what the relation of sides takes from the score",
    "context": "hash of the state without what varies: rows of one context can be recombined",
    "phrasings": "names of the sentence frames used, in the order of the texts",
    "kind": "match (the positive has the anchor's value) or ordinal (it is nearer than the negative)",
}
