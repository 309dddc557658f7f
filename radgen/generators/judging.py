"""The three judging sets (spec §3): Contrast-10, CrossAxis-8, Probe-13; all their strings are test strings.

A string's split is a function of the string alone, so that none of these can stand in the training file of
any radgen dataset, whatever its seed, as long as the shares of the splits are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from radgen import __version__
from radgen.generators.card import card
from radgen.generators.checkers import RowChecker, checker_of
from radgen.generators.folders import MANIFEST, dump, finished, replacing, write_file
from radgen.generators.identity import fingerprint_of
from radgen.generators.make import Made
from radgen.generators.pools import pool
from radgen.generators.probe import probe_rows
from radgen.generators.probe_file import load_probe
from radgen.generators.recipes import RECIPE_VERSION
from radgen.generators.run import realiser_of, shared
from radgen.generators.splits import text_hash
from radgen.generators.stream import Order, stream
from radgen.ontology.load import Ontology, load_ontology, packaged
from radgen.templates.phrasings import load_phrasings

FAMILY = "judging"
SEED = 13
Rows = list[dict[str, Any]]


def _orders(name: str, ontology: Ontology, files: tuple[str, ...]) -> list[Order]:
    """Return the orders that make up a set of the generators' sentences."""
    family = "contrasts" if name == "contrast_10" else "crossaxis"
    parts = list(ontology.axes.axes if family == "contrasts" else ontology.axes.crossaxis.combinations)
    shares = shared(ontology.axes.judging[name], len(parts))
    return [
        Order(family, part, rows, SEED, files, only="test") for part, rows in zip(parts, shares, strict=True)
    ]


def _lines(order: Order) -> list[bytes]:
    """Make the rows of one order."""
    return [row.line for row, _ in stream(order, realiser=realiser_of(order))]


def _rows_of(name: str, ontology: Ontology, files: tuple[str, ...], workers: int) -> list[bytes]:
    """Return the lines of a set; its axes or combinations are made side by side."""
    if name == "probe_13":
        return [orjson.dumps(row) for row in probe_rows(ontology)]
    orders = _orders(name, ontology, files)
    if workers <= 1:
        return [line for order in orders for line in _lines(order)]
    with pool(min(workers, len(orders))) as processes:
        return [line for lines in processes.map(_lines, orders) for line in lines]


SETS = ("contrast_10", "crossaxis_8", "probe_13")
ABOUT = {
    "contrast_10": "Triplets on the ten single axes, from the test split: for ordering accuracy an axis.",
    "crossaxis_8": "Pairs that differ on two axes, from the test split: for Spearman and side-flip response.",
    "probe_13": "Triplets in 13 groups of 50 whose sentences are written apart from all other phrasings.",
}


def make_judging(
    out: Path, *, ontology_files: tuple[str, ...] = (), workers: int = 1, force: bool = False
) -> list[Made]:
    """Write the judging sets to ``out/judging/<name>``; what stands there already is left alone.

    Raises:
        DatasetError: a place holds something else, or cannot be written.
    """
    ontology = load_ontology(ontology_files)
    return [_make(name, out, ontology, ontology_files, workers, force) for name in SETS]


def _phrasings(name: str, ontology: Ontology) -> str:
    """Return the fingerprint of what a set is said with: Probe-13 has a phrasing file of its own."""
    if name == "probe_13":
        return sha256(packaged("radgen.generators", "probe.yaml")[0].text.encode()).hexdigest()
    return load_phrasings(ontology).fingerprint


def _volume(name: str, ontology: Ontology) -> int:
    """Return how many rows a set has."""
    if name == "probe_13":
        probe = load_probe()
        return probe.rows_per_group * len(probe.groups)
    return ontology.axes.judging[name]


def _identity(name: str, rows: int, ontology: Ontology, phrasings: str) -> str:
    return fingerprint_of(
        {
            "recipe_version": RECIPE_VERSION,
            "family": FAMILY,
            "name": name,
            "seed": SEED,
            "ontology": ontology.fingerprint,
            "phrasings": phrasings,
        },
        rows,
    )


