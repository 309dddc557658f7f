"""What is measured during a stage: losses, contrast accuracy, cross-axis correlation, retrieval (spec §7).

Metrics are named ``group/what``: ``loss/DATASET``, ``normalised/DATASET`` (over the stage's start),
``contrast/AXIS``, ``crossaxis/spearman``, ``crossaxis/COMBINATION``, ``flip/COMBINATION``,
``retrieval/recall_at_1`` and others; ``GROUP/mean`` is the plain mean of a group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from radgen.errors import RadgenError
from radgen.train import measures
from radgen.train.encoder import encode
from radgen.train.losses import MixtureLoss
from radgen.train.parts import Part
from radgen.train.rows import Rows

_MEANS = ("loss", "normalised", "contrast", "flip")


@dataclass(frozen=True)
class Held:
    """Validation rows of one dataset: texts in columns, scores, side relation of cross-axis pairs, others."""

    name: str
    columns: list[list[str]]
    scores: list[float] | None
    relations: list[str | None]
    further: dict[str, list[Any]]


def held_rows(part: Part, path: Path, limit: int) -> Held | None:
    """Read up to ``limit`` validation rows, spread over the file; None where there is no such file."""
    if not path.is_file() or not path.stat().st_size:
        return None
    rows = Rows(path)
    numbers = np.unique(np.linspace(0, len(rows) - 1, min(limit, len(rows))).astype(int))
    found = [(int(number), rows[number]) for number in numbers]
    texts = [rows.texts(number, row, part.kind.texts) for number, row in found]
    scores = [rows.score(n, row, part.kind.score) for n, row in found] if part.kind.score else None
    relations = [row.get("side_relation") for _, row in found]
    further = {name: [row.get(name) for _, row in found] for name in part.kind.columns}
    return Held(part.name, [list(column) for column in zip(*texts, strict=True)], scores, relations, further)


class Validation:
    """Measures a model on validation rows and, where given, reports.

    Args:
        held: validation rows.
        sections: findings and impression of reports, for retrieval; empty for none.
        batch: texts a forward pass.
    """

    def __init__(self, held: Sequence[Held], sections: Sequence[tuple[str, str]], batch: int) -> None:
        self.held = list(held)
        self.sections = list(sections)
        self.batch = batch
        self.start: dict[str, float] = {}

    def __call__(
        self, model: Any, loss: MixtureLoss, show: Callable[[int], None] | None = None
    ) -> dict[str, float]:
        """Return the metrics; the first call of a stage sets what losses are normalised by.

        Raises:
            RadgenError: a vector is not finite.
        """
        texts = [text for held in self.held for column in held.columns for text in column]
        texts += [text for pair in self.sections for text in pair]
        vectors = encode(model, texts, self.batch, show)
        if not np.isfinite(vectors).all():
            raise RadgenError("validation: the model's vectors are not finite; a smaller --set lr= may help")
        metrics, at = {}, 0
        crossed: list[tuple[Any, list[float]]] = []
        for held in self.held:
            size = len(held.columns[0])
            columns = [vectors[at + size * i : at + size * (i + 1)] for i in range(len(held.columns))]
            at += size * len(held.columns)
            metrics[f"loss/{held.name}"] = _loss(loss.terms[held.name], columns, held)
            family, _, name = held.name.partition("/")
            if family == "contrasts" and len(columns) == 3:  # ranking_pairs has no negatives
                metrics[f"contrast/{name}"] = measures.ordering_accuracy(*columns)
            elif family == "crossaxis" and held.scores is not None:
                cosine = measures.cosines(*columns)
                crossed.append((cosine, held.scores))
                metrics[f"crossaxis/{name}"] = measures.spearman(cosine, np.array(held.scores))
                if any(held.relations):
                    metrics[f"flip/{name}"] = measures.side_flip_response(cosine, held.relations)
        if crossed:
            scores = np.concatenate([scores for _, scores in crossed])
            metrics["crossaxis/spearman"] = measures.spearman(np.concatenate([c for c, _ in crossed]), scores)
        if self.sections:
            metrics |= _retrieval(vectors[at:])
        return self._with_means(metrics)

    def _with_means(self, metrics: dict[str, float]) -> dict[str, float]:
        if not self.start:
            self.start = dict(metrics)
        for name in [name for name in metrics if name.startswith("loss/")]:
            before = self.start.get(name, math.nan)
            metrics[f"normalised/{name[5:]}"] = metrics[name] / before if before else math.nan
        for group in _MEANS:
            values = [value for name, value in metrics.items() if name.startswith(f"{group}/")]
            known = [value for value in values if not math.isnan(value)]
            if known:
                metrics[f"{group}/mean"] = sum(known) / len(known)
        return {name: value for name, value in metrics.items() if not math.isnan(value)}


def _loss(term: Any, columns: Sequence[Any], held: Held) -> float:
    device = next((parameter.device for parameter in term.parameters()), torch.device("cpu"))
    vectors = torch.from_numpy(np.concatenate(columns)).to(device)
    size = len(columns[0])
    rows = torch.arange(size)[:, None] + torch.arange(len(columns))[None] * size
    labels: dict[str, Any] = {"rows": rows.to(device), "columns": held.further}
    if held.scores is not None:
        labels["score"] = torch.tensor(held.scores, dtype=torch.float32, device=device)
    with torch.no_grad():
        return float(term(vectors, labels))


def _retrieval(vectors: Any) -> dict[str, float]:
    """Recall@1 and @10 of impressions from findings and the other way round (spec §10), and their mean."""
    findings, impressions = vectors[0::2], vectors[1::2]
    own = np.arange(len(findings))
    there, back = measures.ranks(findings, impressions, own), measures.ranks(impressions, findings, own)
    return {
        "retrieval/findings_to_impression_at_1": there.recall(1),
        "retrieval/findings_to_impression_at_10": there.recall(10),
        "retrieval/impression_to_findings_at_1": back.recall(1),
        "retrieval/impression_to_findings_at_10": back.recall(10),
        "retrieval/recall_at_1": (there.recall(1) + back.recall(1)) / 2,
    }


def read_sections(path: Path, limit: int) -> list[tuple[str, str]]:
    """Return findings and impression of up to ``limit`` reports that have both, each text once.

    Raises:
        RadgenError: the reports cannot be read, or fewer than two have both.
    """
    from radgen.extract.readers import Report, open_reports

    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    for report in open_reports(path):
        if len(found) >= limit:
            break
        if not isinstance(report, Report):
            continue
        findings, impression = ((report.data.get(name) or "").strip() for name in ("findings", "impression"))
        if findings and impression and not {findings, impression} & seen:
            seen |= {findings, impression}
            found.append((findings, impression))
    if len(found) < 2:
        raise RadgenError(f"{path}: retrieval needs two reports with both sections, found {len(found)}")
    return found
