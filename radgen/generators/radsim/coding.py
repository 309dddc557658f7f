"""Descriptions as arrays of codes: what ``coded.py`` scores by the million (spec §4)."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from radgen.generators.radsim.agreement import SHAPES, level, presence_of, rank_of, severity_of, size_of
from radgen.generators.radsim.policy import canonical, content_hash, state_hash
from radgen.ontology.finding import Finding
from radgen.ontology.radsim import PRESENCES, Policy

SIDES = ("left", "right", "bilateral", "midline")
#: First group number of the continua; tags are their own group below it.
CONTINUA = 1 << 20
_ACUITY = ("acute", "subacute", "chronic")
_CHANGE = ("decreased", "stable", "increased", "new")  # "resolved" restricts nothing
#: Free text that is only compared for equality.
WORDS = ("anatomy", "segment", "level", "axial_distribution")

#: Columns of codes with their array types; -1 is unstated (NaN for sizes and levels).
_COLUMNS: dict[str, str] = {
    "tag": "i",
    "group": "i",
    "presence": "b",
    "side": "b",
    "acuity": "b",
    "change": "b",
    "size": "d",
    "severity": "f",
    "certainty": "f",
    "rank": "f",
    "density": "f",
    "margin": "f",
    "distribution": "f",
    "anatomy": "i",
    "segment": "i",
    "level": "i",
    "axial_distribution": "i",
    "words": "i",
    "stated": "B",
    "hash": "Q",
}
_DTYPES = {"i": np.int32, "b": np.int8, "B": np.uint8, "d": np.float64, "f": np.float32, "Q": np.uint64}
#: Bits of ``stated``: attributes that a state says something of, besides presence.
BITS = {
    name: 1 << k
    for k, name in enumerate(("size", "severity", "laterality", "spatial", "morphology", "certainty"))
}


@dataclass
class Coded:
    """Descriptions as codes: description ``k`` has the findings ``offsets[k]:offsets[k + 1]``, by group.

    Attributes:
        columns: arrays over all findings (see ``_COLUMNS``).
        offsets: int64, one more than there are descriptions.
        hashes: uint64, content hash of each description.
        general: uint64, bits of the systems that a description's summaries deny.
        sets: the sets of morphology words by their code.
    """

    columns: dict[str, NDArray[Any]]
    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    general: NDArray[np.uint64]
    sets: list[frozenset[str]]

    def __len__(self) -> int:
        return len(self.hashes)


@dataclass
class Tables:
    """Relations of the ontology's findings as matrices.

    Attributes:
        tags: codes of the findings; tags that the ontology does not have come after.
        system: by tag, the organ system, -1 for none.
        related: float32 [tags, tags], B_family of two different findings.
        continuum: float64 by group, what presence is multiplied with where tags differ.
    """

    tags: dict[str, int]
    system: NDArray[np.int32]
    related: NDArray[np.float32]
    systems: dict[str, int]


def tables(policy: Policy) -> Tables:
    """Return the matrices of a policy."""
    ontology = policy.ontology
    tags = {tag: index for index, tag in enumerate(ontology.findings)}
    systems = {name: index for index, name in enumerate(ontology.anatomy.systems)}
    if len(systems) > 64:
        raise ValueError("more than 64 organ systems")
    system = np.array([systems[entry.system] for entry in ontology.findings.values()], np.int32)
    related = np.zeros((len(tags), len(tags)), np.float32)
    by_family: dict[str, list[int]] = {}
    for tag, entry in ontology.findings.items():
        by_family.setdefault(entry.family, []).append(tags[tag])
    for members in by_family.values():
        related[np.ix_(members, members)] = policy.constants.same_family
    for (a, b), weight in policy.relations.items():
        i, j = tags[a], tags[b]
        related[i, j] = related[j, i] = max(related[i, j], weight)
    return Tables(tags, system, related, systems)


@dataclass
class Coder:
    """Turns descriptions into codes, one after another, in little memory.

    >>> from radgen.ontology import load_ontology
    >>> from radgen.ontology.radsim import load_policy
    >>> coder = Coder(load_policy(load_ontology()))
    >>> coder.add([{"finding": "pleural_effusion", "presence": "present"}])
    >>> len(coder.coded())
    1
    """

    policy: Policy
    _columns: dict[str, array[Any]] = field(init=False)
    _offsets: array[int] = field(default_factory=lambda: array("q", [0]))
    _hashes: array[int] = field(default_factory=lambda: array("Q"))
    _general: array[int] = field(default_factory=lambda: array("Q"))
    _words: dict[str, dict[str, int]] = field(default_factory=lambda: {name: {} for name in WORDS})
    _sets: dict[frozenset[str], int] = field(default_factory=dict)
    _ids: dict[bytes, int] = field(default_factory=dict)
    _keys: list[bytes] = field(default_factory=list)
    _rows: list[tuple[Any, ...]] = field(default_factory=list)
    _denies: list[int] = field(default_factory=list)
    texts: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._columns = {name: array(kind) for name, kind in _COLUMNS.items()}
        self.tables = tables(self.policy)
        self._masks = {
            tag: sum(1 << self.tables.systems[name] for name in systems)
            for tag, systems in self.policy.constants.general.items()
        }

    def add(self, findings: Iterable[Finding | Mapping[str, Any]]) -> None:
        """Append one description."""
        self.add_ids(self.intern(findings))

    def intern(self, findings: Iterable[Finding | Mapping[str, Any]]) -> array[int]:
        """Return the numbers of the distinct states of a description, in canonical order.

        A state that is said again and again is kept once; ``texts`` has its JSON.
        """
        out = array("i")
        for key, state in canonical(findings).items():
            number = self._ids.get(key)
            if number is None:
                number = self._ids[key] = len(self._rows)
                self._keys.append(key)
                self._rows.append(self._row(state))
                self.texts.append(orjson.dumps(state))
                absent = state.get("presence") == "absent"
                self._denies.append(self._masks.get(state["finding"], 0) if absent else 0)
            out.append(number)
        return out

    def add_ids(self, numbers: Iterable[int]) -> None:
        """Append a description whose states were interned; the numbers are in the order of ``intern``."""
        numbers = list(numbers)
        self._hashes.append(content_hash(self._keys[number] for number in numbers))
        rows = sorted((self._rows[number] for number in numbers), key=_place)
        general = 0
        for number in numbers:
            general |= self._denies[number]
        for row in rows:
            for column, value in zip(self._columns.values(), row, strict=True):
                column.append(value)
        self._general.append(general)
        self._offsets.append(self._offsets[-1] + len(rows))

    def _row(self, state: Mapping[str, Any]) -> tuple[Any, ...]:
        nan = float("nan")
        tag = self.tables.tags.setdefault(state["finding"], len(self.tables.tags))
        continuum = self.policy.continuum.get(state["finding"])
        size, severity = size_of(state), severity_of(state)
        rank = rank_of(self.policy, state)
        hedge = state.get("certainty")
        shapes = [level(name, state[name]) if state.get(name) is not None else nan for name in SHAPES]
        words = frozenset(state.get("morphology") or ())
        texts = [
            -1 if state.get(name) is None else self._intern(name, str(state[name]).casefold())
            for name in WORDS
        ]
        stated = BITS["size"] * (size is not None) | BITS["severity"] * (severity is not None)
        stated |= BITS["laterality"] * (state.get("laterality") is not None)
        stated |= BITS["spatial"] * (rank is not None or any(text >= 0 for text in texts))
        stated |= BITS["morphology"] * (bool(words) or any(value == value for value in shapes))
        stated |= BITS["certainty"] * (hedge is not None)
        return (
            tag,
            CONTINUA + continuum if continuum is not None else tag,
            PRESENCES.index(presence_of(state)),
            _code(SIDES, state.get("laterality")),
            _code(_ACUITY, state.get("acuity")),
            _code(_CHANGE, state.get("temporal_change")),
            nan if size is None else size,
            nan if severity is None else severity,
            nan if hedge is None else level("certainty", hedge),
            nan if rank is None else rank,
            *shapes,
            *texts,
            self._sets.setdefault(words, len(self._sets)) if words else -1,
            stated,
            state_hash(state),
        )

    def _intern(self, name: str, text: str) -> int:
        table = self._words[name]
        return table.setdefault(text, len(table))

    def coded(self) -> Coded:
        """Return what was added, without a copy: nothing can be added afterwards."""
        return Coded(
            {name: _view(column, _DTYPES[_COLUMNS[name]]) for name, column in self._columns.items()},
            _view(self._offsets, np.int64),
            _view(self._hashes, np.uint64),
            _view(self._general, np.uint64),
            list(self._sets),
        )


def _place(row: tuple[Any, ...]) -> tuple[int, int]:
    """Findings of a description stand by group, then by hash."""
    return row[1], row[-1]


def _view(column: array[Any], kind: Any) -> NDArray[Any]:
    return np.frombuffer(column, kind) if len(column) else np.zeros(0, kind)


def _code(values: tuple[str, ...], value: str | None) -> int:
    return values.index(value) if value in values else -1
