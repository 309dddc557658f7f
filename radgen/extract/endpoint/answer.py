"""From what came back to what it is: spec §8's table of events, as a pure function.

Nothing here prints: an answer may quote a report. ``Outcome.detail`` may, too, and goes to the store and
the dead-letter file only; :data:`EXPLAIN` says the same without a word of the report.
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from radgen.extract.endpoint.settings import Statuses
from radgen.extract.endpoint.transport import NoReply, Reply


class Kind(StrEnum):
    """What one attempt came to; the value is what the store and the output say."""

    ok = "ok"
    salvaged = "salvaged"
    length = "length"
    white_space = "white_space"
    no_content = "no_content"
    invalid_json = "invalid_json"
    schema = "schema_mismatch"
    refusal = "refusal"
    content_filter = "content_filter"
    rejected = "rejected"
    rate_limited = "rate_limited"
    server_error = "server_error"
    no_completion = "no_completion"
    connect = "connect"
    reset = "reset"
    timeout = "timeout"
    stop = "stop"


GOOD = frozenset({Kind.ok, Kind.salvaged})
#: An answer that a longer limit may mend, or that a repair request may mend.
TOO_SHORT = frozenset({Kind.length, Kind.white_space})
INVALID = frozenset({Kind.no_content, Kind.invalid_json, Kind.schema})
#: No answer of the model: tried again.
TRANSIENT = frozenset(
    {Kind.rate_limited, Kind.server_error, Kind.no_completion, Kind.connect, Kind.reset, Kind.timeout}
)
#: The model answered (or the server judged the request): paid, kept, never asked again.
ANSWERED = frozenset(Kind) - TRANSIENT - {Kind.stop}

EXPLAIN: dict[Kind, str] = {
    Kind.length: "the answer was cut off at max_tokens twice",
    Kind.white_space: "the answer ran into white space until max_tokens, twice",
    Kind.no_content: "the answer was empty, and the repair request did not help",
    Kind.invalid_json: "the answer was no JSON, and the repair request did not help",
    Kind.schema: "the answer did not match the schema, and the repair request did not help",
    Kind.refusal: "the model refused",
    Kind.content_filter: "the server's content filter cut the answer off",
    Kind.rejected: "the server rejected the request",
    Kind.rate_limited: "the server went on limiting the rate",
    Kind.server_error: "the server went on failing",
    Kind.no_completion: "the server went on answering with something that is no completion",
    Kind.connect: "the endpoint could not be reached",
    Kind.reset: "the connection broke off at every attempt",
    Kind.timeout: "no answer within the time limit at any attempt",
}


@dataclass(slots=True)
class Outcome:
    """What one attempt came to.

    Attributes:
        text: the model's answer without its thinking, if there is one.
        detail: the reason, for the store; may quote the answer.
        retry_after: seconds that the server asked to wait.
        overload: the server has too much to do.
        no_answer: nothing shows that the endpoint is alive (a dead proxy target, a broken connection).
        input_tokens, output_tokens: what the server counted.
    """

    kind: Kind
    status: int | None = None
    text: str | None = None
    detail: str | None = None
    retry_after: float | None = None
    overload: bool = False
    no_answer: bool = False
    input_tokens: int | None = None
    output_tokens: int | None = None


class AnswerError(Exception):
    """The text is not what was asked for; the message is shown to the model once."""

    def __init__(self, kind: Kind, message: str) -> None:
        self.kind = kind
        super().__init__(message)


def from_failure(failure: NoReply) -> Outcome:
    """Return the outcome of an attempt that got no reply."""
    kind = Kind(failure.kind)
    return Outcome(kind, detail=failure.detail, overload=kind is Kind.timeout, no_answer=True)


def from_reply(reply: Reply, statuses: Statuses, runaway: int) -> Outcome:
    """Return what a reply is, before the task has looked at the text.

    Args:
        runaway: so many characters of white space at the end of a cut-off answer are a runaway.
    """
    if reply.status != 200:
        return _from_status(reply, statuses)
    return from_completion(reply.body, runaway)


def _from_status(reply: Reply, statuses: Statuses) -> Outcome:
    status, wait = reply.status, retry_after(reply.headers)
    code, message = _error_of(reply.body)
    detail = f"HTTP {status}{f': {message}' if message else ''}"
    if status in statuses.stop or code in statuses.stop_codes:
        return Outcome(Kind.stop, status, detail=detail)
    if status in statuses.retry or status >= 500:
        kind = Kind.rate_limited if status in statuses.free else Kind.server_error
        return Outcome(
            kind,
            status,
            detail=detail,
            retry_after=wait,
            overload=status in statuses.overload,
            no_answer=status in statuses.no_answer and wait is None,
        )
    if 200 <= status < 300:
        return Outcome(Kind.no_completion, status, detail=detail)
    return Outcome(Kind.rejected, status, detail=detail)


def _error_of(body: bytes) -> tuple[str | None, str | None]:
    """Return code and message of an OpenAI error object, in the forms that servers use."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None, None
    error = data.get("error", data) if isinstance(data, dict) else None
    if isinstance(error, str):
        return None, _line(error)
    if not isinstance(error, dict):
        return None, None
    message = error.get("message") or error.get("detail")
    code = error.get("code") or error.get("type")
    return str(code) if code else None, _line(str(message)) if message else None


