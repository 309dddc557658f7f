"""Random descriptions for tests and benchmarks: every field of §1 that RadSim reads, every presence."""

from __future__ import annotations

import random
from typing import Any

CHOICES: dict[str, tuple[Any, ...]] = {
    "certainty": ("cannot_exclude", "possible", "probable", "definite"),
    "severity": ("trace", "mild", "moderate", "severe"),
    "laterality": ("left", "right", "bilateral", "midline"),
    "lobe": ("upper", "middle", "lingula", "lower"),
    "zone": ("apical", "upper", "mid", "lower", "basal"),
    "anatomy": ("bronchus", "lung", "Lung"),
    "segment": ("6", "8"),
    "level": ("T8", "T9"),
    "axial_distribution": ("central", "peripheral"),
    "size_mm": (3.0, 8.0, 12.0, 31.5),
    "size_range_mm": ([4.0, 6.0],),
    "density": ("ground_glass", "part_solid", "solid", "calcified"),
    "margin": ("smooth", "lobulated", "ill_defined", "spiculated"),
    "distribution": ("focal", "multifocal", "diffuse"),
    "temporal_change": ("resolved", "decreased", "stable", "increased", "new"),
    "acuity": ("acute", "chronic"),
    "morphology": (["linear"], ["linear", "nodular"], ["loculated"]),
    "temporality": ("current", "historical"),
}
TAGS = (
    "pleural_effusion",
    "pneumothorax",
    "pulmonary_nodule",
    "lung_mass",
    "pneumonia",
    "consolidation",
    "emphysema",
    "copd",
    "cardiomegaly",
    "fracture",
    "lung_abnormality",
    "cardiopulmonary_abnormality",
    "endotracheal_tube",
    "a_tag_of_nowhere",
)


def random_state(rng: random.Random) -> dict[str, Any]:
    """Return one state with about four attributes."""
    state: dict[str, Any] = {"finding": rng.choice(TAGS)}
    presence = rng.choice(("present", "present", "present", "absent", "absent", "indeterminate", None))
    if presence:
        state["presence"] = presence
    rate = 0.06 if presence == "absent" else 0.2
    for name, values in CHOICES.items():
        if rng.random() < (0.02 if name == "temporality" else rate):
            state[name] = rng.choice(values)
    if state.get("severity") == "moderate" and rng.random() < 0.3:
        state["severity_min"] = "mild"
    return state


def random_description(rng: random.Random) -> list[dict[str, Any]]:
    """Return no finding up to eight, some of one tag."""
    return [random_state(rng) for _ in range(rng.choice((0, 1, 1, 2, 3, 4, 6, 8)))]
