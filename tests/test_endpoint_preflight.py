"""The look at the server before anything is paid, and what of a request makes up its key."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from endpoint_runs import extract, options, task, write_reports
from endpoint_server import FaultServer, completion, truth

from radgen.errors import RadgenError
from radgen.extract.endpoint.command import extract_with_endpoint
from radgen.extract.endpoint.request import Abilities, Requests
from radgen.extract.endpoint.settings import load_settings


def sent(server: FaultServer) -> dict[str, Any]:
    """The body of the first request for a report."""
    return next(body for body in server.bodies if "Case 1." in body["messages"][1]["content"])


@pytest.mark.parametrize(
    ("modes", "form"),
    [
        ({"json_schema", "json_object", "prompt"}, "json_schema"),
        ({"json_object", "prompt"}, "json_object"),
        ({"prompt"}, None),
    ],
)
def test_the_best_form_that_the_server_takes_is_used(
    tmp_path: Path, modes: set[str], form: str | None, capfd: pytest.CaptureFixture[str]
) -> None:
    write_reports(tmp_path, [1])
    with FaultServer() as server:
        server.modes, server.keep_bodies = modes, True
        assert extract(tmp_path, server).rows[0]["extracted"] == truth(1)
        assert sent(server).get("response_format", {}).get("type") == form
        said = capfd.readouterr().err
    words = {"json_schema": "JSON schema", "json_object": "JSON mode", None: "the prompt alone"}
    assert f"structured output: {words[form]}" in said
    assert "reasoning in: reasoning_content" in said


def test_a_server_that_ignores_the_schema_is_noticed(tmp_path: Path) -> None:
    write_reports(tmp_path, [1])
    with FaultServer() as server:
        server.keep_bodies = True
        answer = server._answer

        async def chat(request: web.Request) -> web.StreamResponse:
            body = json.loads(await request.read())
            if body.get("response_format", {}).get("type") == "json_schema":
                return web.json_response(completion("Small left pleural effusion, normal heart."))
            return await answer(request)

        server.chat = chat
        assert extract(tmp_path, server).rows[0]["extracted"] == truth(1)
        assert sent(server)["response_format"] == {"type": "json_object"}


def test_the_thinking_switch_is_left_out_where_it_is_refused(tmp_path: Path) -> None:
    write_reports(tmp_path, [1])
    with FaultServer() as server:
        server.keep_bodies = True
        assert extract(tmp_path, server).code == 0
        assert sent(server)["chat_template_kwargs"] == {"enable_thinking": False}
        other = tmp_path / "other"
        other.mkdir()
        write_reports(other, [1])
        server.thinking_switch, server.bodies = False, []
        assert extract(other, server).code == 0
        assert "chat_template_kwargs" not in sent(server)
        assert sent(server)["response_format"]["type"] == "json_schema"


def test_thinking_uses_the_sampling_of_the_model_card(tmp_path: Path) -> None:
    write_reports(tmp_path, [1])
    with FaultServer() as server:
        server.keep_bodies = True
        assert extract(tmp_path, server, thinking=True).code == 0
        body = sent(server)
    assert body["chat_template_kwargs"] == {"enable_thinking": True}
    assert {name: body[name] for name in ("temperature", "top_p", "top_k", "min_p")} == {
        "temperature": 0.8,
        "top_p": 0.95,
        "top_k": 50,
        "min_p": 0.0,
    }


def test_extraction_without_thinking_has_temperature_zero_and_nothing_else(tmp_path: Path) -> None:
    write_reports(tmp_path, [1])
    with FaultServer() as server:
        server.keep_bodies = True
        assert extract(tmp_path, server).code == 0
        body = sent(server)
    assert sorted(body) == [
        "chat_template_kwargs", "max_tokens", "messages", "model", "response_format", "temperature",
    ]  # fmt: skip
    assert (body["temperature"], body["model"], body["max_tokens"]) == (0, "test-model", 4096)


def test_models(tmp_path: Path) -> None:
    write_reports(tmp_path, [1])
    with FaultServer() as server:
        with pytest.raises(
            RadgenError, match="does not serve the model 'test-modle'; did you mean 'test-model'"
        ):
            extract(tmp_path, server, model="test-modle")
        assert extract(tmp_path, server, model=None).code == 0  # the only one there is
        server.models = ["a", "b"]
        with pytest.raises(RadgenError, match="serves a, b; choose one with --model"):
            extract(tmp_path, server, model=None)
        with pytest.raises(RadgenError, match="does not serve the model 'test-model'; it serves a, b"):
            extract(tmp_path, server, model="test-model", store=tmp_path / "new.sqlite", force=True)
        assert sum(server.cases.values()) == 1


def test_another_name_of_the_model_on_the_server_asks_for_nothing_again(tmp_path: Path) -> None:
    write_reports(tmp_path, [1])
    with FaultServer() as server:
        server.keep_bodies = True
        assert extract(tmp_path, server).code == 0
        write_reports(tmp_path, [1, 2])
        server.models, server.bodies = ["/models/snapshot-1"], []
        config = "model_names: {test-model: /models/snapshot-1}\n"
        assert extract(tmp_path, server, config=config, preflight_again=True).code == 0
        assert dict(server.cases) == {1: 1, 2: 1}
        assert {body["model"] for body in server.bodies} == {"/models/snapshot-1"}


def test_nobody_there_is_said_in_one_line(tmp_path: Path) -> None:
    write_reports(tmp_path, [1])
    chosen = options(tmp_path, base_url="http://127.0.0.1:9/v1")
    with pytest.raises(
        RadgenError, match=r"http://127\.0\.0\.1:9/v1: nobody answers there; is the server up"
    ):
        extract_with_endpoint(chosen, task())


@pytest.mark.parametrize(("status", "message"), [(401, "HTTP 401"), (404, "HTTP 404"), (503, "HTTP 503")])
def test_a_preflight_that_fails_sends_no_report(tmp_path: Path, status: int, message: str) -> None:
    write_reports(tmp_path, range(5))
    with FaultServer() as server:

        async def chat(request: web.Request) -> web.StreamResponse:
            return web.json_response({"error": {"message": "no"}}, status=status)

        server.chat = chat
        with pytest.raises(RadgenError, match=message):
            extract(tmp_path, server)
    assert sum(server.cases.values()) == 0


# -- the key ----------------------------------------------------------------------------------------

USER = "FINDINGS:\nNo effusion.\n\nIMPRESSION:\n"


def make(**changes: Any) -> Requests:
    model = changes.pop("model", "m")
    thinking = changes.pop("thinking", False)
    return Requests(changes.pop("task", task()), model, load_settings(**changes), thinking=thinking)


def test_the_key_is_the_sha256_of_prompt_version_and_canonical_body() -> None:
    requests = make()
    body = requests.canonical(USER)
    assert body == {
        "model": "m",
        "messages": [{"role": "system", "content": task().system}, {"role": "user", "content": USER}],
        "temperature": 0.0,
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "findings", "schema": task().schema},
        },
        "chat_template_kwargs": {"enable_thinking": False},
    }
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    version = f"findings\0{task().version}\0".encode()
    assert requests.key(USER) == hashlib.sha256(version + text).digest()


@pytest.mark.parametrize(
    "change",
    [
        {"model": "other"},
        {"thinking": True},
        {"sampling": {"plain": {"temperature": 0.5}}},
        {"extra_body": {"seed": 1}},
        {"thinking_switch": False},
    ],
)
def test_what_changes_the_answer_changes_the_key(change: dict[str, Any]) -> None:
    assert make(**change).key(USER) != make().key(USER)


@pytest.mark.parametrize(
    "change",
    [
        {"max_tokens": {"plain": 9000}},
        {"concurrency": 3},
        {"timeout_s": 1},
        {"retry__attempts": 1},
        {"prices": {"m": {"input": 1, "output": 1}}},
        {"model_names": {"m": "served"}},
    ],
)
def test_what_only_says_how_it_is_sent_does_not(change: dict[str, Any]) -> None:
    assert make(**change).key(USER) == make().key(USER)


@pytest.mark.parametrize("attribute", ["system", "version", "name", "schema"])
def test_prompt_version_and_schema_are_part_of_the_key(attribute: str) -> None:
    class Other:
        def __init__(self) -> None:
            self.__dict__.update({**vars(task()), "name": "findings"})

    other: Any = Other()
    value = getattr(other, attribute)
    setattr(other, attribute, {"type": "object"} if attribute == "schema" else value + "x")
    assert make(task=other).key(USER) != make().key(USER)


def test_texts_do_not_collide() -> None:
    requests = make()
    users = ["a", "A", "a ", 'a"', "a\\", "a\n", "\u00e4", "a\u0308", "", "\u0001the report\u0001", '","x":"']
    assert len({requests.key(user) for user in users}) == len(users)


@pytest.mark.parametrize("mode", ["json_schema", "json_object", "prompt"])
@pytest.mark.parametrize("user", [USER, 'quote " and \\ and \u2028 and 😀', "\u0001the report\u0001"])
def test_the_bytes_that_are_sent_are_the_body(mode: Any, user: str) -> None:
    requests = make()
    for abilities in (
        Abilities(mode),
        Abilities(mode, False),
        dataclasses.replace(Abilities(mode), served_model="s"),
    ):
        for tokens in (10, 20):
            assert orjson.loads(requests.encode(user, abilities, tokens)) == requests.body(
                user, abilities, tokens
            )


def test_mistakes_in_the_config_are_reported_with_their_lines(tmp_path: Path) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("concurency: 3\nretry:\n  attempts: 0\nstatuses: {retry: [200]}\n")
    with pytest.raises(RadgenError) as error:
        load_settings(config)
    lines = str(error.value).splitlines()
    assert f"{config}:1: concurency: unknown key 'concurency'; did you mean 'concurrency'?" in lines
    assert any(line.startswith(f"{config}:3: retry.attempts:") for line in lines)
    assert any(line.startswith(f"{config}:4: statuses.retry") for line in lines)
