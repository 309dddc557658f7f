"""Synthetic reports (``radgen reports --synthetic N``): findings, impression, labels and the truth (spec §9).

A report is drawn from the ontology: which findings it has (by their frequency, and what belongs together),
what is stated of each, the sentences of its organs in their order, and an impression that repeats what
matters in other words. Row ``i`` depends on the seed, ``i``, the modality asked for and the ontology alone.

``truth`` holds every statement of the report once, with all the fields that the findings state; where the
impression repeats a finding with fewer details, the truth has the fuller statement.
"""

from __future__ import annotations

import hashlib
import itertools
import multiprocessing
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from radgen.errors import RadgenError, unknown
from radgen.extract.readers import Report
from radgen.extract.reports import ReportCounts, write_reports
from radgen.generators.report_draw import Choice, Drawer, State, in_order
from radgen.generators.report_rules import Rules
from radgen.generators.report_settings import Settings, Statement, load_settings
from radgen.generators.report_speech import Speech, Voices
from radgen.ontology.load import Ontology, load_ontology
from radgen.ontology.schema import Modality

#: What --modality may be.
ASKED = ("xr", "ct", "both")
CHUNK = 250
_TRIES = 30


class _Normal:
    """A normal statement with what it denies, worked out once."""

    __slots__ = ("denials", "deny", "share", "statement")

    def __init__(self, statement: Statement, rules: Rules) -> None:
        self.statement = statement
        self.share = statement.share
        self.deny = bool(statement.deny)
        self.denials = [
            (
                in_order({"presence": "absent", **denial}),
                rules.denied_with(denial["finding"], statement.unless),
            )
            for denial in statement.deny or statement.says
        ]


class _Page:
    """A report while it is written: what it has said, and where.

    Attributes:
        states: what is not normal, in the order of the report; ``weights`` their prominence.
        there: those that are, or may be, there.
        sentences: the sentence of each by its place in ``states``.
        named: findings of which the report says something.
        denied: what normal statements deny.
    """

    def __init__(self, states: list[State], weights: list[float]) -> None:
        self.states = states
        self.weights = weights
        self.there = [state for state in states if state["presence"] != "absent"]
        self.sentences: dict[int, str] = {}
        self.named = {state["finding"] for state in states}
        self.truth: list[State] = []
        self.denied: list[State] = []

    def add(self, state: State) -> None:
        """Add to the truth what is not there yet."""
        if state not in self.truth:
            self.truth.append(state)


