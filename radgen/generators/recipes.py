"""Which datasets there are, by family and name."""

from __future__ import annotations

from radgen.errors import RadgenError, unknown
from radgen.generators.contrasts import Contrasts
from radgen.generators.findings import FindingContrasts
from radgen.generators.holdout import Holdout
from radgen.generators.pairs import CrossAxis, ScoredPairs
from radgen.ontology.load import Ontology
from radgen.templates.realiser import Realiser

#: Version of the generators: part of every fingerprint, raised when the same seed gives other rows.
RECIPE_VERSION = 2


def contrast_names(ontology: Ontology) -> list[str]:
    """Return every dataset that ``radgen contrasts --axis all`` makes, in the order of the ontology."""
    axes = list(ontology.axes.axes)
    pairs = [f"{name}_pairs" for name in axes if ontology.axes.axes[name].pair_rows]
    return [*axes, *ontology.axes.controlled, *pairs]


def further_names(ontology: Ontology) -> list[str]:
    """Return the datasets that ``--axis all`` leaves out and the collection makes: presence, finding."""
    return list(ontology.axes.further)


def combination_names(ontology: Ontology) -> list[str]:
    """Return every dataset that ``radgen crossaxis --combination all`` makes."""
    return list(ontology.axes.crossaxis.combinations)


def recipe(
    ontology: Ontology,
    realiser: Realiser,
    family: str,
    name: str,
    seed: int,
    holdout: Holdout | None = None,
) -> Contrasts:
    """Return what makes a dataset.

    Raises:
        RadgenError: there is no dataset of that family and name.
    """
    if family == "crossaxis":
        if name not in combination_names(ontology):
            raise RadgenError(unknown("combination", name, [*combination_names(ontology), "all"]))
        return CrossAxis(ontology, realiser, name, seed, holdout)
    known = [*contrast_names(ontology), *further_names(ontology)]
    if name not in known:
        raise RadgenError(unknown("axis", name, [*known, "all"]))
    if name in ontology.axes.further and ontology.axis(name).kind == "finding":
        return FindingContrasts(ontology, realiser, name, seed, holdout)
    if name.endswith("_pairs"):
        return ScoredPairs(ontology, realiser, name, seed, holdout)
    return Contrasts(ontology, realiser, name, seed, holdout)
