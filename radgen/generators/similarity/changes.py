"""Changes of a section and their targets: reordered, findings added, sentences left out (spec §5)."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from radgen.generators.similarity.sections import Block, Section, denied_systems, joined
from radgen.generators.similarity.settings import PerturbSettings
from radgen.ontology.radsim import Policy


@dataclass
class Perturbed:
    """One perturbed section."""

    kind: str
    text: str
    score: float
    blocks: list[Block]
    changed: list[str] = field(default_factory=list)
    weights: dict[str, float] = field(default_factory=dict)


def addition_target(k: int, n: int) -> float:
    """Return the tag Jaccard of a section with k findings and the same with n more: k / (k + n).

    >>> addition_target(4, 2)
    0.6666666666666666
    """
    return k / (k + n)


def retention(weights: dict[str, float], kept: set[str]) -> float:
    """Return the share of prominence that is kept.

    >>> retention({"pneumothorax": 3.0, "scarring": 1.0}, {"pneumothorax"})
    0.75
    """
    total = sum(weights.values())
    return sum(weight for tag, weight in weights.items() if tag in kept) / total if total else 1.0


def reorder(section: Section, rng: Random) -> Perturbed | None:
    """Shuffle the blocks of a section; None where it has only one."""
    if len(section.blocks) < 2:
        return None
    blocks = list(section.blocks)
    for _ in range(4):
        rng.shuffle(blocks)
        if [block.text for block in blocks] != [block.text for block in section.blocks]:
            return Perturbed("reordered", joined(blocks), 1.0, blocks)
    return None


def add(
    section: Section, pool: list[Block], aim: float, rng: Random, options: PerturbSettings, policy: Policy
) -> Perturbed | None:
    """Add sentences of other reports, about to the aimed target.

    Their findings are none that the section names, and of no organ system that its summaries deny.
    """
    denied = denied_systems(policy, section.states)
    mine = {tag for block in section.blocks for tag in block.tags}
    named = {tag for block in section.blocks for tag in block.named}
    k = len(mine)
    if not k or not pool:
        return None
    wanted = max(1, min(options.most_added, round(k * (1 - aim) / aim)))
    blocks, changed, new = list(section.blocks), [], set[str]()
    for _ in range(options.tries):
        block = pool[int(rng.random() * len(pool))]
        if any(policy.system(tag) in denied for tag in block.tags):
            continue
        if block.named & (named | new) or len(new) + len(block.tags) > wanted:
            continue
        blocks.insert(int(rng.random() * (len(blocks) + 1)), block)
        changed.append(block.text)
        new |= block.tags
        if len(new) == wanted:
            break
    score = addition_target(k, len(new))
    if not new or not options.low <= score <= options.high:
        return None
    return Perturbed("added", joined(blocks), score, blocks, changed)


def omit(section: Section, aim: float, rng: Random, options: PerturbSettings) -> Perturbed | None:
    """Leave sentences out until about the aimed share of prominence is kept."""
    if len(section.blocks) < 2:
        return None
    order = [index for index, block in enumerate(section.blocks) if block.states]
    rng.shuffle(order)
    gone: set[int] = set()
    now = 1.0
    best: tuple[float, set[int]] | None = None
    for index in order:
        trial = gone | {index}
        left = {tag for at, block in enumerate(section.blocks) if at not in trial for tag in block.named}
        score = retention(section.weights, left)
        if not left or score < options.low:
            continue
        if score <= options.high and (best is None or abs(score - aim) < abs(best[0] - aim)):
            best = (score, trial)
        if abs(score - aim) <= abs(now - aim):  # else it would take too much: others may fit better
            gone, now = trial, score
    if best is None:
        return None
    score, gone = best
    blocks = [block for at, block in enumerate(section.blocks) if at not in gone]
    changed = [section.blocks[at].text for at in sorted(gone)]
    return Perturbed("omitted", joined(blocks), score, blocks, changed, dict(section.weights))
