"""Supervision from reports (spec §5): scored pairs, mined triplets, perturbations, discrepancies."""