def _line(text: str) -> str:
    """Return the beginning of a server's message in one line."""
    return " ".join(text.split())[:300]


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Return the seconds that ``Retry-After`` asks for: a number, or an HTTP date.

    >>> retry_after({"Retry-After": "120"}), retry_after({}), retry_after({"retry-after-ms": "1500"})
    (120.0, None, 1.5)
    """
    fields = {name.lower(): value for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = fields.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit
        except ValueError:
            date = email.utils.parsedate_tz(value)
            if date is None:
                continue
            seconds = email.utils.mktime_tz(date) - (time.time() if now is None else now)
        if seconds == seconds:  # not a NaN
            return max(0.0, seconds)
    return None


def from_completion(body: bytes, runaway: int) -> Outcome:
    """Return what a 200 is. HTML, cut-off JSON, an error object or no choices are the server's failure."""
    try:
        data = orjson.loads(body)
    except orjson.JSONDecodeError:
        return Outcome(Kind.no_completion, 200, detail="200, but no JSON")
    choice = _first_choice(data)
    if choice is None:
        _, message = _error_of(body)
        detail = f"200 without choices{f': {message}' if message else ''}"
        return Outcome(Kind.no_completion, 200, detail=detail)
    outcome = Outcome(Kind.ok, 200)
    usage = data.get("usage")
    if isinstance(usage, dict):
        outcome.input_tokens = _count(usage.get("prompt_tokens"))
        outcome.output_tokens = _count(usage.get("completion_tokens"))
    message = choice["message"]
    finish = choice.get("finish_reason")
    content = _text(message.get("content"))
    if finish in ("abort", "error"):
        outcome.kind, outcome.detail = Kind.no_completion, f"finish_reason {finish}"
    elif finish == "content_filter":
        outcome.kind, outcome.detail = Kind.content_filter, "finish_reason content_filter"
    elif message.get("refusal"):
        outcome.kind, outcome.detail = Kind.refusal, str(message["refusal"])[:500]
    elif finish == "length":
        tail = len(content) - len(content.rstrip())
        outcome.kind, outcome.detail = Kind.length, "finish_reason length"
        if tail >= runaway:
            outcome.kind = Kind.white_space
            outcome.detail += f", the last {tail} characters are white space"
        outcome.text = content
    else:
        outcome.text = without_thinking(content)
        if not outcome.text:
            reasoning = _text(message.get("reasoning_content")) or _text(message.get("reasoning"))
            outcome.text = without_thinking(reasoning)
            # Only a finished answer can be one that a server put into the wrong field.
            outcome.kind = Kind.salvaged if outcome.text and finish == "stop" else Kind.no_content
            if outcome.kind is Kind.no_content:
                outcome.detail = "no text in content"
    return outcome


def _first_choice(data: Any) -> dict[str, Any] | None:
    choices = data.get("choices") if isinstance(data, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) and isinstance(choice.get("message"), dict) else None


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _text(value: Any) -> str:
    """Return text that a server gives as a string or as a list of parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        texts = [part.get("text") for part in value if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return ""


def without_thinking(text: str) -> str:
    """Return the text after the thinking; a template may have given the opening mark itself.

    >>> without_thinking('<think>small, so mild</think>{"findings": []}')
    '{"findings": []}'
    >>> without_thinking('so mild</think>\\n{"findings": []}')
    '{"findings": []}'
    >>> without_thinking("<think>never finished")
    ''
    """
    _, mark, after = text.rpartition("</think>")
    if mark:
        return after.strip()
    head, mark, _ = text.partition("<think>")
    return (head if mark else after).strip()


_FENCE = re.compile(r"```[a-zA-Z]*\s*\n(.*?)```", re.DOTALL)
_DECODER = json.JSONDecoder()
#: The most opening braces in a talkative answer that are tried as the start of the object.
_STARTS = 20


def read_json(text: str) -> Any:
    """Return the JSON value of an answer; fences and words around an object are forgiven.

    Raises:
        AnswerError: there is none.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        problem = str(error)
    fenced = _FENCE.search(text)
    start = -1
    for candidate in ([fenced.group(1)] if fenced else []) + [text]:
        for _ in range(_STARTS):
            start = candidate.find("{", start + 1)
            if start < 0:
                break
            try:
                value, _end = _DECODER.raw_decode(candidate, start)
            except RecursionError:
                break
            except json.JSONDecodeError as error:
                # What stands inside a broken or cut-off object is not the answer.
                if not candidate[:start].strip() or error.pos >= len(candidate.rstrip()):
                    break
                continue
            return value
        start = -1
    raise AnswerError(Kind.invalid_json, f"it is not valid JSON ({problem})")
