"""``radgen collection``: all that training stages 2 and 3 need, with one card and one summary."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import yaml

from radgen import __version__
from radgen.atomic import AtomicFile
from radgen.errors import DatasetError
from radgen.generators.folders import MANIFEST, dump
from radgen.generators.judging import make_judging
from radgen.generators.make import Made
from radgen.generators.run import collection_orders, run


def make_collection(
    out: Path,
    *,
    seed: int = 42,
    ontology_files: tuple[str, ...] = (),
    holdout: str | None = None,
    scale: float = 1.0,
    workers: int = 1,
    force: bool = False,
) -> list[Made]:
    """Make every dataset of the collection and the judging sets, then the card and ``collection.json``.

    Datasets that stand already are kept, so that an interrupted run goes on where it stopped.

    Raises:
        DatasetError: a place holds something else, or cannot be written.
    """
    if (out / "README.md").exists() and not (out / "collection.json").exists():
        raise DatasetError(f"{out}: holds a README.md that is not radgen's; give another --out")
    orders = collection_orders(seed, ontology_files, holdout, scale)
    made = run(orders, out, workers=workers, force=force)
    made += make_judging(out, ontology_files=ontology_files, workers=workers, force=force)
    command = f"radgen collection --seed {seed}"
    command += f" --scale {scale:g}" if scale != 1.0 else ""
    command += f" --holdout {holdout}" if holdout else ""
    command += "".join(f" --ontology {Path(path).name}" for path in ontology_files)
    summary = {
        "radgen": "collection",
        "command": command,
        "version": __version__,
        "datasets": {
            "/".join(one.folder.parts[-2:]): {
                "rows": one.rows,
                "manifest_sha256": sha256((one.folder / MANIFEST).read_bytes()).hexdigest(),
            }
            for one in made
        },
    }
    for name, data in (("collection.json", dump(summary)), ("README.md", _card(made, command).encode())):
        _write(out / name, data)
    return made


def _write(path: Path, data: bytes) -> None:
    """Write a file of the collection, unless it stands there with these very bytes."""
    if not (path.exists() and path.read_bytes() == data):
        with AtomicFile(path, force=True) as file:
            file.write(data)


def _card(made: Sequence[Made], command: str) -> str:
    configs = []
    for one in made:
        family, name = one.folder.parts[-2:]
        files = [{"split": split, "path": f"{family}/{name}/{split}.jsonl"} for split in one.rows]
        configs.append({"config_name": f"{family}-{name}", "data_files": files})
    head = yaml.safe_dump(
        {"language": ["en"], "tags": ["radiology", "sentence-similarity", "synthetic"], "configs": configs},
        sort_keys=False,
    )
    lines = [
        "---",
        head.rstrip(),
        "---",
        "",
        "# radgen collection",
        "",
        f"Made with `{command}`. Each folder is a dataset with its own card; all sentences are synthetic.",
        "No string of validation, test or judging stands in any training file; `radgen verify` checks it.",
        "",
        "```python",
        "from datasets import load_dataset",
        'triplets = load_dataset("path/to/collection", "contrasts-laterality")',
        'pairs = load_dataset("path/to/collection", "crossaxis-size_laterality")',
        'print(triplets["train"][0]["anchor"], pairs["test"][0]["score"])',
        "```",
        "",
        "| dataset | train | validation | test |",
        "|---|---|---|---|",
    ]
    for one in made:
        counts = " | ".join(f"{one.rows.get(split, 0):,}" for split in ("train", "validation", "test"))
        lines.append(f"| {'/'.join(one.folder.parts[-2:])} | {counts} |")
    return "\n".join(lines) + "\n"
