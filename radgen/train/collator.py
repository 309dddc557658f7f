"""From a planned batch to what the trainer takes: this rank's texts in chunks of like length, positions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.utils.data import Dataset

from radgen.train.mixture import Batch, Mixture
from radgen.train.parts import Segment


class Steps(Dataset[Batch]):
    """The steps of a stage as a dataset of batches."""

    def __init__(self, mixture: Mixture) -> None:
        self.mixture = mixture

    def __len__(self) -> int:
        return len(self.mixture)

    def __getitem__(self, step: int) -> Batch:
        return self.mixture.batch(step)


class Collator:
    """Tokenises a batch's distinct texts, each once, sorted by length and cut into chunks.

    The n-th shortest text goes to rank n mod ranks, so that each rank has as much to do. Padding would waste
    41 to 48 % without the sorting.

    Args:
        model: SentenceTransformer.
        chunk_tokens: padded tokens of one forward pass (at least one text).
        rank, ranks: of this process.
    """

    def __init__(self, model: Any, chunk_tokens: int, rank: int = 0, ranks: int = 1) -> None:
        self.model = model
        self.chunk_tokens = chunk_tokens
        self.rank = rank
        self.ranks = ranks

    def __call__(self, items: Sequence[Batch]) -> dict[str, Any]:
        """Return ``chunkN_input_ids`` and so on, ``label`` with positions and segments, the tokens of all."""
        (batch,) = items
        tokens = min(batch.tokens, self.model.max_seq_length or batch.tokens)
        lengths = self.lengths(batch.texts, tokens)
        ordered = sorted(range(len(lengths)), key=lambda at: (lengths[at], at))
        each = -(-len(ordered) // self.ranks)
        order = torch.empty(len(ordered), dtype=torch.long)
        for place, at in enumerate(ordered):
            order[at] = place % self.ranks * each + place // self.ranks
        ordered += ordered[:1] * (each * self.ranks - len(ordered))  # every rank has as many texts
        inputs: dict[str, Any] = {}
        for number, chunk in enumerate(self._chunks(ordered[self.rank :: self.ranks], lengths)):
            features = self.model.preprocess([batch.texts[at] for at in chunk], max_length=tokens)
            inputs |= {f"chunk{number}_{key}": value for key, value in features.items()}
        inputs["label"] = {"order": order, "segments": [_labels(segment) for segment in batch.segments]}
        inputs["tokens"] = sum(lengths)
        return inputs

    def lengths(self, texts: Sequence[str], tokens: int) -> list[int]:
        """Return the tokens of each text, cut at ``tokens``."""
        found = self.model.tokenizer(list(texts), truncation=True, max_length=tokens)["input_ids"]
        return [len(ids) for ids in found]

    def _chunks(self, places: Sequence[int], lengths: Sequence[int]) -> Iterator[list[int]]:
        chunk: list[int] = []
        for place in places:
            longest = max([lengths[place], *(lengths[at] for at in chunk)])
            if chunk and longest * (len(chunk) + 1) > self.chunk_tokens:
                yield chunk
                chunk = []
            chunk.append(place)
        yield chunk


def _labels(segment: Segment) -> dict[str, Any]:
    labels: dict[str, Any] = {"dataset": segment.dataset, "rows": torch.from_numpy(segment.rows)}
    if segment.scores is not None:
        labels["score"] = torch.from_numpy(segment.scores).float()
    if segment.columns:
        labels["columns"] = dict(segment.columns)
    return labels