class Writer:
    """Writes the reports of one modality."""

    def __init__(
        self, ontology: Ontology, settings: Settings, rules: Rules, voices: Voices, modality: Modality
    ) -> None:
        self.ontology = ontology
        self.settings = settings
        self.rules = rules
        self.modality = modality
        self.drawer = Drawer(ontology, settings, rules, modality)
        self.speech = Speech(ontology, settings, rules, voices, modality)
        self.most = Choice(settings.impression.most)
        self.part_of = self._parts()
        self.names = list(settings.parts)
        self.rank = {tag: self.names.index(name) for tag, name in self.part_of.items()}
        self.normal = {
            name: [
                _Normal(statement, rules)
                for statement in part.statements
                if statement.modality in (None, modality)
            ]
            for name, part in settings.parts.items()
        }
        rule = settings.prominence
        self.base = {
            tag: rule.kinds[entry.kind] * rule.findings.get(tag, rule.families.get(entry.family, 1.0))
            for tag, entry in ontology.findings.items()
        }
        names = ("severity", "temporal_change", "certainty", "density")
        self.factors: list[tuple[str, dict[str, float]]] = [(name, getattr(rule, name)) for name in names]
        known = settings.impression.normal
        summaries = [*known.get("both", ()), *known.get(modality, ())]
        self.summaries = [_Normal(statement, rules) for statement in summaries]

    def _parts(self) -> dict[str, str]:
        settings = self.settings
        systems = {system: name for name, part in settings.parts.items() for system in part.systems}
        out = {
            tag: systems.get(entry.system, settings.other) for tag, entry in self.ontology.findings.items()
        }
        out.update({tag: name for name, part in settings.parts.items() for tag in part.findings})
        return out

    def write(self, rng: random.Random) -> dict[str, Any]:
        """Return the columns of one report, without its id."""
        normal = rng.random() < self.settings.normal_share
        states = [] if normal else self._sayable(self.drawer.draw(rng))
        placed = sorted(
            (
                (self.rank[state["finding"]], -self.prominence(state), index, state)
                for index, state in enumerate(states)
            ),
            key=lambda item: item[:3],
        )
        page = _Page([item[3] for item in placed], [-item[1] for item in placed])
        findings = self._findings(rng, page)
        impression = self._impression(rng, page)
        weights: dict[str, float] = {}
        for state, weight in zip(page.states, page.weights, strict=True):
            if state["presence"] == "present":
                tag = state["finding"]
                weights[tag] = max(weights.get(tag, 0.0), weight)
        tags = list(dict.fromkeys(s["finding"] for s in page.truth if s["presence"] == "present"))
        digits = self.settings.prominence.digits
        return {
            "findings": findings,
            "impression": impression,
            "abnormalities": tags,
            "prominence": [round(weights[tag], digits) for tag in tags],
            "truth": page.truth,
        }

    def _sayable(self, states: list[State]) -> list[State]:
        """Leave out details for which the sections have no phrasing."""
        out = []
        for state in states:
            for kept in _fewer(state):
                if self.speech.speaker("findings", kept) is not None:
                    out.append(kept)
                    break
        return out

    def prominence(self, state: State) -> float:
        """Return the weight of a finding in its report, at least 0."""
        rule = self.settings.prominence
        weight = self.base[state["finding"]]
        for name, factors in self.factors:
            if name in state:
                weight *= factors.get(state[name], 1.0)
        if "size_mm" in state:
            low, high = rule.size.limits
            weight *= min(high, max(low, (state["size_mm"] / rule.size.reference_mm) ** rule.size.power))
        return weight

    # --- findings ---

    def _findings(self, rng: random.Random, page: _Page) -> str:
        positives = self._positives(rng, page)
        labelled = rng.random() < self.settings.labelled_share[self.modality]
        least = 1 if page.states else self.settings.least_normal[self.modality]
        for left in reversed(range(_TRIES)):  # a report of a normal chest has to say something
            before = list(page.truth), list(page.denied), set(page.named)
            parts = {name: [*positives.get(name, []), *self._normal(rng, name, page)] for name in self.names}
            said = sum(map(len, parts.values()))
            if said >= least:
                break
            if left:
                page.truth, page.denied, page.named = before
            elif not said:
                raise RadgenError(
                    "reports.parts: no statement says anything of a normal report; raise a share"
                )
        if labelled:
            labels = self.settings.parts
            return "\n".join(
                f"{labels[name].label}: {' '.join(said)}" for name, said in parts.items() if said
            )
        return " ".join(itertools.chain.from_iterable(parts.values()))

    def _positives(self, rng: random.Random, page: _Page) -> dict[str, list[str]]:
        out: dict[str, list[str]] = {}
        states = page.states
        for index, state in enumerate(states):
            if index in page.sentences:
                continue
            said = out.setdefault(self.part_of[state["finding"]], [])
            text, other = self._join(rng, page, index)
            if other is not None:
                page.sentences[index] = page.sentences[other] = text
                page.add(state)
                page.add(states[other])
            else:
                text, states[index] = self.speech.say(rng, state)
                page.sentences[index] = text
                page.add(states[index])
            said.append(text)
        return out

    def _join(self, rng: random.Random, page: _Page, index: int) -> tuple[str, int | None]:
        """Return a sentence for this finding and a later one that belongs to it, and which one."""
        state = page.states[index]
        for other in range(len(page.states)):
            if other <= index or other in page.sentences:
                continue
            for pair in ((state, page.states[other]), (page.states[other], state)):
                if rng.random() < self.settings.joined.share:
                    text = self.speech.join(rng, *pair)
                    if text is not None:
                        return text, other
        return "", None

    def _normal(self, rng: random.Random, name: str, page: _Page) -> list[str]:
        """Return the normal statements of an organ that contradict nothing."""
        factor = self.settings.abnormal_factor if page.states else 1.0
        out = []
        for normal in self.normal[name]:
            if rng.random() < normal.share * factor:
                text = self._statement(rng, normal, page)
                if text:
                    out.append(text)
        return out

    def _statement(self, rng: random.Random, normal: _Normal, page: _Page) -> str:
        """Say a normal statement and keep what it states; empty where it would contradict the report."""
        said = [
            denial
            for denial, beside in normal.denials
            if denial["finding"] not in page.named and self.rules.may_deny(denial, page.there, beside)
        ]
        if not said or (len(said) < len(normal.denials) and not normal.deny):
            return ""
        for denial in said:
            page.named.add(denial["finding"])
            page.denied.append(denial)
            page.add(denial)
        if normal.deny:
            return self.speech.deny(rng, said)
        return self.speech.state_normal(rng, normal.statement)

    # --- impression ---

    def _impression(self, rng: random.Random, page: _Page) -> str:
        rule = self.settings.impression
        points: list[str] = []
        there = page.there
        if not there:
            points.append(self._nothing_acute(rng, page, plain=not page.states))
        ranked = sorted(((weight, -index) for index, weight in enumerate(page.weights)), reverse=True)
        chosen = [-index for weight, index in ranked if weight >= rule.least_prominence]
        chosen = chosen[: int(self.most.draw(rng))]
        acute = not all(self.rules.is_chronic(state) for state in there)
        if there and not acute and (not chosen or rng.random() < rule.not_acute_share):
            text = self._nothing_acute(rng, page, plain=False)
            if text:
                points.append(text)
        if not chosen and not points:
            chosen = [-ranked[0][1]]
        tags = [state["finding"] for state in page.states]
        for index in chosen:
            state = self._shorter(rng, page.states[index], tags.count(tags[index]) == 1)
            points.append(self.speech.repeat(rng, state, page.sentences[index]))
        plain = [state for state in page.denied if len(state) == 2]
        if there and plain and rng.random() < rule.negative_share:
            text = self._again_denied(rng, page, plain)
            if text:
                points.append(text)
        advice = [text for index in chosen for text in rule.advice.get(tags[index], ())]
        if advice and rng.random() < rule.advice_share:
            points.append(advice[int(rng.random() * len(advice))])
        if len(points) > 1 and rng.random() < self.settings.numbered_share[self.modality]:
            return "\n".join(f"{number}. {text}" for number, text in enumerate(points, start=1))
        return " ".join(points)

    def _nothing_acute(self, rng: random.Random, page: _Page, *, plain: bool) -> str:
        """Return a summary that denies what is acute, or that all is normal; empty where that is not so."""
        known = [normal for normal in self.summaries if plain or not normal.statement.plain]
        return self._statement(rng, known[int(rng.random() * len(known))], page) if known else ""

    def _again_denied(self, rng: random.Random, page: _Page, plain: Sequence[State]) -> str:
        """Repeat a denial that matters; empty if the report has none."""
        wanted = self.settings.impression.negatives
        again = [state for state in plain if state["finding"] in wanted]
        return self.speech.deny(rng, [again[int(rng.random() * len(again))]]) if again else ""

    def _shorter(self, rng: random.Random, state: State, alone: bool) -> State:
        """Leave details out of a state as impressions do, none that would change what is said.

        Args:
            alone: the report has no other finding of this name, so that its place may be left out.
        """
        drop = self.settings.impression.drop
        gone: set[str] = {"distance_mm"}
        for name in ("size_mm", "margin", "density", "temporal_change", "severity"):
            if name in state and rng.random() < drop.get(name, 0.0):
                gone.add(name)
        if state["presence"] == "absent":
            gone.discard("temporal_change")
        if "size_mm" in gone:
            gone |= {"size_dims_mm", "size_comparator"}
        sided = "laterality" in self.ontology.findings[state["finding"]].axes
        if (
            alone
            and sided
            and ("lobe" in state or "zone" in state)
            and rng.random() < drop.get("location", 0.0)
        ):
            gone |= {"lobe", "zone"}
        return {name: value for name, value in state.items() if name not in gone}


