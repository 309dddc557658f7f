"""``radgen evaluate``: every suite for every model; what cannot be judged is skipped with the reason."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from radgen.errors import RadgenError, unknown
from radgen.train.encoder import model_path, require_training
from radgen.train.evaluate.bench import Bench, Request, Show
from radgen.train.evaluate.curriculum import curriculum, trained_model
from radgen.train.evaluate.encoders import open_encoder
from radgen.train.evaluate.outcome import Outcome, SkippedError
from radgen.train.evaluate.settings import SUITES

__all__ = ["Bench", "Model", "Request", "Result", "evaluate", "labels_of"]

#: Gives a function that shows how many texts of a suite are encoded.
Watch = Callable[[str], AbstractContextManager[Show]]


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
    bench.check()
    paths = [trained_model(name) for name in request.models]
    for path in paths:
        model_path(path)  # a wrong name stops everything, before anything is worked out
    models, results = [], []
    for path, label in zip(paths, labels_of(request.models), strict=True):
        model, found = _judged(path, label, bench, watch, done)
        models.append(model)
        results += found
    return bench, models, results


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
