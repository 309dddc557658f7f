"""The settings of ``radgen evaluate``: ``data/evaluate*.yaml``, checked when they are read."""

from __future__ import annotations

import functools
import hashlib
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from radgen.errors import RadgenError, unknown
from radgen.ontology.load import Ontology
from radgen.ontology.schema import Strict
from radgen.yamlfile import Source, merge, read_yaml, validate

SUITES = (
    "contrasts",
    "crossaxis",
    "probe",
    "retrieval",
    "queries",
    "discrepancies",
    "probes",
    "heads",
    "states",
    "cost",
)
Share = Annotated[float, Field(gt=0, lt=1)]
Whole = Annotated[int, Field(ge=1)]
Rows = Annotated[int, Field(ge=0)]


class Bootstrap(Strict):
    """How intervals are drawn."""

    repeats: Annotated[int, Field(ge=100)]
    confidence: Share


class Tokens(Strict):
    """Tokens after which a text is cut."""

    judging: Whole
    sentences: Whole
    sections: dict[str, Whole]
    archive_pool: str
    default_pool: str
    probes: Whole
    radthought: Whole


class Sample(Strict):
    """Rows that are judged where a set has more; 0 is all of them."""

    contrasts: Rows
    crossaxis: Rows
    probe: Rows
    discrepancies: Whole
    cost: Whole
    tsne: Whole


class ContrastSettings(Strict):
    """Failures that are kept, matrices that are drawn."""

    failures: Rows
    matrices: list[str]
    most_count: Whole


class RetrievalSettings(Strict):
    """Cut-offs of recall, and of MRR and nDCG; levels of RadThought."""

    recall: list[Whole]
    k: Whole
    levels: list[Annotated[list[str], Field(min_length=2, max_length=2)]]


class Query(Strict):
    """A short query and the findings that answer it."""

    text: str
    findings: Annotated[list[str], Field(min_length=1)]


class SideQuery(Query):
    """A query for one side."""

    side: Literal["left", "right"]


class QuerySettings(Strict):
    """Finding queries and queries for a side."""

    k: Whole
    findings: list[Query]
    sides: list[SideQuery]


class LabelSettings(Strict):
    """What the rules' findings mean for a label."""

    uncertain: list[str]
    restricting: list[str]
    kinds: list[str]
    no_finding: str
    findings: dict[str, list[str]]
    normal_columns: list[str]


class ProbeSettings(Strict):
    """Linear probes on frozen vectors."""

    train_share: Share
    validation_share: Share
    sizes: list[Whole]
    repeats: Whole
    strengths: list[Annotated[float, Field(gt=0)]]
    least_positives: Whole
    least_reports: Whole
    steps: Whole


class HeadSettings(Strict):
    """Attribute heads on frozen vectors."""

    attributes: list[str]
    dimensions: Whole
    epochs: Whole
    batch_size: Whole
    learning_rate: Annotated[float, Field(gt=0)]
    train_triplets: Whole
    combinations: Rows
    test_pairs: Whole
    positive_above: float


class DiscrepancyJudging(Strict):
    """Scores of reports with one wrong sentence."""

    aggregate: Literal["mean", "min"]
    kinds: list[str]
    tie: Annotated[float, Field(ge=0)]
    equal: Annotated[float, Field(ge=0)]


class TsneSettings(Strict):
    """The map of findings sections."""

    labels: list[str]
    perplexity: Annotated[float, Field(gt=0)]


class EvaluateFile(Strict):
    """``evaluate.yaml``."""

    seed: int
    bootstrap: Bootstrap
    batch_size: Whole
    tokens: Tokens
    sample: Sample
    contrasts: ContrastSettings
    retrieval: RetrievalSettings
    queries: QuerySettings
    labels: LabelSettings
    probes: ProbeSettings
    heads: HeadSettings
    discrepancies: DiscrepancyJudging
    tsne: TsneSettings


class Measure(Strict):
    """One measure: how it is called, its formula, where it comes from, which way is better."""

    title: str
    formula: str
    source: str
    better: Literal["higher", "lower", "none"] = "higher"
    unit: str = "share"


class MeasuresFile(Strict):
    """``evaluate_measures.yaml``."""

    measures: dict[str, Measure]


class Quoted(Strict):
    """Figures of one measure by encoder and group."""

    source: str
    measure: str
    figures: dict[str, dict[str, float]]


class QuotedFile(Strict):
    """``evaluate_quoted.yaml``."""

    quoted: list[Quoted]


def _packaged(name: str) -> Source:
    with resources.as_file(resources.files("radgen.train").joinpath("data", name)) as path:
        return read_yaml(Path(path), name=f"radgen/train/data/{name}", careful=False)


def load_settings(paths: tuple[str, ...] = ()) -> EvaluateFile:
    """Return the packaged settings with the user's files laid over them (lists and numbers replace).

    Raises:
        OntologyError: with every mistake of the files, by line.
        RadgenError: a file cannot be read.
    """
    sources = [_packaged("evaluate.yaml"), *(read_yaml(Path(path)) for path in paths)]
    data: dict[str, Any] = {}
    for source in sources:
        data = merge(data, source.data)
    return validate(EvaluateFile, data, sources)


def check_findings(settings: EvaluateFile, ontology: Ontology) -> None:
    """Check that queries and labels name canonical findings of the ontology.

    Raises:
        RadgenError: a name is unknown, or another name of a finding.
    """
    named = [query.findings for query in (*settings.queries.findings, *settings.queries.sides)]
    for tags in (*named, *settings.labels.findings.values()):
        for tag in tags:
            if tag not in ontology.findings:
                raise RadgenError(f"settings of evaluate: {unknown('finding', tag, ontology.findings)}")


def settings_hash(settings: EvaluateFile) -> str:
    """Return the sha256 of what the figures depend on."""
    return hashlib.sha256(settings.model_dump_json().encode()).hexdigest()


@functools.cache
def measures() -> dict[str, Measure]:
    """Return the measures by key, in the order of the file."""
    source = _packaged("evaluate_measures.yaml")
    return validate(MeasuresFile, source.data, [source]).measures


@functools.cache
def quoted() -> tuple[Quoted, ...]:
    """Return the paper's figures."""
    source = _packaged("evaluate_quoted.yaml")
    return tuple(validate(QuotedFile, source.data, [source]).quoted)
