"""Row checkers: what must hold of one row of a family, recomputed from its texts and states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import orjson
from pydantic import ValidationError

from radgen.errors import DatasetError, RadgenError
from radgen.generators.blocks import context_hash, row_id
from radgen.generators.contexts import possible
from radgen.generators.contrasts import Contrasts
from radgen.generators.holdout import KINDS, Holdout
from radgen.generators.pairs import CrossAxis, ScoredPairs
from radgen.generators.splits import Splitter, text_hash
from radgen.ontology.distance import axis_distance, axis_target, finding_target, joint_parts, joint_target
from radgen.ontology.finding import Finding
from radgen.ontology.load import Ontology
from radgen.templates.realiser import words_of

CLOSE = 1e-9


def near(a: Any, b: Any) -> bool:
    """Whether two numbers are equal but for rounding."""
    return isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a - b) <= CLOSE


class RowChecker:
    """What holds of every row; a subclass adds what holds of its family.

    Attributes:
        name: the dataset's name, which is in every id.
        columns: the keys that every row has.
        text_columns: those that hold a sentence.
        state_columns: those that hold a state, in the order of the texts.
        varying: fields that may differ between the states of a row.
    """

    columns: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ()
    state_columns: tuple[str, ...] = ()
    label = "score"

    def __init__(self, name: str, ontology: Ontology, varying: Sequence[str], holdout: str | None) -> None:
        self.name = name
        self.ontology = ontology
        self.varying = tuple(varying)
        self.splitter = Splitter(ontology.axes.splits)
        self.holdout = Holdout.of(holdout, ontology) if holdout in KINDS else None
        self.keys = frozenset(self.columns)
        self.seen_rows: set[bytes] = set()
        self.seen_texts: set[int] = set()
        self.texts_seen = 0
        self.targets: Counter[str] = Counter()
        self._states: dict[bytes, str] = {}

    def row(self, split: str, line: bytes) -> Iterator[str]:
        """Yield what is wrong with one line of a file of a split."""
        try:
            row = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            yield f"not JSON: {error}"
            return
        if not isinstance(row, dict) or row.keys() != self.keys:
            found = set(row) if isinstance(row, dict) else set()
            yield f"columns: missing {sorted(self.keys - found)}, unknown {sorted(found - self.keys)}"
            return
        texts = [row[name] for name in self.text_columns]
        if not all(isinstance(text, str) and text.strip() for text in texts):
            yield "a text is empty or no text"
            return
        yield from self._identity(row, line)
        hashes = [text_hash(text) for text in texts]
        for column, value in zip(self.text_columns, hashes, strict=True):
            found_split = self.splitter.of_hash(value)
            if found_split != split:
                yield f"{column}: the string belongs to {found_split}, it stands in {split}"
        self.texts_seen += len(texts)
        self.seen_texts.update(hashes)
        if len(set(hashes)) < len(hashes):
            yield "a text stands twice in the row"
        key = b"".join(value.to_bytes(8, "big") for value in hashes)
        if key in self.seen_rows:
            yield "the same row stands twice"
        self.seen_rows.add(key)
        states = [row[name] for name in self.state_columns]
        bad = [
            reason
            for column, state in zip(self.state_columns, states, strict=True)
            if (reason := self._state(column, state))
        ]
        if bad:
            yield from bad
            return
        yield from self._fixed(row, states)
        yield from self._held(split, row, states)
        try:
            yield from self.family(row, states, texts)
        except (RadgenError, KeyError, ValueError, TypeError) as error:
            yield f"the states do not lie on the axis: {error}"
            return
        self.targets[f"{row[self.label]:.2f}"] += 1

    def family(
        self, row: Mapping[str, Any], states: Sequence[Mapping[str, Any]], texts: Sequence[str]
    ) -> Iterator[str]:
        """Yield what is wrong with targets and filters of one row."""
        raise NotImplementedError  # every family has its own

    def _identity(self, row: Mapping[str, Any], line: bytes) -> Iterator[str]:
        before, mark, after = line.partition(b',"id":"')
        _, closing, rest = after.partition(b'",')
        if not (mark and closing and line.endswith(b"}\n") and line.startswith(b"{")):
            yield "the line is not written as radgen writes it"
        elif row_id(self.name, before[1:], rest[:-2]).decode() != row["id"]:
            yield f"id: {row['id']} is not the hash of this row: the row was changed"

    def _state(self, column: str, state: Any) -> str | None:
        """Return what is wrong with a state; every distinct state is looked at once."""
        key = orjson.dumps(state)
        if key not in self._states:
            self._states[key] = self._check_state(state)
        reason = self._states[key]
        return f"{column}: {reason}" if reason else None

    def _check_state(self, state: Any) -> str:
        try:
            finding = Finding.model_validate(state)
        except ValidationError as error:
            first = error.errors()[0]
            return f"not a canonical finding: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        if finding.stated() != state:
            return "holds fields that are not stated"
        entry = self.ontology.findings.get(finding.finding)
        if entry is None:
            return f"unknown finding '{finding.finding}'"
        if not possible(state):
            return "a combination that no radiologist would write"
        if finding.lobe and finding.laterality not in self.ontology.anatomy.lobes[finding.lobe].sides:
            return f"there is no {finding.laterality} {finding.lobe} lobe"
        if finding.temporal_change == "resolved" and finding.presence != "absent":
            return "resolved, but not absent"
        return ""

    def _fixed(self, row: Mapping[str, Any], states: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        rest = [{k: v for k, v in state.items() if k not in self.varying} for state in states]
        for column, other in zip(self.state_columns[1:], rest[1:], strict=True):
            if other != rest[0]:
                names = sorted(k for k in {*other, *rest[0]} if other.get(k) != rest[0].get(k))
                first = self.state_columns[0]
                yield f"{column}: differs from {first} in {', '.join(names)}, which is no axis here"
        if row.get("context") != context_hash(states[0], self.varying):
            yield f"context: {row.get('context')} is not the hash of the state without the axis"

    def _held(self, split: str, row: Mapping[str, Any], states: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        if self.holdout is None or split != "train":
            return
        state = states[0]
        if self.holdout.kind == "phrasings":
            for frame in row["phrasings"]:
                if frame in self.holdout.frames:
                    yield f"phrasings: '{frame}' is held out and stands in train"
            # A name is held out of its own finding: "adenopathy" may stand in "axillary adenopathy".
            for column, stated in zip(self.text_columns, states, strict=True):
                for term in (self.holdout.terms or {}).get(stated["finding"], frozenset()):
                    if says(row[column], term, self.ontology, stated["finding"]):
                        yield f"{column}: '{term}' is held out and stands in train"
            return
        context = {k: v for k, v in state.items() if k not in (*self.varying, "finding")}
        if self.holdout.holds_job(state["finding"], context):
            yield f"the {self.holdout.kind[:-1]} is held out and stands in train"


def says(text: str, term: str, ontology: Ontology, finding: str) -> bool:
    """Whether a text names a finding by this term and by no longer one that contains it."""
    # "Left lung: nodule" has a heading before the name "nodule", it does not say "lung nodule".
    low = " : ".join(f" {' '.join(words_of(part))} " for part in text.split(":"))
    forms = {}
    for candidate in ontology.findings[finding].terms:
        for form in filter(None, (candidate.text, candidate.plural)):
            words = f" {' '.join(words_of(form))} "
            if words in low:
                forms[words] = candidate.text
    return bool(forms) and forms[max(forms, key=len)] == term


class TripletChecker(RowChecker):
    """Single-axis triplets."""

    columns = Contrasts.columns
    text_columns = Contrasts.texts
    state_columns = ("anchor_state", "positive_state", "negative_state")
    label = "negative_target"

    def __init__(self, name: str, ontology: Ontology, holdout: str | None) -> None:
        self.axis = ontology.axis(name)
        self.controlled = name in ontology.axes.controlled
        super().__init__(name, ontology, self.axis.fields, holdout)
        self._targets: dict[bytes, tuple[float, float]] = {}

    def family(
        self, row: Mapping[str, Any], states: Sequence[Mapping[str, Any]], texts: Sequence[str]
    ) -> Iterator[str]:
        """Targets, gap, word Jaccard; a fixed place where the axis is controlled."""
        axes, anatomy = self.ontology.axes, self.ontology.anatomy
        if row["axis"] != self.name:
            yield f"axis: expected {self.name}, found {row['axis']}"
        anchor, positive, negative = states
        if self.axis.kind == "finding":
            relation = self.ontology.relation
            found = tuple(
                finding_target(self.axis, relation(anchor["finding"], other["finding"]))
                for other in (positive, negative)
            )
        else:
            found = tuple(axis_target(self.axis, anatomy, anchor, other) for other in (positive, negative))
        for column, value in zip(("positive_target", "negative_target"), found, strict=True):
            if not near(row[column], value):
                yield f"{column}: {row[column]}, but the states give {value}"
        if found[0] - found[1] < axes.min_target_gap - CLOSE:
            yield f"the targets lie {found[0] - found[1]:.3f} apart, expected at least {axes.min_target_gap}"
        first, second = set(words_of(texts[0])), set(words_of(texts[1]))
        overlap = len(first & second) / max(1, len(first | second))
        if overlap >= axes.max_word_jaccard:
            yield (
                f"word Jaccard of anchor and positive is {overlap:.3f}, "
                f"expected under {axes.max_word_jaccard}"
            )
        if self.controlled and not (anchor.get("zone") or anchor.get("lobe")):
            yield "expected a fixed zone or lobe"


class PairChecker(RowChecker):
    """Scored pairs on one axis."""

    columns = ScoredPairs.columns
    text_columns = ScoredPairs.texts
    state_columns = ("state1", "state2")

    def __init__(self, name: str, ontology: Ontology, holdout: str | None) -> None:
        self.axis_name = name.removesuffix("_pairs")
        self.axis = ontology.axis(self.axis_name)
        super().__init__(name, ontology, self.axis.fields, holdout)

    def family(
        self, row: Mapping[str, Any], states: Sequence[Mapping[str, Any]], texts: Sequence[str]
    ) -> Iterator[str]:
        """Score and distance."""
        anatomy = self.ontology.anatomy
        expected: dict[str, Any] = {
            "axis": self.axis_name,
            "score": axis_target(self.axis, anatomy, *states),
            "distance": axis_distance(self.axis, anatomy, *states),
            "sigma": self.axis.sigma,
        }
        for column, value in expected.items():
            if row[column] != value and not near(row[column], value):
                yield f"{column}: {row[column]}, but the states give {value}"


class CrossChecker(RowChecker):
    """Cross-axis pairs."""

    columns = CrossAxis.columns
    text_columns = CrossAxis.texts
    state_columns = ("state1", "state2")

    def __init__(self, name: str, ontology: Ontology, holdout: str | None) -> None:
        self.axes = tuple(ontology.axes.crossaxis.combinations[name])
        varying = dict.fromkeys(field for axis in self.axes for field in ontology.axis(axis).fields)
        super().__init__(name, ontology, tuple(varying), holdout)

    def family(
        self, row: Mapping[str, Any], states: Sequence[Mapping[str, Any]], texts: Sequence[str]
    ) -> Iterator[str]:
        """Eq. (3) and what explains it."""
        axes, anatomy = self.ontology.axes, self.ontology.anatomy
        distances, sigmas, relation, penalty = joint_parts(axes, anatomy, self.axes, *states)
        expected: dict[str, Any] = {
            "combination": self.name,
            "score": joint_target(axes, anatomy, self.axes, *states),
            "side_relation": relation,
            "side_penalty": penalty,
        }
        for column, value in expected.items():
            if row[column] != value and not near(row[column], value):
                yield f"{column}: {row[column]}, but the states give {value}"
        for column, values in (("distances", distances), ("sigmas", sigmas)):
            if row[column].keys() != values.keys() or not all(
                near(row[column][k], v) for k, v in values.items()
            ):
                yield f"{column}: {row[column]}, but the states give {values}"


class ProbeChecker(TripletChecker):
    """Probe-13: an axis, presence, the synonym group (the finding axis) or the zone group (side fixed)."""

    columns = (*Contrasts.columns, "kind")

    def __init__(self, name: str, ontology: Ontology, holdout: str | None) -> None:
        super().__init__({"synonym": "finding", "zone": "location"}.get(name, name), ontology, holdout)
        self.group, self.name = name, "probe13"
        if name == "zone":
            self.varying = ("zone",)

    def family(
        self, row: Mapping[str, Any], states: Sequence[Mapping[str, Any]], texts: Sequence[str]
    ) -> Iterator[str]:
        """As on the axis; the kind says whether the positive has the anchor's value."""
        if row["axis"] != self.group:
            yield f"axis: expected {self.group}, found {row['axis']}"
        yield from super().family({**row, "axis": self.name}, states, texts)
        kind = "match" if states[0] == states[1] else "ordinal"
        if row["kind"] != kind:
            yield f"kind: {row['kind']}, but the states make it {kind}"


def checker_of(manifest: Mapping[str, Any], ontology: Ontology) -> RowChecker:
    """Return the checker for a dataset.

    Raises:
        DatasetError: the family or the name is unknown.
    """
    family, name = manifest.get("family"), str(manifest.get("name"))
    held = (manifest.get("holdout") or {}).get("kind")
    kinds = {
        "contrasts": TripletChecker,
        "pairs": PairChecker,
        "crossaxis": CrossChecker,
        "probe": ProbeChecker,
    }
    try:
        return kinds[str(family)](name, ontology, held)
    except (KeyError, RadgenError):
        raise DatasetError(f"unknown dataset {family}/{name}") from None


__all__ = ["RowChecker", "checker_of", "near"]
