"""``radgen codebook``: from names and options to codebooks and classified reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from radgen.errors import RadgenError
from radgen.generators.states.corpus import Paperwork, extractor
from radgen.generators.states.settings import load_settings
from radgen.ontology.load import load_ontology
from radgen.train.codebook.book import Codebook, load_codebook, require_free
from radgen.train.codebook.build import build_codebook, manifest_of, read_states, require_sentences
from radgen.train.codebook.classify import ASSIGN, Counts, check_assign, classify_reports
from radgen.train.codebook.settings import CodebookSettings, codebook_settings
from radgen.train.encoder import require_training
from radgen.train.evaluate.curriculum import trained_model
from radgen.train.evaluate.encoders import Encoder, open_encoder

Show = Callable[[int], None]


@dataclass(frozen=True)
class Built:
    """A codebook that stands in its place now."""

    book: Codebook
    fresh: bool

    def summary(self, out: Path) -> list[str]:
        """Return what a person wants to know, line by line."""
        findings, _, vectors, dimensions = self.book.vectors.shape
        state = "" if self.fresh else " (stood there already)"
        lines = [
            f"{findings} findings, {vectors} vectors a state, {dimensions} dimensions, model "
            f"{self.book.manifest['model']['name']} -> {out}{state}"
        ]
        return lines + [f"note: {note}" for note in self.book.manifest.get("notes", ())]


def encoder_of(model: str, settings: CodebookSettings, device: str | None, cache: Path | None) -> Encoder:
    """Load an encoder by its name, or by the folder that ``radgen train`` wrote.

    Raises:
        RadgenError: it cannot be loaded.
    """
    require_training()
    return open_encoder(
        trained_model(model), model, settings.max_tokens, settings.encode_batch, device=device, cache=cache
    )


def build(
    model: str,
    data: Path,
    out: Path,
    *,
    vectors: int | None = None,
    findings: str | None = None,
    seed: int | None = None,
    device: str | None = None,
    cache: Path | None = None,
    force: bool = False,
    show: Show = lambda _: None,
) -> Built:
    """Build a codebook in ``out``; one made of the same stays as it is.

    Raises:
        RadgenError: no sentences, an unknown finding, one with one state only or fewer sentences than
            vectors, a model that cannot be loaded, or something else in the place.
    """
    given = {"vectors": vectors, "seed": seed}
    settings = codebook_settings().model_copy(
        update={name: value for name, value in given.items() if value is not None}
    )
    names = [name.strip() for name in findings.split(",") if name.strip()] if findings is not None else None
    if names == []:
        raise RadgenError(
            "--findings: names no finding; expected names such as pleural_effusion,pneumothorax"
        )
    found = read_states(data, names)
    require_sentences(found, settings.vectors)
    encoder = encoder_of(model, settings, device, cache)
    manifest = manifest_of(found, encoder, settings, encoder.dimensions, [])
    require_free(out, manifest, force=force)
    if out.exists() and any(out.iterdir()):
        try:
            standing = load_codebook(out)
        except RadgenError:
            standing = None
        if standing is not None and standing.manifest.get("fingerprint") == manifest["fingerprint"]:
            return Built(standing, fresh=False)
    book = build_codebook(found, encoder, settings, show)
    book.save(out, force=True)
    return Built(book, fresh=True)


def classify(
    reports: Path,
    codebook: Path,
    out: Path,
    *,
    model: str | None = None,
    assign: str = ASSIGN[0],
    device: str | None = None,
    cache: Path | None = None,
    force: bool = False,
    ontology: tuple[str, ...] = (),
    show: Show = lambda _: None,
) -> Counts:
    """Classify reports into ``out``.

    Raises:
        RadgenError: no codebook, not its model, unreadable reports, or a file in the place.
    """
    check_assign(assign)
    book = load_codebook(codebook)
    loaded = load_ontology(ontology)
    settings = codebook_settings()
    name = model or str(book.manifest["model"]["name"])
    encoder = encoder_of(name, settings, device, cache)
    return classify_reports(
        reports,
        out,
        book,
        encoder,
        extractor(loaded),
        settings,
        paperwork=Paperwork(load_settings(loaded)),
        assign=assign,
        force=force,
        progress=show,
    )


__all__ = ["Built", "build", "classify"]
