"""The shape of the ontology files; every file is validated against these models when it is loaded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from radgen.ontology.finding import Severity

Number = Literal["count", "mass", "plural"]
Kind = Literal["disease", "device", "procedure", "quality", "anatomy"]
Modality = Literal["xr", "ct"]
#: A key of ``axes`` (or ``further``) in ``axes.yaml``; which names there are is checked when all is loaded.
AxisName = str
SeverityWords = Literal["degree", "amount", "fluid"]


class Strict(BaseModel):
    """A model that refuses unknown keys, so that a typing mistake in YAML is never silent."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Term(Strict):
    """One way to name a finding, with its grammatical number.

    In YAML a term is one string: ``"effusion / effusions"`` is a count noun with its plural,
    ``"pleural fluid"`` a mass noun, ``"degenerative changes (plural)"`` a noun that is always plural.
    """

    text: Annotated[str, Field(min_length=1)]
    plural: str | None = None
    number: Number = "mass"

    def form(self, plural: bool) -> str:
        """Return the singular (or only) form, or the plural where there is one."""
        return self.plural if plural and self.plural else self.text


def parse_term(value: Any) -> Any:
    """Read the one-string notation of a term; a mapping is left to pydantic."""
    if not isinstance(value, str):
        return value
    if " / " in value:
        text, plural = value.split(" / ", 1)
        return {"text": text.strip(), "plural": plural.strip(), "number": "count"}
    if value.endswith("(plural)"):
        return {"text": value.removesuffix("(plural)").strip(), "number": "plural"}
    return {"text": value.strip(), "number": "mass"}


TermText = Annotated[Term, BeforeValidator(parse_term)]


class FindingEntry(Strict):
    """One finding of the ontology.

    Attributes:
        name: preferred name in lower case, proper names and abbreviations excepted.
        plural: its plural; absent for mass nouns.
        number: ``count`` if a plural is given, else ``mass`` unless the file says ``plural``.
        synonyms: other names of exactly the same finding, generated and recognised.
        abbreviations: generated and recognised in this case only ("COPD").
        definition: the finding said in words, generated and recognised.
        recognised: forms that reports use and that are recognised but never generated.
        normal: subjects whose normality denies the finding ("heart size" for cardiomegaly).
        system: organ system, a key of ``systems`` in ``anatomy.yaml``.
        family: disease family, a key of ``families.yaml``.
        axes: the single axes that make sense for it.
        sites: keys of ``sites`` in ``anatomy.yaml``, the usual one first.
        severity_words: which words grade it: degree (mild, severe), amount (small, large) or fluid.
        severities: the levels that are used for it; all four if absent.
        levels: the levels that are used for it on other ordinal axes (nothing makes emphysema go away).
        size_mm: smallest and largest size that is plausible, millimetres.
        max_count: the largest number of them that a report would count.
        frequency: reports a modality that state it; filled in from the tags.
    """

    name: Annotated[str, Field(min_length=1)]
    plural: str | None = None
    number: Number | None = None
    synonyms: list[TermText] = []
    abbreviations: list[TermText] = []
    definition: TermText | None = None
    recognised: list[str] = []
    normal: list[str] = []
    kind: Kind = "disease"
    system: str
    family: str
    modalities: list[Modality] = ["xr", "ct"]
    axes: list[AxisName] = []
    sites: Annotated[list[str], Field(min_length=1)]
    severity_words: SeverityWords = "degree"
    severities: list[Severity] | None = None
    levels: dict[AxisName, Annotated[list[str], Field(min_length=2)]] = {}
    size_mm: Annotated[list[float], Field(min_length=2, max_length=2)] | None = None
    max_count: int | None = None
    frequency: dict[Modality, int] = {}

    @property
    def preferred(self) -> Term:
        """The preferred name as a term."""
        number = self.number or ("count" if self.plural else "mass")
        return Term(text=self.name, plural=self.plural, number=number)

    @property
    def terms(self) -> list[Term]:
        """Every term that is generated except the definition, the preferred name first."""
        return [self.preferred, *self.synonyms, *self.abbreviations]

    def levels_on(self, axis: str, every: Sequence[str]) -> Sequence[str]:
        """Return the levels of an ordinal axis that are used for it, out of ``every``."""
        if axis == "severity":
            return self.severities or every
        return [level for level in every if level in self.levels.get(axis, every)]

    @property
    def names(self) -> list[Term]:
        """Every way to name the finding, the definition in words included."""
        return [*self.terms, *([self.definition] if self.definition else [])]


