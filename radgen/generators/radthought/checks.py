"""Whether the sentences of a record say only what its findings support, read by the rules extractor.

- what a sentence states is a finding of the report, with no attribute that the report does not state, and no
  firmer than there
- what it denies the report denies, with every restriction of the denial
- what it only considers (possible at most) may be a new finding, as long as the report does not deny it
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from radgen.extract.rules import RulesExtractor
from radgen.generators.radthought.record import CERTAINTY, Level, Record, RecordError, firmness

State = Mapping[str, Any]
_POSSIBLE = CERTAINTY.index("possible")
_OPEN = ("finding", "presence", "certainty")


def check_texts(record: Record, extractor: RulesExtractor) -> None:
    """Check every sentence of a record.

    Raises:
        RecordError: the first sentence that says what the findings do not support, by level and finding.
    """
    for level, place, problem in text_problems(record, extractor):
        raise RecordError(f"{level} order, sentence {place}: {problem}")


def text_problems(record: Record, extractor: RulesExtractor) -> Iterator[tuple[str, int, str]]:
    """Yield level, number of the sentence, and what it says that is not supported."""
    states = record.states()
    for number, text in enumerate(record.first_order, 1):
        problem = _first_problem(text, states[number], extractor)
        if problem:
            yield "first", number, problem
    sentences: dict[Level, Sequence[str]] = {
        "second": record.second_order,
        "third": record.third_order,
        "synthesis": (record.synthesis,),
    }
    for level, texts in sentences.items():
        for number, text in enumerate(texts, 1):
            for state, _ in extractor.states(text):
                problem = unsupported(state, list(states.values()))
                if problem:
                    yield level, number, problem


def _first_problem(text: str, state: State, extractor: RulesExtractor) -> str | None:
    """Return what is wrong with a sentence of the first order: it states its finding, and no other."""
    read = [found for found, _ in extractor.states(text)]
    if not any(found["finding"] == state["finding"] for found in read):
        return f"does not state {state['finding']}"
    for found in read:
        problem = unsupported(found, [state])
        if problem or found["finding"] != state["finding"]:
            return problem or f"{found['finding']} is another finding"
    return None


def unsupported(said: State, report: Sequence[State]) -> str | None:
    """Return why the findings of a report do not support what is said of one, None if they do."""
    tag = said["finding"]
    own = [state for state in report if state["finding"] == tag]
    denied = [state for state in own if state["presence"] == "absent"]
    if said["presence"] == "absent":
        if not own:
            return f"denies {tag}, which the report does not mention"
        if not any(_within(state, said) for state in denied):
            return f"denies more of {tag} than the report"
        return None
    there = [state for state in own if state["presence"] != "absent"]
    considered = firmness(said) <= _POSSIBLE  # what cannot be excluded is possible
    if not there:
        if denied and any(_within(state, said) for state in denied):
            return f"{tag} is denied by the report"
        if not considered:
            return f"states {tag}, which the report does not mention"
        extra = [
            name for name in ("severity", "acuity", "size_mm", "temporal_change", "count") if name in said
        ]
        return f"gives {tag} {extra[0]}, which the report does not state" if extra else None
    # The extractor may lay an attribute of one finding of a sentence on the next: it is stated all the same.
    fields = [
        name
        for name in said
        if name not in _OPEN and not any(state.get(name) == said[name] for state in report)
    ]
    if fields:
        return f"gives {tag} {fields[0]}, which the report does not state"
    if not considered and not any(firmness(said) <= firmness(state) for state in there):
        return f"states {tag} more firmly than the report"
    return None


def _within(less: State, more: State) -> bool:
    """Whether every attribute of one state stands in another, too."""
    return all(more.get(name) == value for name, value in less.items() if name not in _OPEN)
