"""Dataset folders of the families that are made from reports (spec §9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from radgen import __version__
from radgen.errors import DatasetError
from radgen.generators.blocks import row_id
from radgen.generators.card import card
from radgen.generators.folders import MANIFEST, Writer, dump, finished, read_manifest, replacing, write_file
from radgen.generators.similarity.settings import settings_text
from radgen.generators.similarity.source import States
from radgen.generators.splits import SPLITS, Split
from radgen.ontology.radsim import Policy

#: Raised when the same reports and seed give other rows.
SIMILARITY_VERSION = 1
_SUMMED = {
    "rules": "read by radgen's rules",
    "extracted": "extracted before",
    "truth": "the reports' own truth",
}


@dataclass
class Spec:
    """What a dataset is.

    Attributes:
        columns: of every row, in order.
        texts: the columns with texts.
        label: the scored column, None for triplets.
        kinds: features of columns (see ``card.features``).
        target: the column that the histogram counts.
    """

    family: str
    name: str
    command: str
    seed: int
    columns: tuple[str, ...]
    texts: tuple[str, ...]
    label: str | None
    kinds: Mapping[str, str]
    target: str
    about: str
    descriptions: Mapping[str, str] = field(default_factory=dict)


@dataclass
class MadeFromReports:
    """What came of one order.

    Attributes:
        histogram: rows by bin of the target: "-1.0", "-0.9", …
        rejected: what was left out, by reason.
        notes: what a person should know.
    """

    folder: Path
    rows: dict[str, int]
    histogram: dict[str, int]
    rejected: dict[str, int]
    counts: dict[str, int]
    fresh: bool
    notes: list[str] = field(default_factory=list)


def source_digest(path: Path) -> str:
    """Return the sha256 of a file, or of the names and files of a folder.

    Raises:
        DatasetError: there is no such file or folder.
    """
    digest = sha256()
    if path.is_dir():
        for inner in sorted(path.rglob("*")):
            if inner.is_file():
                digest.update(inner.relative_to(path).as_posix().encode() + b"\0")
                digest.update(bytes.fromhex(source_digest(inner)))
        return digest.hexdigest()
    try:
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except FileNotFoundError:
        raise DatasetError(f"{path}: no such file or folder") from None
    return digest.hexdigest()


def identity(spec: Spec, policy: Policy, rows: int | None, sources: Sequence[str], **more: Any) -> str:
    """Return the hash of all that the rows depend on."""
    parts = {
        "version": SIMILARITY_VERSION,
        "family": spec.family,
        "name": spec.name,
        "rows": rows,
        "seed": spec.seed,
        "ontology": policy.ontology.fingerprint,
        "radsim": policy.fingerprint,
        "settings": sha256(settings_text()).hexdigest(),
        "sources": list(sources),
        **more,
    }
    return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def line_of(name: str, texts: Mapping[str, bytes], rest: Mapping[str, Any]) -> bytes:
    """Return a row: texts as JSON, then the id, then the rest."""
    head = b",".join(b'"%b":%b' % (key.encode(), value) for key, value in texts.items())
    tail = orjson.dumps(rest)[1:-1]
    return b'{%b,"id":"%b",%b}' % (head, row_id(name, head, tail), tail)


def bin_of(value: float) -> str:
    """Return the lower end of the tenth of a unit that a target lies in.

    >>> bin_of(0.84), bin_of(-0.05), bin_of(1.0)
    ('0.8', '-0.1', '0.9')
    """
    place = min(int((value + 1.0) * 10 + 1e-9), 19)
    return f"{place / 10 - 1:.1f}".replace("-0.0", "0.0")


def existing(out: Path, spec: Spec, fingerprint: str, force: bool) -> MadeFromReports | None:
    """Return what already stands in the place, None where it has to be made.

    Raises:
        DatasetError: something else stands there.
    """
    folder = out / spec.family / spec.name
    if not finished(folder, fingerprint, force):
        return None
    manifest = read_manifest(folder) or {}
    rows: dict[str, int] = {split: manifest["files"][f"{split}.jsonl"]["rows"] for split in SPLITS}
    return MadeFromReports(
        folder, rows, manifest["targets"], manifest["rejected"], manifest["counts"], False, manifest["notes"]
    )


def write(
    out: Path,
    spec: Spec,
    fingerprint: str,
    rows: Iterable[tuple[Split, bytes]],
    policy: Policy,
    *,
    states: States | None = None,
    origin: str | None = None,
    version: int = SIMILARITY_VERSION,
    rejected: Counter[str],
    counts: Mapping[str, int],
    sources: Sequence[str],
    notes: Sequence[str] = (),
    constants: Mapping[str, Any] | None = None,
) -> MadeFromReports:
    """Write rows to ``out/<family>/<name>`` with manifest and card; the whole folder or nothing.

    ``rejected`` may grow while the rows are made.

    Args:
        states: where the findings of the reports come from.
        origin: a sentence for the card about where the texts come from, in place of the states.
        version: of what makes the rows.

    Raises:
        DatasetError: the place cannot be written, or there is no row.
    """
    folder = out / spec.family / spec.name
    if origin is None:
        origin = f"The texts are those of its reports, whose findings were {_SUMMED[states or 'rules']}."
    histogram: Counter[str] = Counter()
    examples: list[dict[str, Any]] = []
    key = b'"%b":' % spec.target.encode()
    with replacing(folder) as partial:
        writer = Writer(partial)
        try:
            for split, line in rows:
                writer.write(split, line)
                start = line.index(key) + len(key)
                histogram[bin_of(float(line[start : line.index(b",", start)]))] += 1
                if len(examples) < 3 and split == "train" and writer.rows["train"] % 97 == 1:
                    examples.append(orjson.loads(line))
        except BaseException:
            writer.close(keep=False)
            raise
        writer.close()
        if not sum(writer.rows.values()):
            raise DatasetError(f"{spec.family}/{spec.name}: no row could be made{_most(rejected)}")
        targets = dict(sorted(histogram.items(), key=lambda item: float(item[0])))
        manifest = {
            "radgen": "dataset",
            "family": spec.family,
            "name": spec.name,
            "command": spec.command,
            "version": __version__,
            "recipe_version": version,
            "seed": spec.seed,
            "fingerprint": fingerprint,
            "ontology": policy.ontology.fingerprint,
            "radsim": policy.fingerprint,
            "sources": list(sources),
            **({"states": states} if states else {}),
            "columns": list(spec.columns),
            "files": writer.files(),
            "rejected": dict(sorted(rejected.items())),
            "counts": dict(counts),
            "targets": targets,
            "notes": list(notes),
            "constants": {
                "radsim": policy.constants.model_dump(),
                "splits": policy.ontology.axes.splits,
                **(constants or {}),
            },
        }
        text = card(
            title=f"radgen {spec.family}: {spec.name}",
            about=spec.about,
            columns=spec.columns,
            texts=spec.texts,
            label=spec.label,
            rows=writer.rows,
            manifest=manifest,
            struct={},
            examples=[{name: _cell(value) for name, value in row.items()} for row in examples],
            kinds=spec.kinds,
            origin=origin,
            descriptions=spec.descriptions,
        )
        write_file(partial / "README.md", text.encode())
        write_file(partial / MANIFEST, dump(manifest))
    return MadeFromReports(
        folder, dict(writer.rows), targets, dict(rejected), dict(counts), True, list(notes)
    )


def _cell(value: Any) -> Any:
    return " ".join(value.split()).replace("|", "/") if isinstance(value, str) else value


def _most(rejected: Counter[str]) -> str:
    reasons = [f"{count:,} {reason}" for reason, count in rejected.most_common(2) if count]
    return f" ({'; '.join(reasons)})" if reasons else ""
