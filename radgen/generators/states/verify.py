"""``radgen verify`` for sentences by finding and state: everything is recomputed from the rows (spec §9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from radgen.generators.blocks import row_id
from radgen.generators.similarity.folder import bin_of
from radgen.generators.splits import SPLITS, Splitter, text_hash
from radgen.generators.states.corpus import KEPT_APART, STATES, UNNAMED, extractor, state_of
from radgen.generators.states.lines import (
    ACROSS,
    PAIR_COLUMNS,
    SENTENCE_COLUMNS,
    TRIPLET_COLUMNS,
    WITHIN,
    score_of,
)
from radgen.generators.states.phrasing import Phrasings, phrasing_id
from radgen.generators.states.settings import StatesSettings
from radgen.ontology.load import Ontology

Found = tuple[str, int | None, str]
_COLUMNS = {
    "sentences": SENTENCE_COLUMNS,
    "pairs": PAIR_COLUMNS,
    "others": PAIR_COLUMNS,
    "triplets": TRIPLET_COLUMNS,
}
_PAIR = tuple((f"sentence{n}", f"state{n}", f"phrasing{n}", f"presence{n}") for n in (1, 2))
#: Columns of a text: the text, what it states, its phrasing, what is said of the finding.
_TEXTS = {
    "sentences": (("sentence", "state", "phrasing", "presence"),),
    "pairs": _PAIR,
    "others": _PAIR,
    "triplets": tuple(
        (name, f"{name}_state", f"{name}_phrasing", None) for name in ("anchor", "positive", "negative")
    ),
}


class _Texts:
    """Reads each distinct text again, once: its phrasing, split and states."""

    def __init__(self, ontology: Ontology, options: StatesSettings, findings: set[str], reread: bool) -> None:
        self.options = options
        self.findings = findings
        self.rules = extractor(ontology)
        self.phrasings = Phrasings(self.rules, Splitter(options.splits))
        self.own = Splitter(ontology.axes.splits)
        self.reread = reread
        self.known: dict[str, tuple[str, str, list[dict[str, Any]]]] = {}

    def problems(
        self, split: str, text: str, states: list[dict[str, Any]], phrasing: str, tag: str, presence: str
    ) -> Iterator[str]:
        """Yield what a text of a row does not bear out."""
        if text not in self.known:
            said = self.phrasings.of(text)
            states_alone = [state for state, _ in self.rules.states(text)] if self.reread else []
            self.known[text] = (phrasing_id(said), self.phrasings.split(said), states_alone)
        name, own_split, alone = self.known[text]
        if name != phrasing:
            yield "its phrasing is not that of the text"
        if own_split != split:
            yield f"its phrasing belongs to {own_split}"
        if split == "train" and self.own.of(text) != "train":
            yield "its string belongs to another split in other datasets"
        about = self.findings if presence == UNNAMED else (tag,)
        expected = None if presence == UNNAMED else presence
        if any(state_of(states, name, self.options) != expected for name in about):
            yield f"its states do not say {presence} of {tag}"
        if self.reread and any(state_of(alone, name, self.options) != expected for name in about):
            yield f"the text does not read as {presence} of {tag}"


def verify_states(
    folder: Path, manifest: Mapping[str, Any], ontology: Ontology, verdict: Any = None
) -> Iterator[Found]:
    """Yield (file, row, reason) for everything in a folder that is not as it says."""
    where = str(folder / "manifest.json")
    name = str(manifest.get("name"))
    try:
        options = StatesSettings.model_validate(manifest["constants"]["states"])
        findings = set(manifest["constants"]["findings"])
    except (KeyError, TypeError, ValidationError):
        yield where, None, "constants: no settings and findings of radgen states"
        return
    if name not in _COLUMNS or tuple(manifest.get("columns", ())) != _COLUMNS[name]:
        yield where, None, f"columns: not those of states/{name}"
        return
    texts = _Texts(ontology, options, findings, manifest.get("states") == "rules")
    strings: dict[int, str] = {}
    targets: Counter[str] = Counter()
    ids: set[str] = set()
    total = 0
    for split in SPLITS:
        path = folder / f"{split}.jsonl"
        digest, size, rows = sha256(), 0, 0
        try:
            with path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    digest.update(line)
                    size += len(line)
                    rows += 1
                    for reason in _row(line, name, split, texts, strings, ids, findings, targets):
                        yield str(path), number, reason
        except OSError as error:
            yield str(path), None, f"cannot be read: {error.strerror}"
            continue
        total += rows
        if verdict is not None:
            verdict.rows[split] = rows
        stored = manifest.get("files", {}).get(path.name, {})
        for what, value in (("rows", rows), ("bytes", size), ("sha256", digest.hexdigest())):
            if stored.get(what) != value:
                yield str(path), None, f"{what}: the manifest says {stored.get(what)}, the file has {value}"
    if verdict is not None:
        verdict.texts, verdict.distinct = total * len(_TEXTS[name]), len(strings)
    if name != "sentences" and dict(manifest.get("targets", {})) != dict(targets):
        yield where, None, "targets: the counts are not those of the rows"


def _row(
    line: bytes,
    name: str,
    split: str,
    texts: _Texts,
    strings: dict[int, str],
    ids: set[str],
    findings: set[str],
    targets: Counter[str],
) -> Iterator[str]:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        yield "not JSON"
        return
    if not isinstance(row, dict) or tuple(row) != _COLUMNS[name]:
        yield "its columns are not those of the manifest"
        return
    if row["id"] in ids:
        yield "its id stands twice"
    ids.add(row["id"])
    head, found, tail = line.rstrip(b"\n").partition(b',"id":%b,' % orjson.dumps(row["id"]))
    if not found or row_id(name, head[1:], tail[:-1]).decode() != row["id"]:
        yield "its id is no hash of the row"
    if row["finding"] not in findings:
        yield f"'{row['finding']}' is none of the findings of the manifest"
    said = _said(name, row)
    for (text, states, phrasing, _), presence in zip(_TEXTS[name], said, strict=True):
        if strings.setdefault(text_hash(row[text]), split) != split:
            yield "a string of it is in another split too"
        yield from texts.problems(split, row[text], row[states], row[phrasing], row["finding"], presence)
    own = said[:1] if name == "others" else said
    if name != "sentences" and not set(own) <= set(STATES):
        yield "a state of it is neither present nor absent"
    if name == "others" and said[1] != UNNAMED:
        yield f"its second text says {said[1]}, expected {UNNAMED}"
    if name in ("pairs", "others"):
        targets[bin_of(row["score"])] += 1
        if row["score"] != score_of(*said):
            yield f"score {row['score']}, its states give {score_of(*said)}"
        if said[0] == said[1] and row["phrasing1"] == row["phrasing2"]:
            yield "two sentences of one state in one phrasing"
    elif name == "triplets":
        targets[bin_of(row["negative_target"])] += 1
        if (row["positive_target"], row["negative_target"]) != (WITHIN, ACROSS):
            yield f"targets {row['positive_target']}, {row['negative_target']}; expected {WITHIN}, {ACROSS}"
        if row["anchor_phrasing"] == row["positive_phrasing"]:
            yield "anchor and positive have one phrasing"
    elif row["presence"] not in (*STATES, KEPT_APART):
        yield f"unknown presence '{row['presence']}'"


def _said(name: str, row: Mapping[str, Any]) -> list[str]:
    """Return what a row claims that each of its texts says of the finding."""
    if name in ("pairs", "others"):
        return [row["presence1"], row["presence2"]]
    if name == "sentences":
        return [row["presence"]]
    return [row["presence"], row["presence"], next(state for state in STATES if state != row["presence"])]
