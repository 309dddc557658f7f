"""One look at the server before anything is paid: which model, which form of structured output, where the
reasoning goes. What it finds is stored, so that the same command asks once."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import orjson

from radgen.errors import RadgenError, did_you_mean
from radgen.extract.endpoint import answer
from radgen.extract.endpoint.answer import Kind, Outcome
from radgen.extract.endpoint.client import CHAT, MODELS, StoppedError
from radgen.extract.endpoint.judge import judge
from radgen.extract.endpoint.request import MODES, Abilities, Requests
from radgen.extract.endpoint.settings import Settings
from radgen.extract.endpoint.store import Store
from radgen.extract.endpoint.transport import NoReply, Reply, Transport


async def served_models(transport: Transport, settings: Settings, base_url: str) -> list[str] | None:
    """Return the models of ``/v1/models``, or ``None`` if the server has no such list.

    Raises:
        StoppedError: the server wants (another) key.
        RadgenError: nobody is there, or what is there is no OpenAI-compatible endpoint.
    """
    try:
        reply = await transport.request("GET", MODELS, None, settings.connect_timeout_s * 2)
    except NoReply as failure:
        what = _SILENCE[failure.kind]
        raise RadgenError(f"{base_url}: {what}; is the server up and the address right?") from None
    if reply.status in (401, 402, 403):
        raise StoppedError(f"{base_url}: the endpoint answers HTTP {reply.status}; is the API key right?")
    if reply.status != 200:
        return None
    try:
        data = orjson.loads(reply.body)
        return [str(model["id"]) for model in data["data"]]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return None


_SILENCE = {
    "connect": "nobody answers there",
    "reset": "the connection breaks off",
    "timeout": "no answer in time",
}


def choose_model(wanted: str | None, served: list[str] | None, settings: Settings, base_url: str) -> str:
    """Return the name to use: the one asked for if it is served, or the only one there is.

    Raises:
        RadgenError: it is not served, or none was asked for and there are several.
    """
    if served is None:
        if wanted is None:
            raise RadgenError(f"{base_url}: does not list its models, so --model is needed (is /v1 missing?)")
        return wanted
    if wanted is None:
        if len(served) == 1:
            return served[0]
        raise RadgenError(f"{base_url}: serves {', '.join(served) or 'no model'}; choose one with --model")
    name = settings.model_names.get(wanted, wanted)
    if name in served:
        return name
    shown = f"; it serves {', '.join(served[:8])}" if served else ""
    hint = did_you_mean(wanted, served) or shown
    raise RadgenError(f"{base_url}: does not serve the model '{wanted}'{hint}")


async def probe(transport: Transport, requests: Requests, model: str, base_url: str) -> tuple[Abilities, str]:
    """Ask for the findings of a sentence of ours; return what the server can do and a line that says it.

    ``json_schema`` first, then ``json_object``, then the prompt alone; each with the thinking switch and,
    if the server rejects the request, without. A server that takes the schema but ignores it is
    noticed by its answer.

    Raises:
        StoppedError: the server wants (another) key, or serves no such model.
        RadgenError: no form of the request gets an answer.
    """
    settings = requests.settings
    sentence = settings.preflight.sentence
    report = {"id": "preflight", "findings": sentence, "impression": None}
    user = requests.task.user(report)
    accepted: Abilities | None = None
    last = Outcome(Kind.connect)
    switches = (True, False) if settings.thinking_switch else (False,)
    served = model if model != requests.model else None
    for mode in MODES:
        for switch in switches:
            abilities = Abilities(mode, switch, "none", served)
            body = requests.encode(user or sentence, abilities, settings.preflight.max_tokens[requests.style])
            reply, last = await _ask(transport, body, requests)
            if reply is None or reply.status != 200:
                if last.kind is Kind.stop:
                    raise StoppedError(f"{base_url}: the endpoint answers {last.detail}")
                if last.kind is Kind.rejected or last.status in (500, 501):
                    continue  # it does not know this form of the request
                raise RadgenError(f"{base_url}: no answer to the test sentence ({last.detail})")
            where = reasoning_field(reply.body)
            abilities = Abilities(mode, switch, where, served)
            accepted = accepted or abilities
            outcome, parsed = judge(
                reply.body, lambda value: requests.task.parse(value, report), settings.runaway_white_space
            )
            if parsed is not None:
                return abilities, describe(abilities, outcome.kind)
            break  # taken, but not obeyed: the next form
    if accepted is None:
        raise RadgenError(f"{base_url}: rejects every form of the request ({last.detail})")
    return accepted, describe(accepted, None) + "; its answer to the test sentence was not usable"


async def _ask(transport: Transport, body: bytes, requests: Requests) -> tuple[Reply | None, Outcome]:
    settings = requests.settings
    try:
        reply = await transport.request("POST", CHAT, body, settings.timeout_s)
    except NoReply as failure:
        return None, answer.from_failure(failure)
    return reply, answer.from_reply(reply, settings.statuses, settings.runaway_white_space)


def reasoning_field(body: bytes) -> str:
    """Return where a completion keeps its thinking: a field of the message, or ``none``."""
    try:
        message: dict[str, Any] = orjson.loads(body)["choices"][0]["message"]
    except (orjson.JSONDecodeError, KeyError, IndexError, TypeError):
        return "none"
    for name in ("reasoning_content", "reasoning"):
        if message.get(name):
            return name
    return "content" if "</think>" in str(message.get("content") or "") else "none"


def describe(abilities: Abilities, kind: Kind | None) -> str:
    """Return what was found in one line."""
    words = {"json_schema": "JSON schema", "json_object": "JSON mode", "prompt": "the prompt alone"}
    parts = [f"structured output: {words[abilities.mode]}"]
    parts.append("thinking switch: yes" if abilities.thinking_switch else "thinking switch: not taken")
    parts.append(f"reasoning in: {abilities.reasoning}")
    if kind is Kind.salvaged:
        parts.append("answers in the reasoning field (taken, marked salvaged)")
    return ", ".join(parts)


def recall(store: Store, base_url: str, model: str, requests: Requests) -> Abilities | None:
    """Return what an earlier preflight of the same server, model and task found."""
    text = store.get(_name(base_url, model, requests))
    return Abilities(**orjson.loads(text)) if text else None


def remember(store: Store, base_url: str, model: str, requests: Requests, abilities: Abilities) -> None:
    """Keep what a preflight found."""
    store.put(_name(base_url, model, requests), orjson.dumps(asdict(abilities)).decode())


def _name(base_url: str, model: str, requests: Requests) -> str:
    return f"preflight {base_url} {model} {requests.task.name} {requests.task.version} {requests.style}"
