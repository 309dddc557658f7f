"""An OpenAI-compatible server that misbehaves as it is told: real HTTP on 127.0.0.1, in a thread of its own.

A report says "Case 17." in its findings; the server knows it by that number. ``plan(case, turn)`` names the
fault of the ``turn``-th request (from 0) for a case, or ``None`` for a right answer.
"""

from __future__ import annotations

import asyncio
import email.utils
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from aiohttp import web

Plan = Callable[[int, int], str | None]
_SIDES = ("left", "right", "bilateral")
_DEGREES = {"trace": "minimal", "mild": "mild", "moderate": "moderate", "severe": "severe"}


def report(case: int) -> dict[str, Any]:
    """A report whose right extraction is :func:`truth`."""
    side = _SIDES[case % 3]
    word = list(_DEGREES.values())[case % 4]
    return {
        "id": f"r{case}",
        "findings": f"Case {case}. There is a {word} {side} pleural effusion.",
        "impression": "No pneumothorax.",
    }


def truth(case: int) -> list[dict[str, Any]]:
    """The findings of :func:`report`, written out by hand: what the file has to hold."""
    side, degree = _SIDES[case % 3], list(_DEGREES)[case % 4]
    quote = f"{_DEGREES[degree]} {side} pleural effusion"
    start = len(f"Case {case}. There is a ")
    return [
        {
            "section": "findings",
            "finding": "pleural_effusion",
            "presence": "present",
            "severity": degree,
            "laterality": side,
            "evidence": {"text": quote, "start": start, "end": start + len(quote)},
        },
        {
            "section": "impression",
            "finding": "pneumothorax",
            "presence": "absent",
            "evidence": {"text": "No pneumothorax", "start": 0, "end": 15},
        },
    ]


def right_answer(case: int) -> dict[str, Any]:
    """What a good model writes for :func:`report`."""
    side, degree = _SIDES[case % 3], list(_DEGREES)[case % 4]
    word = _DEGREES[degree]
    return {
        "findings": [
            {
                "section": "findings",
                "finding": "pleural_effusion",
                "quote": f"{word} {side} pleural effusion",
                "presence": "present",
                "severity": degree,
                "laterality": side,
                "words": {"severity": word, "laterality": side},
            },
            {
                "section": "impression",
                "finding": "pneumothorax",
                "quote": "No pneumothorax",
                "presence": "absent",
            },
        ]
    }


def completion(content: Any, finish: str | None = "stop", **message: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "model": "test-model",
        "choices": [
            {
                "index": 0,
                "finish_reason": finish,
                "message": {"role": "assistant", "content": content, **message},
            }
        ],
        "usage": {"prompt_tokens": 100, "completion_tokens": 50, "total_tokens": 150},
    }


