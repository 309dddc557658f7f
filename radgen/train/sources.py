"""Which datasets a stage reads: found, or missing with the command that makes them; verified (spec §7)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Any

import orjson

from radgen import __version__
from radgen.atomic import AtomicFile
from radgen.errors import RadgenError, unknown
from radgen.generators.folders import MANIFEST, read_manifest
from radgen.generators.recipes import RECIPE_VERSION
from radgen.train.settings import Stage

TRAIN, VALIDATION = "train.jsonl", "validation.jsonl"


def wanted(stages: Sequence[Stage], without: Iterable[str]) -> list[Stage]:
    """Return the stages without the datasets and families that were left out.

    Raises:
        RadgenError: a name that no stage has, or a stage that is left with nothing.
    """
    known = {name for stage in stages for name in stage.settings.datasets}
    families = {name.partition("/")[0] for name in known}
    dropped: set[str] = set()
    for word in without:
        if word not in known | families:
            raise RadgenError(f"--without {word}: {unknown('dataset', word, known | families)}")
        dropped |= {name for name in known if word in (name, name.partition("/")[0])}
    result = []
    for stage in stages:
        kept = {name: entry for name, entry in stage.settings.datasets.items() if name not in dropped}
        if not kept:
            raise RadgenError(f"{stage.name}: --without leaves no dataset")
        settings = stage.settings.model_copy(update={"datasets": kept})
        result.append(Stage(stage.name, stage.preset, settings))
    return result


def check_there(stages: Sequence[Stage], data: Path) -> None:
    """Check that each dataset of the stages has training rows.

    Raises:
        RadgenError: one line for each dataset that is missing, with the command that makes it.
    """
    missing: dict[str, str] = {}
    for stage in stages:
        for name in stage.settings.datasets:
            if not (data / name / TRAIN).is_file():
                family, _, rest = name.partition("/")
                command = stage.settings.makes.get(name) or stage.settings.makes.get(family, "")
                missing[name] = command.format(name=rest, data=data) or "no command is known for it"
    if missing:
        width = max(len(name) for name in missing)
        lines = [f"{data}: {len(missing)} datasets are missing (--without NAME or FAMILY leaves some out):"]
        lines += [f"  {name:{width}}  {command}" for name, command in missing.items()]
        raise RadgenError("\n".join(lines))


def hashes(folder: Path) -> dict[str, str]:
    """Return the sha256 of the files that training reads, and of the manifest."""
    found = {}
    for name in (MANIFEST, TRAIN, VALIDATION):
        path = folder / name
        if path.is_file():
            with path.open("rb") as file:
                found[name] = file_digest(file, "sha256").hexdigest()
    return found


def verify(folders: Mapping[str, Path], ontology_files: tuple[str, ...], say: Any) -> None:
    """Check every dataset as ``radgen verify`` does; what was found right is not checked again.

    A verdict is remembered under a hash of every file of the folder, the ontology and radgen's version: any
    change brings the check back.

    Raises:
        RadgenError: one line for each dataset that fails, with the first reason.
    """
    from radgen.generators.verify import verify_folder
    from radgen.ontology.load import load_ontology

    ontology = load_ontology(ontology_files)
    store = _store()
    known = _remembered(store)
    failed, right = [], set()
    for name, folder in folders.items():
        if read_manifest(folder) is None:
            failed.append(f"  {name}: no {MANIFEST}: not made by radgen")
            continue
        key = _key(folder, ontology.fingerprint)
        if key not in known:
            say(f"verifying {name}")
            verdict = verify_folder(folder, ontology)
            if verdict.count:
                failed.append(f"  {name}: {verdict.problems[0].line()}")
                continue
        right.add(key)
    if not right <= known:
        _remember(store, known | right)
    if failed:
        lines = [f"{len(failed)} datasets do not hold what they say (--no-verify takes them all the same):"]
        raise RadgenError("\n".join(lines + failed))


def _key(folder: Path, ontology: str) -> str:
    parts = [__version__, str(RECIPE_VERSION), ontology, folder.name]
    for path in sorted(folder.iterdir()):
        if path.suffix in (".json", ".jsonl"):
            with path.open("rb") as file:
                parts.append(f"{path.name}={file_digest(file, 'sha256').hexdigest()}")
    return sha256("\n".join(parts).encode()).hexdigest()


def _store() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "radgen" / "verified.json"


def _remembered(store: Path) -> set[str]:
    try:
        found = orjson.loads(store.read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return set()
    return {key for key in found if isinstance(key, str)} if isinstance(found, list) else set()


def _remember(store: Path, keys: set[str]) -> None:
    """Keep the verdicts; where that cannot be, they are worked out again next time."""
    try:
        with AtomicFile(store, force=True) as file:
            file.write(orjson.dumps(sorted(keys)))
    except (OSError, RadgenError):
        return
