"""``radgen evaluate``: every suite for every model; what cannot be judged is skipped with the reason."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from radgen.errors import RadgenError, unknown
from radgen.ontology.load import Ontology, load_ontology
from radgen.train.encoder import model_path, require_training
from radgen.train.evaluate import judging_sets, sentences
from radgen.train.evaluate.comparing import discrepancies, made_rows, read_rows
from radgen.train.evaluate.cost import cost
from radgen.train.evaluate.curriculum import curriculum, trained_model
from radgen.train.evaluate.encoders import Encoder, open_encoder
from radgen.train.evaluate.heads import heads
from radgen.train.evaluate.outcome import Outcome, SkippedError, Sure
from radgen.train.evaluate.probes import probes
from radgen.train.evaluate.reports import Pool, read_pool
from radgen.train.evaluate.retrieval import queries, retrieval
from radgen.train.evaluate.settings import SUITES, EvaluateFile, check_findings, load_settings
from radgen.train.evaluate.states import states

Show = Callable[[int], None]
#: Gives a function that shows how many texts of a suite are encoded.
Watch = Callable[[str], AbstractContextManager[Show]]
_SETS = {"contrasts": "contrast_10", "crossaxis": "crossaxis_8", "probe": "probe_13"}


@dataclass(frozen=True)
class Request:
    """What a user asks for.

    Attributes:
        models: folders, hub ids or ``minilm``.
        suites: names of ``SUITES``.
        judging: folder of ``radgen benchmark``.
        reports: any source that ``radgen reports`` reads, or None.
        labels: CSV of human labels of the reports, or None.
        pool: a key of ``tokens.sections``, or None.
        discrepancies: folder of ``radgen discrepancies``, or None: they are made from the reports.
        radjudge: RadJudge's file, or None.
        radthought: records of ``radgen radthought``, or None.
        states: folder that ``radgen states`` wrote.
        full: judge every row of the judging sets.
        cache: folder for vectors, or None.
    """

    models: tuple[str, ...]
    suites: tuple[str, ...] = SUITES
    judging: Path = Path("data/judging")
    reports: Path | None = None
    labels: Path | None = None
    pool: str | None = None
    discrepancies: Path | None = None
    radjudge: Path | None = None
    radthought: Path | None = None
    states: Path = Path("data")
    full: bool = False
    cache: Path | None = None
    seed: int | None = None
    device: str | None = None
    settings: tuple[str, ...] = ()
    ontology: tuple[str, ...] = ()


@dataclass
class Result:
    """One suite of one model: what was found, or why it was skipped."""

    suite: str
    model: str
    outcome: Outcome
    reason: str | None = None


@dataclass
class Model:
    """A model as the results describe it; numbers are None where it could not be loaded."""

    name: str
    hash: str | None = None
    dimensions: int | None = None
    max_tokens: int | None = None
    parameters: int | None = None
    curriculum: dict[str, Any] | None = None


class Bench:
    """Settings, judging sets, reports: what the suites share, read once."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.settings: EvaluateFile = load_settings(request.settings)
        if request.seed is not None:
            self.settings = self.settings.model_copy(update={"seed": request.seed})
        self.ontology: Ontology = load_ontology(request.ontology)
        check_findings(self.settings, self.ontology)
        if request.labels and not request.reports:
            raise RadgenError("--labels: needs --reports, whose labels they are")
        bootstrap = self.settings.bootstrap
        self.sure = Sure(bootstrap.repeats, bootstrap.confidence, self.settings.seed)
        self._sets: dict[str, judging_sets.JudgingSet] = {}

    def judging_set(self, name: str) -> judging_sets.JudgingSet:
        """Return the rows of a judging set that are judged."""
        if name not in self._sets:
            sample = self.settings.sample
            most = dict(zip(_SETS.values(), (sample.contrasts, sample.crossaxis, sample.probe), strict=True))
            rows = 0 if self.request.full else most[name]
            self._sets[name] = judging_sets.read(self.request.judging, name, rows, self.settings.seed)
        return self._sets[name]

    @property
    def sets_read(self) -> dict[str, judging_sets.JudgingSet]:
        """The judging sets that were read so far."""
        return dict(self._sets)

    @cached_property
    def pool(self) -> Pool | None:
        """The reports, None where there are none."""
        request = self.request
        if request.reports is None:
            return None
        return read_pool(
            request.reports,
            self.settings,
            self.ontology,
            kind=request.pool,
            labels=request.labels,
            ontology_files=request.ontology,
        )

    def need_pool(self) -> Pool:
        """Return the reports.

        Raises:
            SkippedError: there are none.
        """
        if self.pool is None:
            raise SkippedError("needs --reports")
        return self.pool

    @cached_property
    def wrong_reports(self) -> list[dict[str, Any]]:
        """The discrepancies: given ones, or made from the reports."""
        most = self.settings.sample.discrepancies
        if self.request.discrepancies is not None:
            return read_rows(self.request.discrepancies, most)
        return made_rows(self.need_pool(), most, self.settings.seed)

    def judge(self, suite: str, encoder: Encoder, show: Show) -> Outcome:
        """Run one suite for one model.

        Raises:
            SkippedError: it has nothing to judge.
        """
        settings, sure = self.settings, self.sure
        if suite in _SETS:
            made = self.judging_set(_SETS[suite])
            if not made.rows:
                raise SkippedError(f"{made.name} holds no row with texts")
            if suite == "contrasts":
                return sentences.contrasts(made, encoder, settings, self.ontology, sure, show)
            judge = sentences.crossaxis if suite == "crossaxis" else sentences.probe
            return judge(made, encoder, settings, sure, show)
        if suite == "heads":
            made = self.judging_set("contrast_10")
            return heads(made, encoder, settings, self.ontology, self.request.ontology, sure, show)
        if suite == "discrepancies":
            return self._discrepancies(encoder, show)
        if suite == "states":
            return states(self.request.states, encoder, settings, sure, show)
        if suite == "cost":
            return cost(self.need_pool(), encoder, settings)
        if suite == "retrieval":
            return retrieval(self.pool, self.request.radthought, encoder, settings, sure, show)
        over_reports = {"queries": queries, "probes": probes}
        return over_reports[suite](self.need_pool(), encoder, settings, sure, show)

    def _discrepancies(self, encoder: Encoder, show: Show) -> Outcome:
        request, tokens = self.request, self.settings.tokens
        some = request.reports is not None or request.discrepancies is not None
        length = tokens.sections[request.pool or tokens.default_pool]
        return discrepancies(
            encoder,
            self.settings,
            self.ontology,
            self.sure,
            show,
            rows=(lambda: self.wrong_reports) if some else None,
            tokens=self.pool.tokens if self.pool else length,
            tests=request.radjudge,
        )


