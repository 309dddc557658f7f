"""From sentences by finding and state to codebooks: k-means++ centroids of each state, and thresholds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from radgen import __version__
from radgen.errors import RadgenError, unknown
from radgen.generators.folders import read_manifest
from radgen.train.codebook.book import FORMAT, STATES, Codebook, Floats
from radgen.train.codebook.settings import CodebookSettings
from radgen.train.evaluate.encoders import Encoder

_SPLITS = ("train", "validation")
#: Where ``radgen states`` puts its folders.
_FAMILY = "states"


@dataclass
class Sentences:
    """Sentences of one split.

    Attributes:
        texts: distinct sentences.
        said: for each finding, the numbers of the sentences of each state.
        named: for each finding, the numbers of all sentences that name it.
        unnamed: numbers of sentences that name none of the findings of the data.
    """

    texts: list[str]
    said: dict[str, dict[str, list[int]]]
    named: dict[str, set[int]]
    unnamed: list[int]


@dataclass(frozen=True)
class StateData:
    """What ``radgen states`` made: sentences of train and validation, and the hashes of its files."""

    folder: Path
    splits: Mapping[str, Sentences]
    findings: tuple[str, ...]
    hashes: Mapping[str, str]


def read_states(folder: Path, findings: Sequence[str] | None = None) -> StateData:
    """Read ``sentences`` and ``others`` of a folder that ``radgen states`` wrote.

    Args:
        folder: its ``--out``, or the family's folder in it.
        findings: those wanted; all of the data if absent.

    Raises:
        RadgenError: there are no such files, or a finding is not in them.
    """
    root = folder / _FAMILY if (folder / _FAMILY).is_dir() else folder
    hashes: dict[str, str] = {}
    known: tuple[str, ...] = ()
    for name in ("sentences", "others"):
        manifest = read_manifest(root / name) if root.is_dir() else None
        if manifest is None or manifest.get("family") != _FAMILY:
            raise RadgenError(
                f"{root / name}: no sentences by state here; make them with radgen states --out {folder}"
            )
        known = tuple(manifest["constants"]["findings"])
        hashes |= {f"{name}/{file}": entry["sha256"] for file, entry in sorted(manifest["files"].items())}
    for tag in findings or ():
        if tag not in known:
            raise RadgenError(
                f"--findings: {unknown('finding of these sentences', tag, known)}; make sentences about it"
                f" with radgen states --findings {tag}"
            )
    splits = {split: _read_split(root, split) for split in _SPLITS}
    return StateData(root, splits, tuple(findings or known), hashes)


def _read_split(root: Path, split: str) -> Sentences:
    places: dict[str, int] = {}
    found = Sentences([], {}, {}, [])

    def place(text: str) -> int:
        if text not in places:
            places[text] = len(places)
            found.texts.append(text)
        return places[text]

    for row in _rows(root / "sentences" / f"{split}.jsonl"):
        at = place(row["sentence"])
        found.said.setdefault(row["finding"], {}).setdefault(row["presence"], []).append(at)
        for state in row["state"]:
            found.named.setdefault(state["finding"], set()).add(at)
    others = dict.fromkeys(row["sentence2"] for row in _rows(root / "others" / f"{split}.jsonl"))
    found.unnamed = [place(text) for text in others]
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    try:
        return [orjson.loads(line) for line in path.read_bytes().splitlines()]
    except FileNotFoundError:
        raise RadgenError(f"{path}: no such file; make it anew with radgen states") from None
    except orjson.JSONDecodeError as error:
        raise RadgenError(f"{path}: not JSON: {error}; make it anew with radgen states") from None


def require_sentences(data: StateData, vectors: int) -> None:
    """Check that each state of each finding has at least as many sentences as codebook vectors.

    Raises:
        RadgenError: names what is missing and what helps.
    """
    train = data.splits["train"]
    one_state, few, least = [], [], vectors
    for tag in data.findings:
        have = {state: len(train.said.get(tag, {}).get(state, ())) for state in STATES}
        if not all(have.values()):
            one_state.append(f"{tag} (no {next(state for state in STATES if not have[state])} sentence)")
        for state, count in have.items():
            if 0 < count < vectors:
                few.append(f"{tag} {state} {count}")
                least = min(least, count)
    if one_state:
        raise RadgenError(
            f"{data.folder}: a codebook needs both states of a finding: {', '.join(one_state)}; leave it out"
            " with --findings, or make more sentences with radgen states (--synthetic adds some)"
        )
    if few:
        raise RadgenError(
            f"{data.folder}: fewer sentences than --vectors {vectors}: {', '.join(few)}; give --vectors"
            f" {least}, or make more sentences with radgen states"
        )
    if not train.unnamed:
        raise RadgenError(
            f"{data.folder}: no sentence names none of the findings, and some are needed to tell them apart;"
            " make more sentences with radgen states (--synthetic adds some)"
        )


def placed(own: Floats, others: Sequence[Floats], least: int) -> Floats:
    """Return the sentences of a state that lie nearer to its own mean than to the mean of any other set.

    A sentence that the encoder places elsewhere would be a centroid of its own, and whatever lies there would
    be taken for this state ("Infiltrative change." beside all that names no finding).

    Args:
        own: (n, dimensions), unit vectors of the state's sentences.
        others: unit vectors of the finding's other state, and of sentences that name no finding.
        least: so many are kept at least, the best placed ones.

    Returns:
        (m, dimensions), in the order of ``own``.
    """
    against = np.max([own @ _mean(other) for other in others], axis=0)
    margin = own @ _mean(own) - against
    order = np.argsort(-margin, kind="stable")
    count = max(least, int((margin > 0).sum()))
    return own[np.sort(order[:count])]


def _mean(vectors: Floats) -> Floats:
    mean: Floats = vectors.mean(axis=0)
    length = np.linalg.norm(mean)
    return mean / np.float32(length) if length > 0 else mean


def centroids(vectors: Floats, count: int, iterations: int, seed: int) -> Floats:
    """Return k-means++ centroids, scaled to length one; the same for the same vectors and seed.

    Args:
        vectors: (n, dimensions), n at least ``count``.

    Returns:
        float32 (count, dimensions), in an order that does not depend on the seed of the clusters' numbers.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types

    with threadpool_limits(1):  # sums in one order, whatever the machine has
        fit = KMeans(
            count, init="k-means++", n_init=1, max_iter=iterations, random_state=seed, algorithm="lloyd"
        )
        centers = fit.fit(vectors.astype(np.float64)).cluster_centers_
    lengths = np.linalg.norm(centers, axis=1, keepdims=True)
    unit = (centers / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return np.ascontiguousarray(unit[np.lexsort(unit.T[::-1])])


def build_codebook(
    data: StateData,
    encoder: Encoder,
    settings: CodebookSettings,
    show: Callable[[int], None] = lambda _: None,
) -> Codebook:
    """Make the codebooks of the findings for an encoder, with thresholds chosen on validation sentences.

    Raises:
        RadgenError: a finding has one state only, or fewer sentences than vectors.
    """
    require_sentences(data, settings.vectors)
    train = data.splits["train"]
    vectors = encoder.vectors(train.texts, settings.max_tokens, show)

    def book(own: Floats) -> Floats:
        return centroids(own, settings.vectors, settings.iterations, settings.seed)

    unnamed = vectors[train.unnamed]
    books, left_out = [], 0
    for tag in data.findings:
        said = [vectors[train.said[tag][state]] for state in STATES]
        kept = [
            placed(own, (said[1 - number], unnamed), settings.vectors) if settings.leave_out else own
            for number, own in enumerate(said)
        ]
        left_out += sum(map(len, said)) - sum(map(len, kept))
        books.append(np.stack([book(own) for own in kept]))
    plain = np.zeros((len(data.findings), 3), np.float32)
    made = Codebook(data.findings, np.stack(books), plain)
    held = data.splits["validation"]
    chosen, notes = thresholds(made, held, encoder.vectors(held.texts, settings.max_tokens), settings)
    if left_out:
        sentences = "sentence" if left_out == 1 else "sentences"
        notes.append(f"{left_out} {sentences} left out, which the encoder places nearer to another state")
    return Codebook(
        data.findings,
        made.vectors,
        chosen,
        manifest_of(data, encoder, settings, made.dimensions, notes),
    )


def thresholds(
    book: Codebook, held: Sentences, vectors: Floats, settings: CodebookSettings
) -> tuple[Floats, list[str]]:
    """Choose the thresholds of each finding on validation sentences.

    Returns:
        float32 (findings, 3), see ``book.THRESHOLDS``; and what a person should know.
    """
    nearest = book.similarities(vectors)
    out = np.zeros((len(book.findings), 3), np.float32)
    notes = []
    for number, tag in enumerate(book.findings):
        said = held.said.get(tag, {})
        present, absent = (np.array(said.get(state, []), np.int64) for state in STATES)
        if min(len(present), len(absent)) < settings.least_validation:
            notes.append(
                f"{tag}: fewer than {settings.least_validation} validation sentences of a state: threshold 0"
            )
            continue
        margin = nearest[:, number, 0] - nearest[:, number, 1]
        out[number, 0] = best_threshold(margin[present], margin[absent])
        elsewhere = np.setdiff1d(np.arange(len(vectors)), list(held.named.get(tag, ())))
        out[number, 1] = best_threshold(margin[present], margin[np.concatenate([absent, elsewhere])])
        out[number, 2] = best_threshold(-margin[absent], -margin[np.concatenate([present, elsewhere])])
    return out, notes


def best_threshold(positive: NDArray[Any], negative: NDArray[Any]) -> float:
    """Return the threshold with the highest balanced accuracy, in the middle of its gap.

    >>> best_threshold(np.array([0.5, 0.9]), np.array([-0.2, 0.1]))
    0.3
    """
    values = np.unique(np.concatenate([positive, negative]).astype(np.float64))
    cuts = np.concatenate([values[:1] - 1e-3, (values[1:] + values[:-1]) / 2, values[-1:] + 1e-3])
    high, low = np.sort(positive), np.sort(negative)
    hit = 1 - np.searchsorted(high, cuts, side="left") / len(high)
    kept = np.searchsorted(low, cuts, side="left") / len(low)
    best = np.flatnonzero(np.isclose(hit + kept, (hit + kept).max()))
    return round(float(cuts[best[len(best) // 2]]), 6)


def manifest_of(
    data: StateData, encoder: Encoder, settings: CodebookSettings, dimensions: int, notes: list[str]
) -> dict[str, Any]:
    """Return what a codebook was made of; ``fingerprint`` covers all that decides its vectors."""
    parts: dict[str, Any] = {
        "format": FORMAT,
        "findings": list(data.findings),
        "states": list(STATES),
        "vectors": settings.vectors,
        "dimensions": dimensions,
        "seed": settings.seed,
        "settings": settings.model_dump(),
        "model": {"name": encoder.name, "hash": encoder.hash},
        "data": dict(data.hashes),
    }
    hashed = {**parts, "model": encoder.hash}
    digest = sha256(orjson.dumps(hashed, option=orjson.OPT_SORT_KEYS)).hexdigest()
    return {"radgen": "codebook", "version": __version__, "fingerprint": digest, "notes": notes, **parts}
