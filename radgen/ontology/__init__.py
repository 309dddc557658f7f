"""What can be true: findings, axes, anatomy, families, the canonical finding, distances."""

from radgen.ontology.distance import axis_distance, axis_target, graded
from radgen.ontology.finding import FIELDS, Evidence, Finding, check_state
from radgen.ontology.load import Ontology, load_ontology
from radgen.ontology.schema import AxisName, FindingEntry, Term

__all__ = [
    "FIELDS",
    "AxisName",
    "Evidence",
    "Finding",
    "FindingEntry",
    "Ontology",
    "Term",
    "axis_distance",
    "axis_target",
    "check_state",
    "graded",
    "load_ontology",
]
