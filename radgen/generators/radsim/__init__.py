"""RadSim (spec §4): how much two descriptions agree, and why."""

from radgen.generators.radsim.policy import Score, score
from radgen.ontology.radsim import Policy, load_policy

__all__ = ["Policy", "Score", "load_policy", "score"]