class AliasEntry(Strict):
    """A tag that means another finding, with the attributes that the tag implies."""

    finding: str
    implies: dict[str, Any] = Field(default={}, alias="with")
    name: str | None = None
    synonyms: list[TermText] = []


class NotAFinding(Strict):
    """A tag that states no finding, and why."""

    why: Annotated[str, Field(min_length=1)]


class FindingsFile(Strict):
    """``findings/*.yaml``, and what a user's ``--ontology`` file may hold of it."""

    findings: dict[str, FindingEntry] = {}
    aliases: dict[str, AliasEntry] = {}
    not_findings: dict[str, NotAFinding] = {}


class Axis(Strict):
    """One axis of contrast (spec §2); see ``axes.yaml`` for the kinds."""

    kind: Literal["ordinal", "log_ratio", "side", "location", "presence", "finding"]
    fields: list[str]
    sigma: Annotated[float, Field(gt=0)] | None = None
    levels: list[str] = []
    values: dict[str, float] = {}
    integers: list[int] = []
    again: dict[str, Annotated[int, Field(ge=1, le=20)]] = {}
    targets: dict[str, float] = {}
    side_distance: float | None = None
    train_rows: Annotated[int, Field(gt=0)]
    pair_rows: int = 0


class ControlledAxis(Strict):
    """An axis with part of the context fixed and a prescribed mixture of contrasts."""

    axis: AxisName
    mix: dict[Literal["opposite", "bilateral"], float]
    train_rows: Annotated[int, Field(gt=0)]


class CrossAxis(Strict):
    """Cross-axis pairs (spec §3): which axes vary together, and the constants of eq. (3)."""

    rows: Annotated[int, Field(gt=0)]
    sigma: dict[AxisName, float]
    side_penalty: dict[Literal["same", "bilateral", "opposite"], float]
    combinations: dict[str, Annotated[list[AxisName], Field(min_length=2, max_length=2)]]


class AxesFile(Strict):
    """``axes.yaml``."""

    splits: dict[Literal["train", "validation", "test"], float]
    seed: int
    min_target_gap: float
    max_word_jaccard: float
    min_distinct_texts: float
    lexical_trap_share: float
    rows_per_context: Annotated[int, Field(gt=0)]
    max_rows_per_context: Annotated[int, Field(gt=0)]
    holdout_share: Annotated[float, Field(gt=0, lt=0.5)]
    match_share: Annotated[float, Field(ge=0, le=1)]
    axes: dict[AxisName, Axis]
    controlled: dict[str, ControlledAxis]
    further: dict[str, Axis]
    judging: dict[str, int]
    crossaxis: CrossAxis


class Zone(Strict):
    """A craniocaudal zone; rank 0 is the top."""

    rank: int


class Lobe(Zone):
    """A lobe and the sides that have it."""

    sides: list[Literal["left", "right", "bilateral"]]


class Site(Strict):
    """A place that a finding can sit in.

    Attributes:
        name: what it is called.
        sides: whether it has a left and a right.
        within: singular and plural to say "in the left kidney", "in both kidneys"; absent where a
            finding is not said to be *in* it.
        lobes: whether the five lobes and the lingula apply.
        zones: the craniocaudal zones that apply.
        levels: whether vertebral levels apply.
        segments: whether numbered segments apply.
    """

    name: str
    sides: Literal["paired", "single"]
    within: TermText | None = None
    lobes: bool = False
    zones: list[str] = []
    levels: bool = False
    segments: bool = False
    systems: list[str] = []


class AnatomyFile(Strict):
    """``anatomy.yaml``."""

    zones: dict[str, Zone]
    lobes: dict[str, Lobe]
    sites: dict[str, Site]
    systems: dict[str, str]


class Association(Strict):
    """Two findings that are related without sharing a family, and how strongly (RadSim B_family)."""

    findings: Annotated[list[str], Field(min_length=2, max_length=2)]
    weight: Annotated[float, Field(ge=0, le=1)]
    why: str


class FamiliesFile(Strict):
    """``families.yaml``: the disease families, and associations across them."""

    families: dict[str, str]
    associations: list[Association] = []


class TagRow(Strict):
    """One row of the papers' tag tables: a modality's tag and the reports that have it."""

    tag: str
    modality: Modality
    support: Annotated[int, Field(ge=0)]


class TagsFile(Strict):
    """``tags.yaml``."""

    tags: list[TagRow]
