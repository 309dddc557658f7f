"""What to do next for a row, from the attempts that were answered: a pure function, so that a run which
was killed between an answer and its repair goes on with the repair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from radgen.extract.endpoint.answer import GOOD, INVALID, TOO_SHORT, Kind

Step = Literal["first", "longer", "repair"]


@dataclass(slots=True)
class Answered:
    """An attempt that the model answered: which step it was, what it came to, and what it said."""

    step: Step
    kind: Kind
    text: str | None = None
    detail: str | None = None


@dataclass(slots=True)
class Send:
    """Send a request: with more tokens if ``longer``, after the answer that ``repair`` mends if given."""

    step: Step
    longer: bool
    repair: Answered | None = None


@dataclass(slots=True)
class Verdict:
    """The row is finished: with a result, or as a dead letter for the reason of its last attempt."""

    good: bool


def decide(history: Sequence[Answered]) -> Send | Verdict:
    """Return the next step of a row.

    One retry with more tokens after an answer that was cut off, one repair request after one that is
    invalid, whichever comes first; a refusal or a rejected request is final.

    >>> decide([])
    Send(step='first', longer=False, repair=None)
    >>> decide([Answered("first", Kind.length)])
    Send(step='longer', longer=True, repair=None)
    >>> decide([Answered("first", Kind.length), Answered("longer", Kind.white_space)])
    Verdict(good=False)
    """
    if not history:
        return Send("first", longer=False)
    last = history[-1]
    longer = any(answer.kind in TOO_SHORT for answer in history)
    invalid = [answer for answer in history if answer.kind in INVALID]
    if last.kind in GOOD:
        return Verdict(good=True)
    if last.kind in TOO_SHORT and sum(answer.kind in TOO_SHORT for answer in history) == 1:
        return Send("longer", longer=True, repair=invalid[-1] if invalid else None)
    if last.kind in INVALID and len(invalid) == 1:
        return Send("repair", longer=longer, repair=last)
    return Verdict(good=False)
