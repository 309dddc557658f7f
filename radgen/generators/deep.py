"""``radgen verify --deep``: reads every text of a dataset again and compares what it says with its state.

The extractor knows nothing of how a text was made. A field that the state states has to come out equal, one
that it does not state has to be missing; evidence is no field. Each text that says something else is a
problem that shows both.
"""

from __future__ import annotations

import itertools
import multiprocessing
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import orjson

from radgen.errors import DatasetError
from radgen.extract.rules import RulesExtractor
from radgen.generators.folders import MANIFEST, read_manifest
from radgen.generators.splits import SPLITS
from radgen.generators.verify import Problem
from radgen.ontology.load import Ontology, build_ontology
from radgen.yamlfile import Source

State = dict[str, Any]
#: Each column of texts with the column of its state (spec §9).
COLUMNS = (
    ("anchor", "anchor_state"),
    ("positive", "positive_state"),
    ("negative", "negative_state"),
    ("sentence1", "state1"),
    ("sentence2", "state2"),
)
#: Families whose texts radgen wrote itself. The texts of others may come from reports and are not shown.
SHOWN = frozenset(("contrasts", "pairs", "crossaxis", "judging"))
CHUNK = 200
#: Of these families, only the datasets named here have texts that state what their rows say; the others hold
#: predicates, or conclusions beside the states of the whole report.
STATING = {"radthought": frozenset(("first_order",))}


class Extractor(Protocol):
    """What reads a text: ``states`` returns the fields of each finding and the span of its evidence."""

    def states(self, text: str, section: str | None = None) -> list[tuple[State, tuple[int, int]]]: ...


@dataclass
class DeepTally:
    """How far texts and states agree.

    Attributes:
        texts: texts that were read; ``wrong`` of them say something else than their state.
        fields: fields that the text or the state states; ``agreeing`` of them are equal.
    """

    texts: int = 0
    wrong: int = 0
    fields: int = 0
    agreeing: int = 0

    @property
    def share(self) -> float:
        """Fields that agree, of all; 1 where there are none."""
        return self.agreeing / self.fields if self.fields else 1.0

    def add(self, other: DeepTally) -> None:
        """Add the counts of another part of the dataset."""
        self.texts += other.texts
        self.wrong += other.wrong
        self.fields += other.fields
        self.agreeing += other.agreeing


class Comparison(NamedTuple):
    """What one text states against its state: fields in all, those that agree, and the others."""

    fields: int
    agreeing: int
    differing: tuple[str, ...]


def compare(said: Sequence[Mapping[str, Any]], stated: Sequence[Mapping[str, Any]]) -> Comparison:
    """Compare the findings that a text says with those of its state.

    Findings of one name are paired so that most fields agree; what has no partner disagrees in every field.

    >>> compare([{"finding": "scarring", "severity": "mild"}], [{"finding": "scarring", "lobe": "upper"}])
    Comparison(fields=3, agreeing=1, differing=('severity', 'lobe'))
    """
    pairs = sorted(
        (
            (len(state.keys() | other.keys()) - 2 * len(_equal(state, other)), at, by)
            for at, state in enumerate(stated)
            for by, other in enumerate(said)
            if state["finding"] == other["finding"]
        )
    )
    partner: dict[int, int] = {}
    for _, at, by in pairs:
        if at not in partner and by not in partner.values():
            partner[at] = by
    fields = agreeing = 0
    differing: dict[str, None] = {}
    alone = [other for by, other in enumerate(said) if by not in partner.values()]
    for at, state in enumerate(stated):
        other = said[partner[at]] if at in partner else {}
        names = dict.fromkeys((*other, *state))
        equal = _equal(other, state)
        fields += len(names)
        agreeing += len(equal)
        differing.update(dict.fromkeys(name for name in names if name not in equal))
    for other in alone:
        fields += len(other)
        differing.update(dict.fromkeys(other))
    return Comparison(fields, agreeing, tuple(differing))


def _equal(one: Mapping[str, Any], other: Mapping[str, Any]) -> set[str]:
    return {name for name, value in one.items() if name in other and other[name] == value}


def states_its_rows(folder: Path) -> bool:
    """Return whether the texts of a dataset folder are to say what its states say."""
    manifest = read_manifest(folder) or {}
    family = str(manifest.get("family"))
    return family not in STATING or manifest.get("name") in STATING[family]


