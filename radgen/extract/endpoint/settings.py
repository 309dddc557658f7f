"""The numbers of the endpoint backend: ``data/endpoint/endpoint.yaml`` with a user's file laid over it."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from radgen.yamlfile import Source, merge, read_yaml, validate

Positive = Annotated[float, Field(gt=0)]
Whole = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(gt=0, lt=1)]
Status = Annotated[int, Field(ge=400, le=599)]
Style = Literal["plain", "thinking"]


class Strict(BaseModel):
    """A model that refuses unknown keys and stays as it was read."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Retry(Strict):
    """How one request is tried again."""

    attempts: Whole
    first_wait_s: Positive
    longest_wait_s: Positive
    longest_told_wait_s: Positive
    free_attempts: Whole


class Statuses(Strict):
    """Which HTTP status means what; see the comments in the file."""

    retry: frozenset[Status]
    free: frozenset[Status]
    overload: frozenset[Status]
    no_answer: frozenset[Status]
    stop: frozenset[Status]
    stop_codes: frozenset[str]


class Circuit(Strict):
    """When an endpoint counts as dead, and how it is waited for."""

    failures: Whole
    first_wait_s: Positive
    longest_wait_s: Positive
    probe_timeout_s: Positive
    give_up_s: Positive


class Adapt(Strict):
    """How the number of requests under way follows the endpoint."""

    fewer: Share
    more: Positive


class StoreNumbers(Strict):
    """How often the store is synchronised with the disk, and what it keeps in reserve."""

    rows: Whole
    seconds: Positive
    gather_s: Annotated[float, Field(ge=0, le=0.1)]
    backlog: Whole
    reserve_mb: Annotated[int, Field(ge=0)]
    busy_s: Positive
    patience_s: Annotated[float, Field(ge=0)]
    raw_error_bytes: Whole


class Batch(Strict):
    """Limits of OpenAI batch files."""

    lines: Whole
    megabytes: Positive
    url: str


class Estimate(Strict):
    """What tokens are taken to cost before anything is sent."""

    characters_per_token: Positive
    overhead_tokens: Annotated[int, Field(ge=0)]
    output_tokens: dict[Style, Whole]


class Price(Strict):
    """Money for a million tokens."""

    input: Annotated[float, Field(ge=0)]
    output: Annotated[float, Field(ge=0)]

    def cost(self, input_tokens: float, output_tokens: float) -> float:
        """Return the price of so many tokens.

        >>> Price(input=0.5, output=2.0).cost(1_000_000, 500_000)
        1.5
        """
        return (self.input * input_tokens + self.output * output_tokens) / 1e6


class PreflightNumbers(Strict):
    """The sentence that a server's abilities are tried with; it is nobody's report."""

    sentence: str
    max_tokens: dict[Style, Whole]


class Settings(Strict):
    """``endpoint.yaml``."""

    sampling: dict[Style, dict[str, float]]
    max_tokens: dict[Style, Whole]
    longer_factor: Annotated[float, Field(gt=1)]
    runaway_white_space: Whole
    thinking_switch: bool
    extra_body: dict[str, Any]
    concurrency: Whole
    timeout_s: Positive
    connect_timeout_s: Positive
    grace_s: Annotated[float, Field(ge=0, le=1.5)]
    model_names: dict[str, str]
    retry: Retry
    statuses: Statuses
    circuit: Circuit
    adapt: Adapt
    store: StoreNumbers
    batch: Batch
    read_rows: Annotated[int, Field(ge=1, le=10_000)]
    estimate: Estimate
    prices: dict[str, Price]
    preflight: PreflightNumbers

    def price(self, model: str) -> Price | None:
        """Return the price of a model, of any model (``*``), or ``None`` if neither is known."""
        return self.prices.get(model) or self.prices.get("*")


def packaged_text(name: str) -> str:
    """Return a text file of ``radgen/extract/data/endpoint``."""
    return resources.files("radgen.extract").joinpath("data", "endpoint", name).read_text(encoding="utf-8")


def load_settings(path: str | Path | None = None, **changes: Any) -> Settings:
    """Load the packaged numbers, a user's YAML file over them, and single values over both.

    Args:
        path: a YAML file with any of the keys of ``endpoint.yaml``.
        changes: values by path (``retry__attempts=3``); ``None`` changes nothing.

    Raises:
        radgen.errors.OntologyError: every mistake of the file, each with its line.
        radgen.errors.RadgenError: the file cannot be read.
    """
    name = "radgen/extract/data/endpoint/endpoint.yaml"
    with resources.as_file(resources.files("radgen.extract").joinpath("data/endpoint/endpoint.yaml")) as file:
        sources: list[Source] = [read_yaml(file, name=name, careful=False)]
    if path is not None:
        sources.append(read_yaml(Path(path)))
    data: Any = {}
    for source in sources:
        data = merge(data, source.data)
    for key, value in changes.items():
        if value is not None:
            tree: Any = value
            for part in reversed(key.split("__")):
                tree = {part: tree}
            data = merge(data, tree)
    return validate(Settings, data, sources)