#: Faults that are a body with status 200.
BODIES: dict[str, Callable[[str], bytes | dict[str, Any]]] = {
    "reasoning_content": lambda text: completion(None, reasoning_content=text),
    "reasoning": lambda text: completion("", reasoning=text),
    "reasoning_only_thought": lambda text: completion(None, reasoning_content="The effusion is small."),
    "think": lambda text: completion("<think>Is it small? {not json}</think>\n" + text),
    "think_unopened": lambda text: completion("Is it small?</think>\n" + text),
    "parts": lambda text: completion([{"type": "text", "text": text}]),
    "fence": lambda text: completion(f"Here it is:\n```json\n{text}\n```\nThat is all."),
    "prose": lambda text: completion(f"The findings are {text} as you asked."),
    "no_finish": lambda text: completion(text, None),
    "length": lambda text: completion(text[: len(text) // 2], "length"),
    "length_whole": lambda text: completion(text, "length"),
    "white_space": lambda text: completion('{"findings": [' + " \n" * 400, "length"),
    "invalid_json": lambda text: completion(text[:-3]),
    "schema": lambda text: completion(text.replace('"present"', '"perhaps"')),
    "array": lambda text: completion("[1, 2]"),
    "empty": lambda text: completion(None),
    "refusal": lambda text: completion(None, refusal="I cannot help with that."),
    "content_filter": lambda text: completion(text[:20], "content_filter"),
    "abort": lambda text: completion("", "abort"),
    "html": lambda text: b"<html><body>Service is starting</body></html>",
    "truncated": lambda text: json.dumps(completion(text)).encode()[:-40],
    "null_choices": lambda text: {**completion(text), "choices": None},
    "no_choices": lambda text: {**completion(text), "choices": []},
    "error_object": lambda text: {"object": "error", "message": "out of memory", "code": 50001},
    "null_body": lambda text: b"null",
}


class FaultServer:
    """Start with ``with FaultServer(plan) as server``; ``server.url`` is the base URL."""

    def __init__(self, plan: Plan = lambda case, turn: None, *, port: int = 0, tls: Any = None) -> None:
        self.plan, self.port, self.tls = plan, port, tls
        self.delay = 0.0
        self.models = ["test-model"]
        self.modes = {"json_schema", "json_object", "prompt"}
        self.thinking_switch = True
        self.retry_after = "0.05"
        self.slow = 30.0
        self.dead = False
        self.bodies: list[dict[str, Any]] = []
        self.keep_bodies = False
        self.cases: Counter[int] = Counter()
        self.answered: list[int] = []
        self.answered_at: list[float] = []
        self.log: list[tuple[float, int, str | None]] = []
        self.preflights = self.lists = self.under_way = self.most_under_way = 0
        self.keys: set[str | None] = set()
        self.chat: Callable[[web.Request], Any] | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._started, self._stop = threading.Event(), asyncio.Event()

    # -- life ---------------------------------------------------------------------------------------

    def __enter__(self) -> FaultServer:
        self._thread.start()
        assert self._started.wait(10)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    @property
    def url(self) -> str:
        return f"http{'s' if self.tls else ''}://127.0.0.1:{self.port}/v1"

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())
        left = asyncio.all_tasks(self._loop)  # handlers that were told to be slow
        for task in left:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        self._loop.close()

    async def _serve(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port, ssl_context=self.tls)
        await site.start()
        self.port = site._server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        await runner.cleanup()

    # -- answers ------------------------------------------------------------------------------------

    async def _models(self, request: web.Request) -> web.StreamResponse:
        self.lists += 1
        self.keys.add(request.headers.get("Authorization"))
        if self.dead:
            return self._reset(request)
        return web.json_response({"object": "list", "data": [{"id": name} for name in self.models]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            return await (self.chat or self._answer)(request)
        finally:
            self.under_way -= 1

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = json.loads(await request.read())
        self.keys.add(request.headers.get("Authorization"))
        if self.keep_bodies:
            self.bodies.append(body)
        user = body["messages"][1]["content"]
        number = re.search(r"Case (\d+)\.", user)
        if number is None:
            return self._preflight(body, user)
        case = int(number.group(1))
        turn = self.cases[case]
        self.cases[case] += 1
        fault = self.plan(case, turn)
        self.log.append((time.monotonic(), case, fault))
        if self.delay:
            await asyncio.sleep(self.delay)
        if self.dead:
            return self._reset(request)
        response = await self._fault(request, fault, case)
        self.answered.append(case)
        self.answered_at.append(time.monotonic())
        return response

    def _preflight(self, body: dict[str, Any], user: str) -> web.StreamResponse:
        self.preflights += 1
        form = body.get("response_format", {}).get("type", "prompt")
        if form not in self.modes:
            return web.json_response({"error": {"message": f"{form} is not supported"}}, status=400)
        if not self.thinking_switch and "chat_template_kwargs" in body:
            return web.json_response({"error": {"message": "unknown field chat_template_kwargs"}}, status=400)
        found = {"finding": "pleural_effusion", "quote": "small left pleural effusion", "presence": "present"}
        text = json.dumps({"findings": [found]})
        return web.json_response(completion(text, reasoning_content="It is small."))

    async def _fault(self, request: web.Request, fault: str | None, case: int) -> web.StreamResponse:
        text = json.dumps(right_answer(case))
        if fault is None:
            return web.json_response(completion(text))
        if fault in BODIES:
            made = BODIES[fault](text)
            data = made if isinstance(made, bytes) else json.dumps(made).encode()
            return web.Response(body=data, content_type="application/json")
        if fault == "reset":
            return self._reset(request)
        if fault == "half":  # the connection breaks within the body
            response = web.StreamResponse(headers={"Content-Length": "1000"})
            await response.prepare(request)
            await response.write(b'{"choices"')
            return self._reset(request)
        if fault == "slow":
            await asyncio.sleep(self.slow)
            return web.json_response(completion(text))
        if fault == "redirect_away":
            raise web.HTTPTemporaryRedirect("http://203.0.113.7/v1/chat/completions")
        status, _, how = fault.partition(" ")
        headers = {}
        if how == "wait":
            headers["Retry-After"] = self.retry_after
        elif how == "date":
            headers["Retry-After"] = email.utils.formatdate(time.time() + 1, usegmt=True)
        code = {"code": "insufficient_quota"} if how == "quota" else {}
        return web.json_response(
            {"error": {"message": f"made to fail with {status}", **code}}, status=int(status), headers=headers
        )

    @staticmethod
    def _reset(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()
