"""A codebook: unit vectors for each state of each finding, thresholds, and the files that hold them.

``vectors.safetensors`` has ``vectors`` (findings, 2 states, vectors, dimensions) and ``thresholds``
(findings, 3); ``manifest.json`` says what they were made of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from radgen.errors import RadgenError
from radgen.generators.folders import MANIFEST, dump, read_manifest, replacing, write_file

Floats = NDArray[np.float32]
VECTORS_FILE = "vectors.safetensors"
#: The states in the order of the second dimension of the vectors.
STATES = ("present", "absent")
#: Thresholds in their order: state (of a sentence about the finding), present, absent (of any sentence).
THRESHOLDS = ("state", "present", "absent")
FORMAT = 2


@dataclass(frozen=True, eq=False)
class Codebook:
    """The codebooks of some findings for one encoder.

    Attributes:
        findings: tags, in the order of the first dimension.
        vectors: float32 (findings, 2, vectors, dimensions), of length one.
        thresholds: float32 (findings, 3), see :data:`THRESHOLDS`.
        manifest: model, findings, data, hashes.
    """

    findings: tuple[str, ...]
    vectors: Floats
    thresholds: Floats
    manifest: Mapping[str, Any] = field(default_factory=dict)

    @property
    def dimensions(self) -> int:
        """The dimensions of the vectors."""
        return int(self.vectors.shape[-1])

    def similarities(self, vectors: Floats) -> Floats:
        """Return how near sentences are to each codebook: one matrix product for all of them.

        Args:
            vectors: float32 (n, dimensions), of length one.

        Returns:
            (n, findings, 2), the cosine of the nearest vector of each state.
        """
        findings, states, count, dimensions = self.vectors.shape
        product = vectors @ self.vectors.reshape(-1, dimensions).T
        nearest: Floats = product.reshape(len(vectors), findings, states, count).max(axis=-1)
        return nearest

    def save(self, folder: Path, *, force: bool = False) -> None:
        """Write the codebook; the whole folder or nothing.

        Raises:
            RadgenError: something else stands there, or it cannot be written.
        """
        require_free(folder, self.manifest, force=force)
        data = save(self._tensors())
        manifest = {**self.manifest, "sha256": sha256(data).hexdigest()}
        with replacing(folder) as partial:
            write_file(partial / VECTORS_FILE, data)
            write_file(partial / MANIFEST, dump(manifest))

    def _tensors(self) -> dict[str, Any]:
        names = ("vectors", "thresholds")
        return {name: np.ascontiguousarray(getattr(self, name), np.float32) for name in names}


def require_free(folder: Path, manifest: Mapping[str, Any], *, force: bool) -> None:
    """Check that a codebook may be written to a folder: it is new, empty, holds the same, or ``force``.

    Raises:
        RadgenError: it holds another codebook and ``force`` was not given, or it holds something else.
    """
    found = read_manifest(folder)
    if found is None:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise RadgenError(
                f"{folder}: holds files that are no codebook; give another --out (nothing was changed)"
            )
        return
    if found.get("radgen") != "codebook":
        raise RadgenError(
            f"{folder}: holds something else than a codebook; give another --out (nothing was changed)"
        )
    if found.get("fingerprint") != manifest.get("fingerprint") and not force:
        raise RadgenError(
            f"{folder}: holds another codebook (of model {found.get('model', {}).get('name', 'unknown')}); "
            "give another --out, or --force to replace it"
        )


def load_codebook(folder: Path) -> Codebook:
    """Read a codebook.

    Raises:
        RadgenError: there is none, or its files do not belong together.
    """
    if not folder.is_dir():
        raise RadgenError(f"{folder}: no such folder; make a codebook with radgen codebook build")
    manifest = read_manifest(folder)
    if manifest is None or manifest.get("radgen") != "codebook":
        raise RadgenError(f"{folder}: no codebook in this folder; make one with radgen codebook build")
    if manifest.get("format") != FORMAT:
        raise RadgenError(
            f"{folder}: a codebook of format {manifest.get('format')}, expected {FORMAT}; make it anew with"
            " radgen codebook build --force"
        )
    path = folder / VECTORS_FILE
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise RadgenError(f"{path}: no such file; make the codebook anew") from None
    if sha256(data).hexdigest() != manifest.get("sha256"):
        raise RadgenError(f"{path}: is not the file that its manifest names; make the codebook anew")
    try:
        tensors = load(data)
        book = Codebook(
            tuple(manifest["findings"]),
            tensors["vectors"],
            tensors["thresholds"],
            manifest,
        )
    except (SafetensorError, KeyError, TypeError) as error:
        raise RadgenError(f"{path}: holds no codebook: {error}; make it anew") from None
    if book.vectors.ndim != 4 or book.vectors.shape[:2] != (len(book.findings), len(STATES)):
        raise RadgenError(f"{path}: its vectors are not those of the findings of its manifest; make it anew")
    return book
