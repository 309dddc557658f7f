"""What an answer is once the task has read it: the same in the run, in an import and in every export."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from radgen.extract.endpoint import answer
from radgen.extract.endpoint.answer import AnswerError, Kind, Outcome
from radgen.extract.endpoint.steps import Answered
from radgen.extract.endpoint.store import Attempt

T = TypeVar("T")


def judge(reply_body: bytes, read: Callable[[Any], T], runaway: int) -> tuple[Outcome, T | None]:
    """Return what the body of a 200 is, and what the task reads in it."""
    outcome = answer.from_completion(reply_body, runaway)
    return outcome, read_outcome(outcome, read)


def read_outcome(outcome: Outcome, read: Callable[[Any], T]) -> T | None:
    """Let the task read an answer's JSON; an answer that it cannot use changes the outcome."""
    if outcome.kind not in answer.GOOD or outcome.text is None:
        return None
    try:
        return read(answer.read_json(outcome.text))
    except AnswerError as error:
        # Text in the reasoning field that is no answer is thinking: there was no content.
        outcome.kind = Kind.no_content if outcome.kind is Kind.salvaged else error.kind
        outcome.detail = str(error)
    except Exception as error:  # noqa: BLE001  (an answer that was paid is stored whatever the parser does)
        outcome.kind, outcome.detail = Kind.schema, f"the parser failed: {type(error).__name__}"
    return None


def history(attempts: Sequence[Attempt], runaway: int) -> list[Answered]:
    """Return the answered attempts of a key, for a row that an earlier run did not finish."""
    found = []
    for attempt in attempts:
        if attempt.kind in answer.ANSWERED:
            text = answer.from_completion(attempt.raw, runaway).text if attempt.raw else None
            step: Any = attempt.step
            found.append(Answered(step, attempt.kind, text, attempt.detail))
    return found
