"""The folder ``states/sentences``: what codebooks are made of, and what training's heads learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from radgen import __version__
from radgen.errors import DatasetError
from radgen.generators.card import features
from radgen.generators.folders import MANIFEST, Writer, dump, finished, read_manifest, replacing, write_file
from radgen.generators.similarity.folder import SIMILARITY_VERSION, MadeFromReports, Spec
from radgen.generators.similarity.source import States
from radgen.generators.splits import SPLITS, Split
from radgen.ontology.radsim import Policy


def existing_sentences(out: Path, spec: Spec, fingerprint: str, force: bool) -> MadeFromReports | None:
    """Return what already stands in the place, None where it has to be made.

    Raises:
        DatasetError: something else stands there.
    """
    folder = out / spec.family / spec.name
    if not finished(folder, fingerprint, force):
        return None
    manifest = read_manifest(folder) or {}
    rows: dict[str, int] = {split: manifest["files"][f"{split}.jsonl"]["rows"] for split in SPLITS}
    return MadeFromReports(folder, rows, {}, manifest["rejected"], manifest["counts"], False)


def write_sentences(
    out: Path,
    spec: Spec,
    fingerprint: str,
    rows: Iterable[tuple[Split, bytes]],
    rejected: Counter[str],
    *,
    policy: Policy,
    states: States,
    sources: Sequence[str],
    constants: Mapping[str, Any],
    counts: Mapping[str, int],
) -> MadeFromReports:
    """Write the sentences with manifest and card; the whole folder or nothing.

    Raises:
        DatasetError: the place cannot be written, or there is no row.
    """
    folder = out / spec.family / spec.name
    with replacing(folder) as partial:
        writer = Writer(partial)
        try:
            for split, line in rows:
                writer.write(split, line)
        except BaseException:
            writer.close(keep=False)
            raise
        writer.close()
        if not sum(writer.rows.values()):
            raise DatasetError(f"{spec.family}/{spec.name}: no sentence names one of the findings")
        manifest = {
            "radgen": "dataset",
            "family": spec.family,
            "name": spec.name,
            "command": spec.command,
            "version": __version__,
            "recipe_version": SIMILARITY_VERSION,
            "seed": spec.seed,
            "fingerprint": fingerprint,
            "ontology": policy.ontology.fingerprint,
            "sources": list(sources),
            "states": states,
            "columns": list(spec.columns),
            "files": writer.files(),
            "rejected": dict(sorted(rejected.items())),
            "counts": dict(counts),
            "constants": dict(constants),
        }
        write_file(partial / "README.md", _card(spec, writer.rows, manifest).encode())
        write_file(partial / MANIFEST, dump(manifest))
    return MadeFromReports(folder, dict(writer.rows), {}, dict(rejected), dict(counts), True)


def _card(spec: Spec, rows: Mapping[str, int], manifest: Mapping[str, Any]) -> str:
    """Return the card; sentences of reports are not shown in it."""
    head = yaml.safe_dump(
        {
            "language": ["en"],
            "tags": ["radiology", "text-classification"],
            "configs": [
                {
                    "config_name": "default",
                    "data_files": [{"split": split, "path": f"{split}.jsonl"} for split in rows],
                }
            ],
            "dataset_info": {"features": features(spec.columns, {}, spec.kinds)},
        },
        sort_keys=False,
    )
    lines = [
        "---",
        head.rstrip(),
        "---",
        "",
        f"# radgen {spec.family}: {spec.name}",
        "",
        spec.about,
        "",
        f"Made by radgen {manifest['version']} with `{manifest['command']}`. Validation and test hold"
        " phrasings that train does not have; check with `radgen verify` on this folder.",
        "",
        "| split | rows |",
        "|---|---|",
        *[f"| {split} | {count} |" for split, count in rows.items()],
        "",
        "```python",
        "from datasets import load_dataset",
        "",
        'sentences = load_dataset("path/to/this/folder")["train"]',
        "```",
        "",
        "## Columns",
        "",
        *[f"- `{name}`: {spec.descriptions[name]}" for name in spec.columns],
    ]
    return "\n".join(lines) + "\n"
