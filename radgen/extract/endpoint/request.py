"""From a report to the bytes of a request and to the key that it is stored under.

The key is the sha256 of the prompt version and the canonical body: the request as it is meant, with sorted
keys. What only says how it is sent is no part of it, so that nothing is asked twice for it:

===========================  ==================================================================
the server's address         the same model elsewhere gives the same answer
the form of the schema       another server, or a restart without a grammar, takes another form
the name a server has for    ``model_names``, or a served name that the preflight found
the model
max_tokens                   a retry doubles it, and an answer that ended before it is the same
===========================  ==================================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import orjson

from radgen.extract.endpoint.settings import Settings, Style
from radgen.extract.endpoint.steps import Send

Mode = Literal["json_schema", "json_object", "prompt"]
MODES: tuple[Mode, ...] = ("json_schema", "json_object", "prompt")
_MARK = "\u0001the report\u0001"


class Task(Protocol):
    """What is asked of the endpoint; extraction is one, another brings its own prompt, schema and parser.

    Attributes:
        name: identifies the task in the store and names its schema.
        version: of prompt and schema; a change asks again. The parser is not part of it.
        system: the system message, the same in every request.
        schema: JSON schema of the answer.
        repair: the message after an answer that cannot be used, with ``{{error}}`` in it.
    """

    name: str
    version: str
    system: str
    schema: Mapping[str, Any]
    repair: str

    def user(self, report: Mapping[str, Any]) -> str | None:
        """Return the user message for a report, or ``None`` if there is nothing to ask."""
        ...

    def check(self, value: Any) -> Any:
        """Check the JSON value of an answer without its report, and return it.

        Raises:
            AnswerError: it does not match the schema; the message is shown to the model once.
        """
        ...

    def parse(self, value: Any, report: Mapping[str, Any]) -> Parsed:
        """Return what the JSON value of an answer says.

        Raises:
            AnswerError: as in :meth:`check`.
        """
        ...


@dataclass(slots=True)
class Parsed:
    """A parsed answer: the rows' payload, and how many things were dropped for which reason."""

    items: list[dict[str, Any]]
    dropped: dict[str, int]


@dataclass(slots=True, frozen=True)
class Abilities:
    """What the preflight found out about a server (spec §8); decides what is sent, never the key."""

    mode: Mode = "json_schema"
    thinking_switch: bool = True
    reasoning: str = "none"
    served_model: str | None = None


class Requests:
    """Makes keys and bodies; everything but the user message is serialised once."""

    def __init__(self, task: Task, model: str, settings: Settings, *, thinking: bool = False) -> None:
        self.task, self.model, self.settings = task, model, settings
        self.style: Style = "thinking" if thinking else "plain"
        self.max_tokens = settings.max_tokens[self.style]
        canonical = orjson.dumps(self.canonical(_MARK), option=orjson.OPT_SORT_KEYS)
        head, _, tail = canonical.partition(orjson.dumps(_MARK))
        version = f"{task.name}\0{task.version}\0".encode()
        self._hash, self._tail = hashlib.sha256(version + head), tail
        self._parts: dict[tuple[Abilities, int], tuple[bytes, bytes]] = {}

    def canonical(self, user: str) -> dict[str, Any]:
        """Return the request as it is meant, whatever the server can take."""
        body = self.body(user, Abilities(), self.max_tokens)
        del body["max_tokens"]
        return body

    def key(self, user: str) -> bytes:
        """Return the 32 bytes that a request is known by."""
        digest = self._hash.copy()
        digest.update(orjson.dumps(user))
        digest.update(self._tail)
        return digest.digest()

    def body(
        self, user: str, abilities: Abilities, max_tokens: int, more: list[dict[str, str]] | None = None
    ) -> dict[str, Any]:
        """Return a request's body; ``more`` are the messages after the report's (a repair)."""
        messages = [{"role": "system", "content": self.task.system}, {"role": "user", "content": user}]
        body: dict[str, Any] = {
            "model": abilities.served_model or self.model,
            "messages": messages + (more or []),
            "max_tokens": max_tokens,
            **self.settings.sampling[self.style],
        }
        if abilities.mode == "json_schema":
            schema = {"name": self.task.name, "schema": self.task.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif abilities.mode == "json_object":
            body["response_format"] = {"type": "json_object"}
        if self.settings.thinking_switch and abilities.thinking_switch:
            body["chat_template_kwargs"] = {"enable_thinking": self.style == "thinking"}
        return {**body, **self.settings.extra_body}

    def encode(
        self, user: str, abilities: Abilities, max_tokens: int, more: list[dict[str, str]] | None = None
    ) -> bytes:
        """Return the bytes of :meth:`body`."""
        if more:
            return orjson.dumps(self.body(user, abilities, max_tokens, more))
        parts = self._parts.get((abilities, max_tokens))
        if parts is None:
            whole = orjson.dumps(self.body(_MARK, abilities, max_tokens))
            head, _, tail = whole.partition(orjson.dumps(_MARK))
            parts = self._parts[(abilities, max_tokens)] = head, tail
        return parts[0] + orjson.dumps(user) + parts[1]

    def tokens(self, step: Send) -> int:
        """Return the limit of a step's answer."""
        return int(self.max_tokens * (self.settings.longer_factor if step.longer else 1))

    def encode_step(self, user: str, step: Send, abilities: Abilities) -> bytes:
        """Return the bytes of a step's request: the first, the longer, or the repair with what is wrong."""
        more = None
        if step.repair is not None:
            error = step.repair.detail or "it is empty"
            more = [
                {"role": "assistant", "content": step.repair.text or "(empty)"},
                {"role": "user", "content": self.task.repair.replace("{{error}}", error)},
            ]
        return self.encode(user, abilities, self.tokens(step), more)
