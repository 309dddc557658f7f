"""What came back, and what it is: each body by hand, no server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from endpoint_server import BODIES, completion
from hypothesis import given
from hypothesis import strategies as st

from radgen.extract.endpoint.answer import (
    AnswerError,
    Kind,
    from_completion,
    from_reply,
    read_json,
    retry_after,
    without_thinking,
)
from radgen.extract.endpoint.settings import load_settings
from radgen.extract.endpoint.steps import Answered, Send, Verdict, decide
from radgen.extract.endpoint.transport import Reply

TEXT = '{"findings": []}'
STATUSES = load_settings().statuses


def body(name: str) -> bytes:
    made = BODIES[name](TEXT)
    return made if isinstance(made, bytes) else json.dumps(made).encode()


@pytest.mark.parametrize(
    ("name", "kind", "text"),
    [
        ("reasoning_content", Kind.salvaged, TEXT),
        ("reasoning", Kind.salvaged, TEXT),
        ("think", Kind.ok, TEXT),
        ("think_unopened", Kind.ok, TEXT),
        ("parts", Kind.ok, TEXT),
        ("no_finish", Kind.ok, TEXT),
        ("empty", Kind.no_content, ""),
        ("refusal", Kind.refusal, None),
        ("content_filter", Kind.content_filter, None),
        ("length", Kind.length, '{"findin'),
        ("length_whole", Kind.length, TEXT),
        ("abort", Kind.no_completion, None),
        ("html", Kind.no_completion, None),
        ("truncated", Kind.no_completion, None),
        ("null_choices", Kind.no_completion, None),
        ("no_choices", Kind.no_completion, None),
        ("error_object", Kind.no_completion, None),
        ("null_body", Kind.no_completion, None),
    ],
)
def test_every_body_is_what_it_is(name: str, kind: Kind, text: str | None) -> None:
    outcome = from_completion(body(name), runaway=64)
    assert outcome.kind is kind
    assert outcome.text == text


def test_white_space_until_the_limit_is_told_from_a_long_answer() -> None:
    assert from_completion(body("white_space"), runaway=64).kind is Kind.white_space
    assert from_completion(body("white_space"), runaway=10_000).kind is Kind.length


def test_text_in_the_reasoning_field_is_no_answer_if_it_was_cut_off() -> None:
    data = completion(None, "length", reasoning_content=TEXT)
    assert from_completion(json.dumps(data).encode(), 64).kind is Kind.length
    data = completion(None, None, reasoning_content=TEXT)
    assert from_completion(json.dumps(data).encode(), 64).kind is Kind.no_content


def test_usage_is_read_and_nonsense_in_it_is_not() -> None:
    outcome = from_completion(json.dumps(completion(TEXT)).encode(), 64)
    assert (outcome.input_tokens, outcome.output_tokens) == (100, 50)
    data: dict[str, Any] = {**completion(TEXT), "usage": {"prompt_tokens": None, "completion_tokens": "x"}}
    outcome = from_completion(json.dumps(data).encode(), 64)
    assert (outcome.kind, outcome.input_tokens, outcome.output_tokens) == (Kind.ok, None, None)


@pytest.mark.parametrize(
    ("status", "kind", "overload", "no_answer"),
    [
        (429, Kind.rate_limited, True, False),
        (503, Kind.server_error, True, True),
        (502, Kind.server_error, False, True),
        (500, Kind.server_error, False, False),
        (499, Kind.server_error, True, False),
        (408, Kind.server_error, False, False),
        (409, Kind.server_error, True, False),
        (400, Kind.rejected, False, False),
        (413, Kind.rejected, False, False),
        (422, Kind.rejected, False, False),
        (401, Kind.stop, False, False),
        (403, Kind.stop, False, False),
        (404, Kind.stop, False, False),
    ],
)
def test_every_status_is_what_it_is(status: int, kind: Kind, overload: bool, no_answer: bool) -> None:
    outcome = from_reply(Reply(status, {}, b'{"error": {"message": "why"}}'), STATUSES, 64)
    assert (outcome.kind, outcome.overload, outcome.no_answer) == (kind, overload, no_answer)
    assert outcome.detail == f"HTTP {status}: why"


def test_no_credit_is_no_rate_limit() -> None:
    reply = Reply(429, {}, b'{"error": {"message": "pay", "code": "insufficient_quota"}}')
    assert from_reply(reply, STATUSES, 64).kind is Kind.stop


def test_retry_after_as_seconds_and_as_a_date() -> None:
    assert retry_after({"Retry-After": "7200"}) == 7200
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, now=1445412420.0) == 60
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, now=1445412999.0) == 0
    assert retry_after({"Retry-After": "soon"}) is None
    assert retry_after({"Retry-After": "nan"}) is None


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f"Sure:\n```\n{TEXT}\n```\nDone.",
        f"The answer is {TEXT}. Done.",
        f"A {{set}} of findings: {TEXT}",
    ],
)
def test_json_is_found_in_talk(text: str) -> None:
    assert read_json(text) == {"findings": []}


@pytest.mark.parametrize("text", ["", "none", '{"findings": [', "{" * 30, "[" * 100_000])
def test_what_is_no_json_says_so(text: str) -> None:
    with pytest.raises(AnswerError) as error:
        read_json(text)
    assert error.value.kind is Kind.invalid_json


@given(st.binary(max_size=300))
def test_any_bytes_have_an_outcome(data: bytes) -> None:
    assert from_completion(data, 64).kind in Kind


@given(st.text(max_size=100))
def test_thinking_never_survives(thought: str) -> None:
    assert without_thinking(f"<think>{thought}</think>{TEXT}") == TEXT


def kinds(*names: str) -> list[Answered]:
    """A history of answers; the steps do not matter to the decision."""
    return [Answered("first", Kind(name)) for name in names]


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], ("first", False, False)),
        (["length"], ("longer", True, False)),
        (["white_space"], ("longer", True, False)),
        (["invalid_json"], ("repair", False, True)),
        (["schema_mismatch"], ("repair", False, True)),
        (["no_content"], ("repair", False, True)),
        (["length", "schema_mismatch"], ("repair", True, True)),
        (["schema_mismatch", "length"], ("longer", True, True)),
    ],
)
def test_next_steps(history: list[str], expected: tuple[str, bool, bool]) -> None:
    step = decide(kinds(*history))
    assert isinstance(step, Send)
    assert (step.step, step.longer, step.repair is not None) == expected


@pytest.mark.parametrize(
    ("history", "good"),
    [
        (["ok"], True),
        (["salvaged"], True),
        (["length", "ok"], True),
        (["length", "length"], False),
        (["white_space", "white_space"], False),
        (["length", "white_space"], False),
        (["schema_mismatch", "invalid_json"], False),
        (["length", "schema_mismatch", "ok"], True),
        (["length", "schema_mismatch", "length"], False),
        (["refusal"], False),
        (["content_filter"], False),
        (["rejected"], False),
    ],
)
def test_verdicts(history: list[str], good: bool) -> None:
    assert decide(kinds(*history)) == Verdict(good)
