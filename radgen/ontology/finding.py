"""The canonical finding (spec §1): what one description states about one finding.

A field that the text does not state is ``None``; nothing is inferred and nothing has a default.
Sizes and distances are in millimetres.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Presence = Literal["present", "absent", "indeterminate"]
Certainty = Literal["cannot_exclude", "possible", "probable", "definite"]
Severity = Literal["trace", "mild", "moderate", "severe"]
Laterality = Literal["left", "right", "bilateral", "midline"]
Lobe = Literal["upper", "middle", "lingula", "lower"]
Zone = Literal["apical", "upper", "mid", "lower", "basal"]
SizeComparator = Literal["lt", "gt", "approx", "up_to"]
CountCategory = Literal["single", "few", "multiple", "innumerable"]
Density = Literal["ground_glass", "part_solid", "solid", "calcified"]
Margin = Literal["smooth", "lobulated", "ill_defined", "spiculated"]
Distribution = Literal["focal", "multifocal", "diffuse"]
AxialDistribution = Literal["central", "perihilar", "peripheral", "subpleural"]
TemporalChange = Literal["resolved", "decreased", "stable", "increased", "new"]
Acuity = Literal["acute", "subacute", "chronic"]
Temporality = Literal["current", "historical", "hypothetical"]
Millimetres = Annotated[float, Field(gt=0, le=2000)]


class Evidence(BaseModel):
    """A span of the source text: ``source[start:end] == text``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]


class Finding(BaseModel):
    """One finding in one description (spec §1). Unstated fields are ``None``.

    ``absent`` together with another attribute is a restricted negation ("no new nodule").
    ``resolved`` is ``absent`` plus ``temporal_change="resolved"``.
    """

    model_config = ConfigDict(extra="forbid")

    finding: str
    presence: Presence | None = None
    certainty: Certainty | None = None
    severity: Severity | None = None
    severity_min: Severity | None = None
    laterality: Laterality | None = None
    asymmetry: Literal["left", "right"] | None = None
    lobe: Lobe | None = None
    zone: Zone | None = None
    anatomy: str | None = None
    segment: str | None = None
    level: str | None = None
    size_mm: Millimetres | None = None
    size_dims_mm: list[Millimetres] | None = None
    size_range_mm: list[Millimetres] | None = None
    size_comparator: SizeComparator | None = None
    prior_size_mm: Millimetres | None = None
    distance_mm: Annotated[float, Field(ge=0, le=2000)] | None = None
    count: Annotated[int, Field(ge=1, le=1000)] | None = None
    count_category: CountCategory | None = None
    density: Density | None = None
    margin: Margin | None = None
    distribution: Distribution | None = None
    axial_distribution: AxialDistribution | None = None
    temporal_change: TemporalChange | None = None
    acuity: Acuity | None = None
    temporality: Temporality | None = None
    morphology: list[str] | None = None
    evidence: Evidence | None = None

    def stated(self) -> dict[str, Any]:
        """Return the stated fields only, in the order of the table in §1, without evidence.

        >>> Finding(finding="pleural_effusion", presence="present", laterality="left").stated()
        {'finding': 'pleural_effusion', 'presence': 'present', 'laterality': 'left'}
        """
        return self.model_dump(exclude_none=True, exclude={"evidence"})


#: Fields of a state in the order of §1; evidence is not part of a state.
FIELDS: tuple[str, ...] = tuple(name for name in Finding.model_fields if name != "evidence")


def check_state(state: dict[str, Any]) -> Finding:
    """Validate a stored state (a mapping of stated fields) and return it as a finding.

    Raises:
        pydantic.ValidationError: a field is unknown or has a value outside §1.
    """
    return Finding.model_validate(state)