def evaluate(
    request: Request,
    watch: Watch = lambda _: nullcontext(lambda _: None),
    done: Callable[[Result], None] = lambda _: None,
) -> tuple[Bench, list[Model], list[Result]]:
    """Judge every model by every suite.

    Args:
        watch: shows how many texts are encoded, for a suite of a model.
        done: called with each result as it comes.

    Returns:
        What the suites shared, the models, and a result for each suite and model.

    Raises:
        RadgenError: a name, a file or a setting is wrong; a model that cannot be judged is skipped instead.
    """
    require_training()
    for suite in request.suites:
        if suite not in SUITES:
            raise RadgenError(f"--suite: {unknown('suite', suite, [*SUITES, 'all'])}")
    bench = Bench(request)
    if bench.pool is not None and request.labels is not None:
        check_labels(bench.pool)
    paths = [trained_model(name) for name in request.models]
    for path in paths:
        model_path(path)  # a wrong name stops everything, before anything is worked out
    models, results = [], []
    for path, label in zip(paths, labels_of(request.models), strict=True):
        model, found = _judged(path, label, bench, watch, done)
        models.append(model)
        results += found
    return bench, models, results


def check_labels(pool: Pool) -> None:
    """Read the labels of a CSV before a model is loaded: a wrong cell is the user's to mend."""
    try:
        pool.labels()
    except SkippedError:  # labels of other reports: the suites that need them say so
        return


def labels_of(names: Sequence[str]) -> list[str]:
    """Return a short, distinct name for each model: the end of its path, as long as it must be."""
    parts = [Path(trained_model(name)).parts or (name,) for name in names]
    parts = [part[:-1] if part[-1] == "model" and len(part) > 1 else part for part in parts]
    out: list[str] = []
    for number, own in enumerate(parts):
        others = [part for other, part in enumerate(parts) if other != number]
        depth = next((k for k in range(1, len(own)) if own[-k:] not in [o[-k:] for o in others]), len(own))
        label = "/".join(own[-depth:]).replace("//", "/")
        out.append(label if label not in out else f"{label} ({number + 1})")
    return out


def _judged(
    path: str, label: str, bench: Bench, watch: Watch, done: Callable[[Result], None]
) -> tuple[Model, list[Result]]:
    request, settings = bench.request, bench.settings
    results: list[Result] = []

    def keep(result: Result) -> None:
        results.append(result)
        done(result)

    tokens = max(settings.tokens.sections.values())
    try:
        encoder = open_encoder(
            path, label, tokens, settings.batch_size, device=request.device, cache=request.cache
        )
    except RadgenError as error:
        for suite in request.suites:
            keep(Result(suite, label, Outcome(), str(error)))
        return Model(label, curriculum=curriculum(path)), results
    model = Model(
        label,
        encoder.hash,
        encoder.dimensions,
        encoder.limit(tokens),
        encoder.parameters,
        curriculum(path),
    )
    for suite in request.suites:
        with watch(f"texts encoded ({suite}, {label})") as show:
            judge = functools.partial(bench.judge, suite, encoder, show)
            try:
                keep(Result(suite, label, judge()))
            except SkippedError as reason:
                keep(Result(suite, label, Outcome(), str(reason)))
    return model, results