def _make(
    name: str, out: Path, ontology: Ontology, files: tuple[str, ...], workers: int, force: bool
) -> Made:
    folder = out / FAMILY / name
    phrasings = _phrasings(name, ontology)
    identity = _identity(name, _volume(name, ontology), ontology, phrasings)
    if finished(folder, identity, force):
        manifest = orjson.loads((folder / MANIFEST).read_bytes())
        rows = {"test": manifest["files"]["test.jsonl"]["rows"]}
        texts = manifest["texts"]
        return Made(folder, rows, {}, {}, [], False, texts["distinct"] / texts["all"], name)
    lines = _rows_of(name, ontology, files, workers)
    found: Rows = [orjson.loads(line) for line in lines]
    columns = list(found[0])
    texts = [key for key in ("anchor", "positive", "negative", "sentence1", "sentence2") if key in columns]
    hashes = [text_hash(row[key]) for row in found for key in texts]
    label = "score" if "score" in columns else None
    data = b"".join(line + b"\n" for line in lines)
    groups = Counter(str(row.get("axis") or row.get("combination")) for row in found)
    manifest = {
        "radgen": "dataset",
        "family": FAMILY,
        "name": name,
        "command": " ".join(["radgen benchmark", *(f"--ontology {Path(path).name}" for path in files)]),
        "version": __version__,
        "recipe_version": RECIPE_VERSION,
        "seed": SEED,
        "fingerprint": identity,
        "ontology": ontology.fingerprint,
        "phrasings": phrasings,
        "columns": columns,
        "files": {"test.jsonl": {"rows": len(lines), "bytes": len(data), "sha256": sha256(data).hexdigest()}},
        "groups": dict(sorted(groups.items())),
        "texts": {"all": len(hashes), "distinct": len(set(hashes))},
    }
    struct = _struct(found) if "distances" in columns else {}
    with replacing(folder) as partial:
        write_file(partial / "test.jsonl", data)
        text = card(
            title=f"radgen judging set: {name}",
            about=ABOUT[name] + " For judging only: its strings never occur in a training file.",
            columns=columns,
            texts=texts,
            label=label,
            rows={"test": len(lines)},
            manifest=manifest,
            struct=struct,
            examples=found[:: max(1, len(found) // 3)][:3],
        )
        write_file(partial / "README.md", text.encode())
        write_file(partial / MANIFEST, dump(manifest))
    return Made(folder, {"test": len(lines)}, {}, {}, [], True, len(set(hashes)) / len(hashes), name)


def _struct(rows: Rows) -> dict[str, list[str]]:
    keys = sorted({key for row in rows for key in row["distances"]})
    return {"distances": keys, "sigmas": keys}


def verify_judging(
    folder: Path, manifest: Mapping[str, Any], ontology: Ontology, verdict: Any
) -> Iterator[tuple[str, int | None, str]]:
    """Yield (file, row, reason) for what is wrong in a judging set: its rows are checked as their axis's."""
    path = folder / "test.jsonl"
    checkers: dict[str, RowChecker] = {}
    digest, count = sha256(), 0
    try:
        data = path.read_bytes()
    except OSError as error:
        yield str(path), None, f"cannot be read: {error.strerror}"
        return
    digest.update(data)
    probe = manifest.get("name") == "probe_13"
    for count, line in enumerate(data.splitlines(keepends=True), 1):
        try:
            row = orjson.loads(line)
            group = str(row["combination"] if "combination" in row else row["axis"])
        except (orjson.JSONDecodeError, KeyError, TypeError) as error:
            yield str(path), count, f"not a row of a judging set: {error}"
            continue
        if group not in checkers:
            family = "probe" if probe else "crossaxis" if "combination" in row else "contrasts"
            checkers[group] = checker_of({"family": family, "name": group}, ontology)
        for reason in checkers[group].row("test", line):
            yield str(path), count, reason
    verdict.rows["test"] = count
    verdict.texts = sum(checker.texts_seen for checker in checkers.values())
    texts: set[int] = set().union(*(checker.seen_texts for checker in checkers.values()))
    verdict.distinct = len(texts)
    stored = manifest.get("files", {}).get("test.jsonl", {})
    for key, value in (("rows", count), ("bytes", len(data)), ("sha256", digest.hexdigest())):
        if stored.get(key) != value:
            yield str(path), None, f"{key}: the manifest says {stored.get(key)}, the file has {value}"
    expected = {"all": verdict.texts, "distinct": verdict.distinct}
    if manifest.get("texts") != expected:
        yield (
            str(folder / MANIFEST),
            None,
            f"texts: the manifest says {manifest.get('texts')}, found {expected}",
        )
    identity = fingerprint_of(manifest, count)
    if manifest.get("fingerprint") != identity:
        text = f"fingerprint: the manifest says {manifest.get('fingerprint')}, its own parts give {identity}"
        yield str(folder / MANIFEST), None, text
    if manifest.get("ontology") == ontology.fingerprint:
        phrasings = _phrasings(str(manifest.get("name")), ontology)
        if manifest.get("phrasings") != phrasings:
            text = f"phrasings: the manifest says {manifest.get('phrasings')}, those loaded have {phrasings}"
            yield str(folder / MANIFEST), None, text


__all__: Sequence[str] = ["SETS", "make_judging", "verify_judging"]
