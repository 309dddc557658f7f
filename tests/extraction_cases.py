"""Comparison of extracted findings with the values that a sentence was written to state."""

from __future__ import annotations

from typing import Any

from radgen.ontology import FIELDS

Record = dict[str, Any]


def problems(case: dict[str, Any], found: list[Record]) -> list[str]:
    """Return what is wrong with the findings of a case, in words; nothing if all is right.

    ``expected`` must be found, with every other field missing; ``accept`` names values that are as right,
    ``optional`` records and fields that do no harm, ``must_not`` values that are wrong wherever they are.
    """
    optional = case.get("optional", [])
    left = list(found)
    wrong: list[str] = []
    for index, expected in enumerate(case["expected"]):
        accepted = case.get("accept", {}).get(str(index), {})
        tags = {expected["finding"], *accepted.get("finding", [])}
        ranked = sorted(
            (
                (differences(expected, record, accepted, optional), record)
                for record in left
                if record["finding"] in tags
            ),
            key=lambda pair: len(pair[0]),
        )
        if not ranked:
            wrong.append(f"not found: {expected}")
            continue
        wrong += ranked[0][0]
        left.remove(ranked[0][1])
    for record in left:
        if not any(all(record.get(name) == value for name, value in extra.items()) for extra in optional):
            wrong.append(f"too much: {record}")
    return wrong + forbidden(case.get("must_not", {}), found)


def differences(expected: Record, record: Record, accepted: Record, optional: list[Record]) -> list[str]:
    """Return the fields in which a record differs from what is right for it."""
    wrong = []
    for name in FIELDS:
        right = [expected.get(name), *accepted.get(name, [])]
        if record.get(name) in right:
            continue
        extras = [
            extra[name] for extra in optional if name in extra and extra["finding"] == expected["finding"]
        ]
        if record.get(name) not in extras:
            wrong.append(f"{expected['finding']}.{name}: {record.get(name)!r}, not {expected.get(name)!r}")
    return wrong


def forbidden(must_not: dict[str, list[Any]], found: list[Record]) -> list[str]:
    """Return the findings that have a value which they must not have."""
    wrong = []
    for name, values in must_not.items():
        for record in found:
            if name == "laterality_on":
                if record["finding"] in values and "laterality" in record:
                    wrong.append(f"a side on {record['finding']}")
            elif record.get(name) in values:
                wrong.append(f"{name} must not be {record[name]!r}")
    return wrong