def _fewer(state: State) -> Iterator[State]:
    """Yield a state, then the same with fewer details."""
    yield state
    groups = (
        ("margin",), ("density",), ("distribution",), ("size_mm", "size_dims_mm", "size_comparator"),
        ("severity",), ("count", "count_category"), ("lobe", "zone"),
    )  # fmt: skip
    for group in groups:
        if any(name in state for name in group):
            state = {name: value for name, value in state.items() if name not in group}
            yield state
    yield {name: value for name, value in state.items() if name in ("finding", "presence", "temporal_change")}


class SyntheticReports:
    """The reports of one seed: row ``i`` is a function of the seed, ``i`` and the ontology.

    Args:
        ontology: what can be said.
        seed: any integer.
        modality: ``xr``, ``ct``, or ``both``: then each row draws its own.

    Raises:
        OntologyError: the section ``reports`` of the user's files has mistakes.
    """

    def __init__(self, ontology: Ontology, seed: int = 42, modality: str = "both") -> None:
        if modality not in ASKED:
            raise RadgenError(f"--modality: {unknown('modality', modality, ASKED)}")
        self.settings = load_settings(ontology)
        rules = Rules(ontology, self.settings)
        voices = Voices(ontology, self.settings)
        self.seed = seed
        self.modality = modality
        weights = {
            name: weight
            for name, weight in self.settings.modalities.items()
            if modality in ("both", name) and (weight > 0 or modality != "both")
        }
        self._modality = Choice(dict.fromkeys(weights, 1.0) if modality != "both" else weights)
        self._writers = {
            name: Writer(ontology, self.settings, rules, voices, name) for name in self._modality.names
        }

    def row(self, index: int) -> dict[str, Any]:
        """Return a report with the columns of §9; ``index`` counts from 0."""
        digest = hashlib.blake2b(f"reports\0{self.seed}\0{self.modality}\0{index}".encode(), digest_size=8)
        rng = random.Random(int.from_bytes(digest.digest()))
        name: Modality = self._modality.draw(rng)
        return {"id": f"{name}-{self.seed}-{index + 1:06d}", **self._writers[name].write(rng)}

    def rows(self, indices: Iterable[int]) -> list[Report]:
        """Return the reports of some rows as ``radgen.extract`` reads reports."""
        return [Report("synthetic", index + 1, self.row(index)) for index in indices]


