"""RadSim over rule-extracted findings on the 30 ranking tests of RadJudge (CRIMSON).

    python benchmarks/radjudge.py radjudge.json

Scores are compared before the jitter. ">" must hold strictly; "=" holds where the two scores differ by
less than two jitters can (2 x 3 sigma = 0.12). What is missed is printed with its scores and the findings
that were read.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from radgen.extract.rules import default_extractor
from radgen.generators.radsim import Policy, load_policy, score
from radgen.ontology import load_ontology


def margin(policy: Policy) -> float:
    """Return the difference of two scores that their jitters can make."""
    return 2 * policy.constants.jitter.sigma * policy.constants.jitter.clip


def raw(policy: Policy, a: list[Any], b: list[Any]) -> float:
    """Return a score without its jitter."""
    made = score(a, b, policy)
    return max(-1.0, min(1.0, made.agreement + made.family + made.organ))


def holds(rule: str, scores: dict[str, float], tolerance: float) -> bool:
    """Whether one expectation ("C1 > C2", "C1 = C2") holds."""
    first, sign, second = rule.split()
    difference = scores[first] - scores[second]
    return abs(difference) < tolerance if sign == "=" else difference > 1e-9


def judge(path: Path) -> list[dict[str, Any]]:
    """Return for each test whether it holds, with scores and what was read."""
    policy = load_policy(load_ontology())
    extractor = default_extractor()
    out = []
    for category in json.loads(path.read_text()):
        for test in category["tests"]:
            truth = extractor.extract(test["ground_truth"])
            read = {name: extractor.extract(entry["text"]) for name, entry in test["candidates"].items()}
            scores = {name: raw(policy, truth, found) for name, found in read.items()}
            rules = test["expected_ranking"]
            rules = [rules] if isinstance(rules, str) else rules
            wrong = [rule for rule in rules if not holds(rule, scores, margin(policy))]
            context = any("context" in entry for entry in test["candidates"].values())
            texts = {entry["text"] for entry in test["candidates"].values()}
            same = context and len(texts) == 1
            out.append(
                {
                    "id": test["id"],
                    "category": category["category"],
                    "wrong": wrong,
                    "scores": scores,
                    "why": "the candidates' texts are equal: only age and indication differ" if same else "",
                    "read": {"truth": truth, **read},
                }
            )
    return out


def report(path: Path) -> None:
    """Print how many tests hold, and every miss with its reason."""
    results = judge(path)
    misses = [result for result in results if result["wrong"]]
    print(f"RadJudge: {len(results) - len(misses)} of {len(results)} as expected")
    for miss in misses:
        scores = ", ".join(f"{name} {value:.3f}" for name, value in miss["scores"].items())
        print(f"{miss['id']} ({miss['category']}): expected {' and '.join(miss['wrong'])}; {scores}")
        print(f"    {miss['why']}" if miss["why"] else "    read:")
        for name, findings in miss["read"].items() if not miss["why"] else ():
            print(f"      {name}: {[finding.stated() for finding in findings]}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path, help="radjudge.json")
    report(parser.parse_args().file)


if __name__ == "__main__":
    main()
