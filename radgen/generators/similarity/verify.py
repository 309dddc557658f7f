"""``radgen verify`` for what is made from reports: everything is recomputed from the rows (spec §9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from radgen.generators.blocks import row_id
from radgen.generators.radsim.coded import Scorer
from radgen.generators.radsim.coding import Coder
from radgen.generators.similarity.corpus import jaccard
from radgen.generators.similarity.folder import bin_of
from radgen.generators.splits import SPLITS, Splitter, text_hash
from radgen.ontology.load import Ontology
from radgen.ontology.radsim import Policy, load_policy

Found = tuple[str, int | None, str]
Check = Callable[[list[tuple[int, dict[str, Any]]], Mapping[str, Any], Policy], Iterator[tuple[int, str]]]
_BATCH = 2000
_CLOSE = 1e-6


class Disjoint:
    """Which split each string and each report was seen in."""

    def __init__(self, splitter: Splitter) -> None:
        self.splitter = splitter
        self.strings: dict[int, str] = {}
        self.reports: dict[str, str] = {}

    def row(self, split: str, texts: list[str], reports: list[str]) -> Iterator[str]:
        """Yield what is in two splits."""
        for text in texts:
            if self.strings.setdefault(text_hash(text), split) != split:
                yield "a string of it is in another split too"
        for report in reports:
            if self.splitter.of(report) != split:
                yield f"report '{report}' belongs to another split"


def verify_reports(
    folder: Path,
    manifest: Mapping[str, Any],
    ontology: Ontology,
    verdict: Any = None,
    check: Check | None = None,
) -> Iterator[Found]:
    """Yield (file, row, reason) for everything in a folder that is not as it says.

    Args:
        check: yields (row, reason) for what is wrong in some rows; by family if absent.
    """
    check = check or _check
    policy = load_policy(ontology)
    disjoint = Disjoint(Splitter(ontology.axes.splits))
    columns = tuple(manifest.get("columns", ()))
    texts = tuple(
        name for name in ("anchor", "positive", "negative", "sentence1", "sentence2") if name in columns
    )
    targets: Counter[str] = Counter()
    ids: set[str] = set()
    label = "score" if "score" in columns else "negative_target"
    every = 0
    for split in SPLITS:
        path = folder / f"{split}.jsonl"
        stored = manifest.get("files", {}).get(path.name, {})
        digest, size, rows = sha256(), 0, 0
        batch: list[tuple[int, dict[str, Any]]] = []
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    digest.update(line)
                    size += len(line)
                    rows += 1
                    try:
                        row = orjson.loads(line)
                    except orjson.JSONDecodeError:
                        yield str(path), number, "not JSON"
                        continue
                    if not isinstance(row, dict) or tuple(row) != columns:
                        yield str(path), number, "its columns are not those of the manifest"
                        continue
                    if row["id"] in ids:
                        yield str(path), number, "its id stands twice"
                    ids.add(row["id"])
                    if not _id_holds(line.rstrip(b"\n"), row["id"]):
                        yield str(path), number, "its id is no hash of the row"
                    reports = [
                        value
                        for name, value in row.items()
                        if name.startswith("report") or name.endswith("_report")
                    ]
                    for reason in disjoint.row(
                        split, [row[name] for name in texts], [r for r in reports if r]
                    ):
                        yield str(path), number, reason
                    targets[bin_of(row[label])] += 1
                    batch.append((number, row))
                    if len(batch) == _BATCH:
                        yield from ((str(path), at, why) for at, why in check(batch, manifest, policy))
                        batch = []
        except OSError as error:
            yield str(path), None, f"cannot be read: {error.strerror}"
            continue
        yield from ((str(path), at, why) for at, why in check(batch, manifest, policy))
        every += rows
        if verdict is not None:
            verdict.rows[split] = rows
        for name, value in (("rows", rows), ("bytes", size), ("sha256", digest.hexdigest())):
            if stored.get(name) != value:
                yield str(path), None, f"{name}: the manifest says {stored.get(name)}, the file has {value}"
    if verdict is not None:
        verdict.texts, verdict.distinct = every * len(texts), len(disjoint.strings)
    if dict(manifest.get("targets", {})) != dict(targets):
        yield str(folder / "manifest.json"), None, "targets: the counts are not those of the rows"


def _id_holds(line: bytes, stored: str) -> bool:
    """Whether an id is the hash of the rest of its line (see ``folder.line_of``)."""
    mark = b',"id":%b,' % orjson.dumps(stored)
    head, found, tail = line.partition(mark)
    name = stored.rpartition("-")[0]
    return bool(found) and row_id(name, head[1:], tail[:-1]).decode() == stored


def _check(
    batch: list[tuple[int, dict[str, Any]]], manifest: Mapping[str, Any], policy: Policy
) -> Iterator[tuple[int, str]]:
    """Yield what is wrong in rows, by family."""
    family = manifest.get("family")
    if family == "radsim":
        scores = radsim_scores(policy, [(row["state1"], row["state2"]) for _, row in batch])
        for (number, row), value in zip(batch, scores, strict=True):
            if abs(value - row["score"]) > _CLOSE:
                yield number, f"score {row['score']:.4f}, RadSim of its states is {value:.4f}"
            total = row["agreement"] + row["family_bonus"] + row["organ_bonus"] + row["jitter"]
            if abs(max(-1.0, min(1.0, total)) - row["score"]) > _CLOSE:
                yield number, "the parts of its score do not add up to it"
    elif family == "mined":
        options = manifest["constants"]["triplets"]
        high = radsim_scores(policy, [(row["anchor_state"], row["positive_state"]) for _, row in batch])
        low = radsim_scores(policy, [(row["anchor_state"], row["negative_state"]) for _, row in batch])
        for (number, row), up, down in zip(batch, high, low, strict=True):
            if abs(up - row["positive_target"]) > _CLOSE or abs(down - row["negative_target"]) > _CLOSE:
                yield number, "its targets are not RadSim of its states"
            if up - down < options["min_gap"] - _CLOSE:
                yield number, f"the gap {up - down:.3f} is below {options['min_gap']}"
            if abs(jaccard(row["anchor"], row["negative"]) - row["word_overlap"]) > _CLOSE:
                yield number, "its word overlap is not that of its texts"
    else:
        from radgen.generators.similarity.recheck import recheck

        yield from recheck(str(family), batch, manifest, policy)


def radsim_scores(policy: Policy, pairs: list[tuple[Any, Any]]) -> list[float]:
    """Return RadSim of pairs of lists of states."""
    coder = Coder(policy)
    for a, b in pairs:
        coder.add(a)
        coder.add(b)
    if not pairs:
        return []
    places = np.arange(len(pairs)) * 2
    return [float(value) for value in Scorer(coder).score(places, places + 1).value]