def deep_problems(
    folder: Path,
    ontology: Ontology,
    extractor: Extractor | None = None,
    *,
    workers: int = 1,
    tally: DeepTally | None = None,
) -> Iterator[Problem]:
    """Yield a problem for every text of a dataset folder that does not say what its state says, in order.

    Args:
        extractor: what reads the texts; the rules extractor over the ontology if absent. Another one is used
            in this process only.
        workers: processes that read.
        tally: is filled while the problems are taken.

    Raises:
        DatasetError: the folder has no manifest, or a file of it cannot be read.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise DatasetError(f"{folder}: no radgen dataset here (expected {MANIFEST})")
    family = str(manifest.get("family"))
    tally = tally if tally is not None else DeepTally()
    show = family in SHOWN
    reader = extractor or RulesExtractor(ontology)
    for split in SPLITS:
        path = folder / f"{split}.jsonl"
        if not path.exists():  # a missing file is a problem of the plain verify; judging sets have one file
            continue
        for problems, part in _parts(path, show, reader, ontology, workers if extractor is None else 1):
            tally.add(part)
            yield from problems


Part = tuple[list[Problem], DeepTally]


def _parts(path: Path, show: bool, reader: Extractor, ontology: Ontology, workers: int) -> Iterator[Part]:
    try:
        with path.open("rb") as file:
            chunks = _chunks(file)
            if workers <= 1:
                for first, lines in chunks:
                    yield read_lines(reader, str(path), first, lines, show)
                return
            yield from _many(path, show, reader, ontology, workers, chunks)
    except OSError as error:
        raise DatasetError(f"{path}: cannot be read: {error.strerror}") from None


def _chunks(lines: Iterator[bytes] | Any) -> Iterator[tuple[int, list[bytes]]]:
    first = 1
    while chunk := list(itertools.islice(lines, CHUNK)):
        yield first, chunk
        first += len(chunk)


_worker: dict[str, Extractor] = {}


def _start(sources: Sequence[Source]) -> None:
    if "reader" not in _worker:  # spawned; a forked process has the parent's
        _worker["reader"] = RulesExtractor(build_ontology(sources))


def _read(path: str, first: int, lines: list[bytes], show: bool) -> Part:
    return read_lines(_worker["reader"], path, first, lines, show)


def _many(
    path: Path,
    show: bool,
    reader: Extractor,
    ontology: Ontology,
    workers: int,
    chunks: Iterator[tuple[int, list[bytes]]],
) -> Iterator[Part]:
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    _worker["reader"] = reader
    waiting: deque[Any] = deque()
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start, initargs=(ontology.user_sources,)
    ) as pool:
        try:
            for first, lines in chunks:
                waiting.append(pool.submit(_read, str(path), first, lines, show))
                if len(waiting) > 3 * workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            _worker.clear()


def read_lines(reader: Extractor, path: str, first: int, lines: Sequence[bytes], show: bool) -> Part:
    """Read the texts of some rows; return the problems and the counts.

    Args:
        first: row of the first line, from 1.
        show: whether a problem quotes its text.
    """
    problems: list[Problem] = []
    tally = DeepTally()
    known: dict[str, list[State]] = {}
    for row, line in enumerate(lines, start=first):
        try:
            pairs = _texts(orjson.loads(line))
        except (orjson.JSONDecodeError, TypeError):
            problems.append(Problem(path, row, "expected a JSON object with texts and their states"))
            continue
        for column, text, stated in pairs:
            said = known.get(text)
            if said is None:
                said = known[text] = [state for state, _ in reader.states(text)]
            found = compare(said, stated)
            tally.texts += 1
            tally.fields += found.fields
            tally.agreeing += found.agreeing
            if found.differing:
                tally.wrong += 1
                problems.append(
                    Problem(path, row, _reason(column, text if show else None, said, stated, found))
                )
    return problems, tally


def _texts(row: Any) -> list[tuple[str, str, list[State]]]:
    """Return the texts of a row that have a state: column, text, findings.

    Raises:
        TypeError: the row, a text or a state has not the shape of §9.
    """
    if not isinstance(row, dict):
        raise TypeError
    out = []
    for column, of in COLUMNS:
        if column not in row or of not in row:
            continue
        states = row[of] if isinstance(row[of], list) else [row[of]]
        if not isinstance(row[column], str) or not all(
            isinstance(s, dict) and "finding" in s for s in states
        ):
            raise TypeError
        out.append((column, row[column], states))
    return out


def _reason(
    column: str, text: str | None, said: Sequence[State], stated: Sequence[State], found: Comparison
) -> str:
    quoted = f' "{text}"' if text is not None else ""
    return (
        f"{column}{quoted} differs from its state in {', '.join(found.differing)}: "
        f"it says {_shown(said)}, the state is {_shown(stated)}"
    )


def _shown(states: Sequence[State]) -> str:
    return "; ".join(" ".join(f"{k}={_value(v)}" for k, v in s.items()) for s in states) or "nothing"


def _value(value: Any) -> str:
    return (
        "×".join(map(_value, value))
        if isinstance(value, list)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
