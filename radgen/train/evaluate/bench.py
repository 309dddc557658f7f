"""What is asked of ``radgen evaluate``, and what its suites share: settings, judging sets, reports."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from radgen.errors import RadgenError
from radgen.ontology.load import Ontology, load_ontology
from radgen.train.evaluate import judging_sets, sentences
from radgen.train.evaluate.comparing import discrepancies, made_rows, read_rows
from radgen.train.evaluate.cost import cost
from radgen.train.evaluate.encoders import Encoder
from radgen.train.evaluate.heads import heads
from radgen.train.evaluate.outcome import Outcome, SkippedError, Sure
from radgen.train.evaluate.probes import probes
from radgen.train.evaluate.reports import Pool, read_pool
from radgen.train.evaluate.retrieval import queries, read_levels, retrieval
from radgen.train.evaluate.settings import SUITES, EvaluateFile, check_findings, load_settings
from radgen.train.evaluate.states import states

Show = Callable[[int], None]
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

    def check(self) -> None:
        """Read every file before a model is loaded: a wrong row is found before hours are spent.

        Raises:
            RadgenError: a file is not what it should be.
        """
        asked = self.request.suites
        for suite, name in _SETS.items():
            if suite in asked:
                with suppress(SkippedError):  # it is not there: the suite says so
                    self.judging_set(name)
        if self.pool is not None and self.request.labels is not None:
            with suppress(SkippedError):
                self.pool.labels()
        if self.request.discrepancies is not None and "discrepancies" in asked:
            read_rows(self.request.discrepancies, 1)
        if self.request.radthought is not None and "retrieval" in asked:
            levels = {name for pair in self.settings.retrieval.levels for name in pair}
            read_levels(self.request.radthought, levels)

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
