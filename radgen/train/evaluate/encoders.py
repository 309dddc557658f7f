"""Encoders under judgement: loaded, told apart by their weights, their vectors kept by text."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from radgen.errors import RadgenError
from radgen.train.encoder import encode, load_encoder, positions
from radgen.train.measures.ordering import Vectors

#: Texts that any tokenizer of English tells apart.
_TRIAL = ("left pleural effusion", "the heart is normal", "no acute finding 12 mm")
#: Texts between two commits of the cache: what a kill can lose.
_PORTION = 2048


class Encoder:
    """One encoder with the vectors of every text it has seen.

    Attributes:
        name: how it is called in tables.
        hash: 16 hexadecimal digits of a sha256 over weights, modules and vocabulary.
        dimensions: of a vector.
        parameters: number of weights.
    """

    def __init__(self, name: str, model: Any, batch_size: int, cache: Path | None) -> None:
        self.name, self.model, self.batch_size = name, model, batch_size
        self.hash = model_hash(model)
        self.dimensions = int(model.get_embedding_dimension() or 0)
        self.parameters = sum(weights.numel() for weights in model.parameters())
        self._cache = cache
        self._kept: dict[int, dict[str, np.ndarray[Any, np.dtype[np.float32]]]] = {}

    def limit(self, tokens: int) -> int:
        """Return after how many tokens a text is cut when ``tokens`` are asked for."""
        most = positions(self.model)
        return min(tokens, most) if most else tokens

    def vectors(
        self, texts: Sequence[str], tokens: int, show: Callable[[int], None] | None = None
    ) -> Vectors:
        """Return unit vectors of texts, shape (n, d); each distinct text is encoded once in a cache's life.

        Args:
            tokens: after which a text is cut.
            show: called with the number of texts encoded now.
        """
        tokens = self.limit(tokens)
        kept = self._kept.setdefault(tokens, {})
        missing = list(dict.fromkeys(text for text in texts if text not in kept))
        if missing and self._cache is not None:
            kept.update(_read(self._file(tokens), missing, self.dimensions))
            missing = [text for text in missing if text not in kept]
        missing.sort(key=lambda text: (len(text), text))
        for start in range(0, len(missing), _PORTION):
            part = missing[start : start + _PORTION]
            made = self.fresh(part, tokens)
            kept.update(zip(part, made, strict=True))
            if self._cache is not None:
                _write(self._file(tokens), part, made)
            if show is not None:
                show(start + len(part))
        if not texts:
            return np.zeros((0, self.dimensions), np.float32)
        return np.stack([kept[text] for text in texts])

    def fresh(self, texts: Sequence[str], tokens: int) -> Vectors:
        """Return unit vectors worked out now, whatever is kept."""
        self.model.max_seq_length = self.limit(tokens)
        made = encode(self.model, texts, self.batch_size)
        if not np.isfinite(made).all():
            raise RadgenError(f"{self.name}: a vector holds a number that is not finite")
        return made

    def _file(self, tokens: int) -> Path:
        assert self._cache is not None
        return self._cache / f"{self.hash}-{tokens}.sqlite"


def open_encoder(
    name: str, label: str, tokens: int, batch_size: int, *, device: str | None, cache: Path | None
) -> Encoder:
    """Load an encoder; see ``load_encoder``.

    Raises:
        RadgenError: it cannot be loaded, or its tokenizer knows no word.
    """
    model = load_encoder(name, max_tokens=tokens, device=device)
    if reason := no_words(model):
        raise RadgenError(f"{name}: {reason}")
    return Encoder(label, model, batch_size, cache)


def no_words(model: Any) -> str | None:
    """Say why a model cannot read text, None if it can.

    transformers makes an empty tokenizer where the files are missing: every word is then unknown, and every
    figure would be that of noise.
    """
    tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is None or not hasattr(tokenizer, "encode"):
        return "the model has no tokenizer"
    ids: set[int] = set()
    for text in _TRIAL:
        found = tokenizer.encode(text)
        ids.update(getattr(found, "ids", found))
    known = ids - set(getattr(tokenizer, "all_special_ids", []))
    return None if len(known) > 1 else "the tokenizer knows no word (its files are missing?)"


def model_hash(model: Any) -> str:
    """Return 16 hexadecimal digits over weights, modules and vocabulary: where it lies does not matter."""
    import torch

    digest = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(f"{name} {flat.dtype} {tuple(tensor.shape)}".encode())
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    digest.update(repr([str(module) for module in model]).encode())
    tokenizer = getattr(model, "tokenizer", None)
    if tokenizer is not None:
        digest.update(orjson.dumps(sorted(tokenizer.get_vocab().items())))
    return digest.hexdigest()[:16]


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    store = sqlite3.connect(path, timeout=60)
    store.execute("PRAGMA synchronous = OFF")  # a lost cache costs time, no figure
    store.execute("CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB)")
    return store


def _read(
    path: Path, texts: Sequence[str], dimensions: int
) -> Iterator[tuple[str, np.ndarray[Any, np.dtype[np.float32]]]]:
    """Yield the texts that the cache has, with their vectors; the texts themselves are not in it."""
    if not path.exists():
        return
    try:
        with closing(_open(path)) as store:
            for text in texts:
                row = store.execute("SELECT vector FROM vectors WHERE text = ?", (_key(text),)).fetchone()
                if row is not None and len(row[0]) == 4 * dimensions:
                    yield text, np.frombuffer(row[0], np.float32)
    except sqlite3.Error as error:
        raise RadgenError(f"{path}: the cache of vectors cannot be read ({error}); delete it") from None


def _write(path: Path, texts: Sequence[str], vectors: Vectors) -> None:
    try:
        with closing(_open(path)) as store, store:
            rows = ((_key(text), vector.tobytes()) for text, vector in zip(texts, vectors, strict=True))
            store.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
    except sqlite3.Error as error:
        raise RadgenError(f"{path}: the cache of vectors cannot be written ({error})") from None
