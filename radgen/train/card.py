"""The model card of a trained stage: mixture, data hashes, metrics, command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

_HEAD = """---
library_name: sentence-transformers
pipeline_tag: sentence-similarity
tags: [radiology, sentence-similarity, sentence-transformers]
---
"""


def write_card(
    path: Path,
    run: Path,
    rows: Sequence[Mapping[str, Any]],
    evaluations: Sequence[Mapping[str, Any]],
    step: int,
    curves: Sequence[str],
) -> None:
    """Write the card.

    Args:
        run: ``run.json`` of the stage.
        rows: the mixture, one entry a dataset.
        evaluations: all of them; the first is the stage's start.
        step: the chosen one.
        curves: names of pictures beside the card.
    """
    about = orjson.loads(run.read_bytes())
    settings = about["settings"]
    chosen = next(one for one in evaluations if one["step"] == step)
    cut = ", then ".join(str(one["tokens"]) for one in settings["lengths"])
    lines = [
        _HEAD,
        f"# radgen {about['stage']}",
        "",
        f"A text encoder for radiology, trained with radgen {about['version']} from `{about['start']}`: step "
        f"{step:,} of {evaluations[-1]['step']:,}, chosen by the stage's rule. No prompt; unit vectors.",
        "",
        "```python",
        "from sentence_transformers import SentenceTransformer",
        'model = SentenceTransformer("path/to/this/folder")',
        'vectors = model.encode(["A 4 mm nodule in the left upper lobe."])',
        "```",
        "",
        f"Command: `{about['command']}`",
        "",
        f"{settings['batch']} rows a step, of {settings['datasets_per_step']} dataset(s); AdamW, rate "
        f"{settings['lr']:g}, cosine with "
        f"{settings['warmup']:.0%} warm-up, weight decay {settings['weight_decay']:g}, "
        f"seed {settings['seed']}; "
        f"{_merged(settings['merge'])}texts cut after {cut} tokens; "
        f"{settings['compute']['precision']}. All settings and file hashes: `run.json` beside this folder.",
        "",
        "## Mixture",
        "",
        "Loss: Σ p·w·L. `formed`: all valid rows among the texts of a context, beyond those written.",
        "",
        "| dataset | loss | rows | used | p | w | margin | steps | rows formed | sha256 of train.jsonl |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        margin = "" if row["margin"] is None else f"{row['margin']:g}"
        digest = about["data"].get(row["dataset"], {}).get("train.jsonl", "")[:16]
        lines.append(
            f"| {row['dataset']} | {row['loss']} | {row['rows']:,} | {row['used']:,} "
            f"| {row['probability']:.4f} | {row['weight']:g} | {margin} | {row['steps']:,} "
            f"| {'yes' if row['formed'] else ''} | `{digest}` |"
        )
    lines += ["", "## Validation", "", "On rows that training has not seen.", ""]
    lines += ["| metric | start | chosen |", "|---|---|---|"]
    start = evaluations[0]["metrics"]
    for name, value in chosen["metrics"].items():
        if not name.startswith("normalised/") or name == "normalised/mean":
            before = f"{start[name]:.4f}" if name in start else ""
            lines.append(f"| {name} | {before} | {value:.4f} |")
    lines += ["", *(f"![{name}]({name})" for name in curves), ""]
    path.write_text("\n".join(lines), encoding="utf-8")


def _merged(share: float) -> str:
    return f"weights {1 - share:.0%} trained, {share:.0%} of its start; " if share else ""