_worker: dict[str, SyntheticReports] = {}


def _start(files: tuple[str, ...], seed: int, modality: str) -> None:
    _worker["reports"] = SyntheticReports(load_ontology(files), seed, modality)


def _rows(chunk: range) -> list[Report]:
    return _worker["reports"].rows(chunk)


def synthetic_reports(
    number: int,
    *,
    seed: int = 42,
    modality: str = "both",
    ontology_files: Sequence[str | Path] = (),
    workers: int = 1,
) -> Iterator[Report]:
    """Yield reports in order; the same whatever the number of workers, in flat memory.

    Raises:
        RadgenError: fewer than one report is asked for, or the modality is unknown.
        OntologyError: the user's files have mistakes.
    """
    if number < 1:
        raise RadgenError(f"--synthetic {number}: expected at least 1 report")
    files = tuple(str(path) for path in ontology_files)
    made = SyntheticReports(load_ontology(files), seed, modality)  # mistakes end here, not in a worker
    chunks = (range(start, min(start + CHUNK, number)) for start in range(0, number, CHUNK))
    if workers <= 1 or number <= CHUNK:
        for chunk in chunks:
            yield from made.rows(chunk)
        return
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start, initargs=(files, seed, modality)
    ) as pool:
        waiting: deque[Any] = deque()
        try:
            for chunk in chunks:
                waiting.append(pool.submit(_rows, chunk))
                if len(waiting) > 3 * workers:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def write_synthetic(
    number: int,
    out: Path,
    *,
    seed: int = 42,
    modality: str = "both",
    ontology_files: Sequence[str | Path] = (),
    workers: int = 1,
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> ReportCounts:
    """Write synthetic reports to ``out`` (JSONL), as ``write_reports`` writes those of a source."""
    rows = synthetic_reports(
        number, seed=seed, modality=modality, ontology_files=ontology_files, workers=workers
    )
    return write_reports(rows, out, out.with_name("rejects.jsonl"), force=force, progress=progress)


__all__ = ["ASKED", "SyntheticReports", "Writer", "synthetic_reports", "write_synthetic"]
