"""What is kept out of train beyond strings: states, phrasings, or whole findings (``--holdout``).

String-disjoint test rows still share their templates and nearly all their states with train, so that a
test on them says little about new wording or new findings. A held-out thing occurs in validation and test
only; which things are held out is a hash of their names, the same for every axis, seed and machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from radgen.errors import RadgenError, unknown
from radgen.generators.splits import Split, text_hash
from radgen.ontology.load import Ontology
from radgen.ontology.schema import Term
from radgen.templates.phrasings import load_phrasings
from radgen.templates.realiser import Realiser

KINDS = ("states", "phrasings", "findings")


def _share(*parts: str) -> float:
    """A number in [0, 1) that depends on the name alone."""
    return text_hash("\x1f".join(parts)) / 2**64


def context_key(finding: str, context: Mapping[str, Any]) -> str:
    """Return the name of a context: finding and fixed fields but presence, which follows from them."""
    fields = {name: value for name, value in context.items() if name not in ("presence", "finding")}
    return orjson.dumps({"finding": finding, **fields}, option=orjson.OPT_SORT_KEYS).decode()


@dataclass(frozen=True, eq=False)
class Holdout:
    """What is held out.

    Attributes:
        kind: ``states``, ``phrasings`` or ``findings``.
        share: how much of it.
        frames: held-out frames (phrasings).
        terms: held-out names by finding (phrasings).
        findings: held-out findings (findings).
    """

    kind: str
    share: float
    frames: frozenset[str] = frozenset()
    terms: Mapping[str, frozenset[str]] | None = None
    findings: frozenset[str] = frozenset()

    @classmethod
    def of(cls, kind: str, ontology: Ontology) -> Holdout:
        """Decide what is held out of one kind.

        Raises:
            RadgenError: there is no such kind.
        """
        share = ontology.axes.holdout_share
        if kind == "states":
            return cls(kind, share)
        if kind == "findings":
            return cls(kind, share, findings=frozenset(_held_findings(ontology, share)))
        if kind != "phrasings":
            raise RadgenError(unknown("holdout", kind, KINDS))
        return cls(kind, share, frames=_held_frames(ontology, share), terms=_held_terms(ontology, share))

    def holds_state(self, finding: str, context: Mapping[str, Any]) -> bool:
        """Whether a context, with all its values of the varying axis, is held out."""
        return _share("state", context_key(finding, context)) < self.share

    def holds_job(self, finding: str, context: Mapping[str, Any]) -> bool | None:
        """Whether a whole block is held out; None where that is decided text by text."""
        if self.kind == "findings":
            return finding in self.findings
        return self.holds_state(finding, context) if self.kind == "states" else None

    def plans(
        self,
        realiser: Realiser,
        axis: str,
        finding: str,
        context: Sequence[tuple[str, Any]],
        plan: Sequence[Split],
    ) -> list[tuple[Realiser, Sequence[Split]]]:
        """Return which rows of a block are made, and by what: what is held out goes to the small splits."""
        fixed = {name: value for name, value in context if name != "dims"}
        held = self.holds_job(finding, fixed)
        if held is not None:
            small: list[Split] = ["validation", "test"] * (len(plan) // 8)
            return [(realiser, small if held else ["train"] * len(plan))]
        train = [split for split in plan if split == "train"]
        rest = [split for split in plan if split != "train"]
        return [(self._speaking(realiser, held=False), train), (self._speaking(realiser, held=True), rest)]

    def _speaking(self, realiser: Realiser, *, held: bool) -> Realiser:
        """Return a realiser that uses only held-out phrasings, or none of them."""
        made = realiser.__dict__.setdefault("_holdout", {})
        if held not in made:
            terms = self.terms or {}

            def allowed(tag: str, term: Term) -> bool:
                reserved = terms.get(tag, frozenset())
                return term.text in reserved if held and reserved else (held or term.text not in reserved)

            names = frozenset(name for name in realiser.phrasings.frames if (name in self.frames) == held)
            made[held] = Realiser(realiser.ontology, realiser.phrasings, frames=names, term_filter=allowed)
        speaking: Realiser = made[held]
        return speaking

    def describe(self) -> dict[str, Any]:
        """Return what the manifest lists."""
        out: dict[str, Any] = {"kind": self.kind, "share": self.share}
        if self.kind == "findings":
            out["findings"] = sorted(self.findings)
        if self.kind == "phrasings":
            out["frames"] = sorted(self.frames)
            out["terms"] = {tag: sorted(terms) for tag, terms in sorted((self.terms or {}).items())}
        return out


def _held_findings(ontology: Ontology, share: float) -> set[str]:
    """A share of the findings, at least one of every axis and never all of one."""
    held = {tag for tag in ontology.findings if _share("finding", tag) < share}
    for axis in ontology.axes.axes:
        on = sorted(ontology.on_axis(axis), key=lambda tag: _share("finding", tag))
        if len(on) > 1 and not held & set(on):
            held.add(on[0])
    return held


def _held_frames(ontology: Ontology, share: float) -> frozenset[str]:
    """About a fifth of the frames, by the kind of sentence they make, so that every state can still be said.

    A fifth, not a tenth: some values are said by few kinds of frame, and both sides need some of each.
    """
    frames = load_phrasings(ontology).frames
    kinds: dict[Any, list[str]] = {}
    for name, frame in frames.items():
        special = frozenset(frame.slots & {"pred", "of", "hedge", "front", "label", "whole", "exist"})
        kinds.setdefault((frame.entry.negates, special, tuple(frame.entry.modality)), []).append(name)
    held: set[str] = set()
    for names in kinds.values():
        if len(names) > 1:
            ranked = sorted(names, key=lambda name: _share("frame", name))
            held.update(ranked[: max(1, round(len(names) * 2 * share))])
    return frozenset(held)


def _held_terms(ontology: Ontology, share: float) -> dict[str, frozenset[str]]:
    """One name of each finding that has at least three, of each number (so that it can be counted)."""
    held: dict[str, frozenset[str]] = {}
    for tag, entry in ontology.findings.items():
        by_number: dict[str, list[str]] = {}
        for term in entry.terms:
            by_number.setdefault(term.number, []).append(term.text)
        for names in by_number.values():
            if len(names) >= 3 and len(entry.terms) >= 3:
                chosen = min(names[1:], key=lambda name: _share("term", tag, name))
                held[tag] = held.get(tag, frozenset()) | {chosen}
    return held
