"""``radgen verify``: recomputes targets, filters, splits and hashes from the rows alone (spec §9).

Nothing that the generator stored is trusted: what the manifest or a row says is compared with what comes
out of the texts and states. Each problem names file, row and reason.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from radgen.errors import DatasetError
from radgen.generators.checkers import RowChecker, checker_of
from radgen.generators.folders import MANIFEST, read_manifest
from radgen.generators.holdout import KINDS, Holdout
from radgen.generators.identity import constants, fingerprint_of
from radgen.generators.pools import pool
from radgen.generators.splits import SPLITS, Splitter
from radgen.ontology.load import Ontology, load_ontology
from radgen.templates.phrasings import load_phrasings

#: Families checked elsewhere: a function (folder, manifest, ontology, verdict) that yields
#: (file, row, reason) and counts rows and texts in the verdict.
OTHER_FAMILIES: dict[str, str] = {
    "judging": "radgen.generators.judging:verify_judging",
    **dict.fromkeys(
        ("radsim", "mined", "perturbation", "discrepancies"),
        "radgen.generators.similarity.verify:verify_reports",
    ),
    "radthought": "radgen.generators.radthought.verify:verify_radthought",
    "states": "radgen.generators.states.verify:verify_states",
}
SHOWN = 20


class Problem(NamedTuple):
    """One thing that is wrong: where, and why."""

    file: str
    row: int | None
    reason: str

    def line(self) -> str:
        """Return it as one line: ``file:row: reason``."""
        return f"{self.file}{f':{self.row}' if self.row is not None else ''}: {self.reason}"


@dataclass
class Verdict:
    """What was found in one dataset folder."""

    folder: str
    rows: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    count: int = 0
    notes: list[str] = field(default_factory=list)
    texts: int = 0
    distinct: int = 0

    def add(self, problem: Problem) -> None:
        """Count a problem; the first ones are kept."""
        self.count += 1
        if len(self.problems) < SHOWN:
            self.problems.append(problem)


def dataset_folders(root: Path) -> list[Path]:
    """Return the dataset folders at or below a folder, sorted.

    Raises:
        DatasetError: there is no such folder, or no dataset in it.
    """
    if not root.is_dir():
        raise DatasetError(f"{root}: no such folder")
    found = sorted(path.parent for path in root.rglob(MANIFEST) if ".partial" not in str(path))
    datasets = [path for path in found if (read_manifest(path) or {}).get("radgen") == "dataset"]
    if not datasets:
        raise DatasetError(f"{root}: no radgen dataset here (expected a folder with {MANIFEST})")
    return datasets


def verify_folder(folder: Path, ontology: Ontology) -> Verdict:
    """Recompute one dataset folder."""
    verdict = Verdict(str(folder))
    try:
        manifest = read_manifest(folder) or {}
    except DatasetError as error:
        verdict.add(Problem(str(folder / MANIFEST), None, str(error)))
        return verdict
    if manifest.get("ontology") not in (None, ontology.fingerprint):
        verdict.notes.append("made with another ontology; checked against the one loaded now")
    family = str(manifest.get("family"))
    if family in OTHER_FAMILIES:
        module, function = OTHER_FAMILIES[family].split(":")
        check: Callable[..., Iterator[tuple[str, int | None, str]]]
        check = getattr(importlib.import_module(module), function)
        for file, row, reason in check(folder, manifest, ontology, verdict):
            verdict.add(Problem(file, row, reason))
        return verdict
    try:
        checker = checker_of(manifest, ontology)
    except DatasetError as error:
        verdict.add(Problem(str(folder / MANIFEST), None, str(error)))
        return verdict
    _check_files(folder, manifest, checker, verdict)
    _check_totals(folder, manifest, checker, verdict, ontology)
    found = [
        Problem(str(folder / MANIFEST), None, reason)
        for reason in _manifest_problems(manifest, checker, verdict.rows.total(), ontology)
    ]
    verdict.problems = (found + verdict.problems)[:SHOWN]  # first: they may be why the rows do not fit
    verdict.count += len(found)
    return verdict


def _manifest_problems(
    manifest: Mapping[str, Any], checker: RowChecker, rows: int, ontology: Ontology
) -> Iterator[str]:
    """Yield what the manifest says that does not follow from its own parts and the ontology."""
    expected = fingerprint_of(manifest, rows)
    if manifest.get("fingerprint") != expected:
        yield (
            f"fingerprint: the manifest says {manifest.get('fingerprint')}, but its family, name, rows, "
            f"seed, holdout, ontology, phrasings and recipe_version give {expected}"
        )
    if manifest.get("columns") != list(checker.columns):
        yield f"columns: expected {list(checker.columns)}, found {manifest.get('columns')}"
    words = str(manifest.get("command")).split()
    if "--seed" not in words or words[words.index("--seed") + 1 :][:1] != [str(manifest.get("seed"))]:
        yield f"command: does not give the seed {manifest.get('seed')}: {manifest.get('command')}"
    if str(manifest.get("name")) not in words:
        yield f"command: does not name {manifest.get('name')}: {manifest.get('command')}"
    if manifest.get("ontology") != ontology.fingerprint:
        return  # what follows depends on the ontology that the dataset was made with
    phrasings = load_phrasings(ontology).fingerprint
    if manifest.get("phrasings") != phrasings:
        yield f"phrasings: the manifest says {manifest.get('phrasings')}, those loaded have {phrasings}"
    if manifest.get("constants") != constants(ontology, str(manifest["family"]), str(manifest["name"])):
        yield "constants: not those of the ontology that the manifest names"
    kind = (manifest.get("holdout") or {}).get("kind")
    if kind is None:
        return
    if kind not in KINDS or manifest["holdout"] != Holdout.of(kind, ontology).describe():
        yield "holdout: not what this kind of holdout keeps out"


def _check_files(folder: Path, manifest: Mapping[str, Any], checker: RowChecker, verdict: Verdict) -> None:
    files = manifest.get("files", {})
    expected = {f"{split}.jsonl" for split in SPLITS}
    for name in sorted(expected ^ set(files)):
        text = f"files: expected train, validation and test, see '{name}'"
        verdict.add(Problem(str(folder / MANIFEST), None, text))
    for split in SPLITS:
        path = folder / f"{split}.jsonl"
        stored = files.get(path.name, {})
        digest, size, rows = sha256(), 0, 0
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    digest.update(line)
                    size += len(line)
                    rows += 1
                    for reason in checker.row(split, line):
                        verdict.add(Problem(str(path), number, reason))
        except OSError as error:
            verdict.add(Problem(str(path), None, f"cannot be read: {error.strerror}"))
            continue
        verdict.rows[split] = rows
        for name, value in (("rows", rows), ("bytes", size), ("sha256", digest.hexdigest())):
            if stored.get(name) != value:
                text = f"{name}: the manifest says {stored.get(name)}, the file has {value}"
                verdict.add(Problem(str(path), None, text))


def _check_totals(
    folder: Path, manifest: Mapping[str, Any], checker: RowChecker, verdict: Verdict, ontology: Ontology
) -> None:
    where = str(folder / MANIFEST)
    total = verdict.rows.total()
    quotas = Splitter(ontology.axes.splits).quotas(total)
    for split in SPLITS:
        if total and abs(verdict.rows[split] - quotas[split]) > max(1, 0.01 * total):
            text = f"split {split} has {verdict.rows[split]} of {total} rows, expected about {quotas[split]}"
            verdict.add(Problem(where, None, text))
    verdict.texts, verdict.distinct = checker.texts_seen, len(checker.seen_texts)
    stored = manifest.get("texts", {})
    for name, value in (("all", verdict.texts), ("distinct", verdict.distinct)):
        if stored.get(name) != value:
            text = f"texts.{name}: the manifest says {stored.get(name)}, found {value}"
            verdict.add(Problem(where, None, text))
    if verdict.texts and verdict.distinct < ontology.axes.min_distinct_texts * verdict.texts - 1e-9:
        share = verdict.distinct / verdict.texts
        verdict.add(Problem(where, None, f"only {share:.1%} of the texts are distinct"))
    if dict(sorted(manifest.get("targets", {}).items())) != dict(sorted(checker.targets.items())):
        verdict.add(Problem(where, None, "targets: the counts are not those of the rows"))


def _one(arguments: tuple[str, tuple[str, ...]]) -> Verdict:
    folder, files = arguments
    return verify_folder(Path(folder), load_ontology(files))


def verify(root: Path, ontology_files: tuple[str, ...] = (), workers: int = 1) -> Iterator[Verdict]:
    """Yield a verdict for every dataset at or below a folder, in order.

    Raises:
        DatasetError: there is no dataset.
    """
    folders = dataset_folders(root)
    work = [(str(folder), ontology_files) for folder in folders]
    if workers <= 1 or len(work) == 1:
        yield from map(_one, work)
        return
    load_ontology(ontology_files)
    with pool(min(workers, len(work))) as processes:
        yield from processes.map(_one, work)
