"""Where text goes, where keys go, and what is never printed."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from pathlib import Path

import pytest
from endpoint_runs import extract, options, task, write_reports
from endpoint_server import FaultServer

from radgen.errors import RadgenError
from radgen.extract.endpoint.address import check_base_url, read_key
from radgen.extract.endpoint.command import extract_with_endpoint

HOSTS = {"node7": ["10.1.2.3"], "mixed": ["10.1.2.3", "93.184.216.34"], "api.example.com": ["93.184.216.34"]}


def resolve(host: str) -> list[str]:
    if host not in HOSTS:
        raise OSError("Name or service not known")
    return HOSTS[host]


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1"),
        ("127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://192.168.1.5/v1", "http://192.168.1.5/v1"),
        ("http://169.254.3.4:1/v1", "http://169.254.3.4:1/v1"),
        ("http://node7:8000/v1", "http://node7:8000/v1"),
    ],
)
def test_private_hosts_are_allowed(given: str, used: str) -> None:
    assert check_base_url(given, resolve=resolve) == used


@pytest.mark.parametrize(
    "url", ["http://8.8.8.8/v1", "https://api.example.com/v1", "http://mixed/v1", "http://[2606:4700::1]/v1"]
)
def test_other_hosts_need_allow_remote(url: str) -> None:
    with pytest.raises(RadgenError, match="--allow-remote"):
        check_base_url(url, resolve=resolve)
    assert check_base_url(url, allow_remote=True, resolve=resolve) == url


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (None, "--base-url is missing"),
        ("", "--base-url is missing"),
        ("ftp://127.0.0.1/v1", "expected http"),
        ("http://", "expected http"),
        ("http://nowhere/v1", "cannot be resolved"),
        ("http://me:secret@127.0.0.1/v1", "no user or password"),
        ("http://127.0.0.1/v1?key=secret", "nothing may follow"),
        ("http://127.0.0.1:99999/v1", "the port"),
    ],
)
def test_a_wrong_base_url_is_refused_and_its_secrets_are_not_repeated(url: str | None, message: str) -> None:
    with pytest.raises(RadgenError, match=message) as error:
        check_base_url(url, resolve=resolve)
    assert "secret" not in str(error.value)


def test_keys_come_from_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RADGEN_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "another-service")
    assert read_key() is None  # a key of another service is never sent along
    assert read_key("OPENAI_API_KEY") == "another-service"
    monkeypatch.setenv("RADGEN_API_KEY", " k1 ")
    assert read_key() == "k1"
    (tmp_path / "key").write_text("k2\n")
    assert read_key("OPENAI_API_KEY", tmp_path / "key") == "k2"
    for name in ("missing", "empty", "two"):
        (tmp_path / "empty").write_text("\n")
        (tmp_path / "two").write_text("a b\r\nX: y")
        with pytest.raises(RadgenError, match="--api-key-file"):
            read_key(file=tmp_path / name)
    with pytest.raises(RadgenError, match="--api-key-env NOT_SET"):
        read_key("NOT_SET")


@pytest.mark.parametrize("transport", ["aiohttp", "openai"])
def test_the_key_is_sent_and_written_nowhere(
    tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RADGEN_API_KEY", "sk-very-secret")
    write_reports(tmp_path, range(5))
    with FaultServer(lambda case, turn: ["500", "schema", "400"][turn] if case == 1 else None) as server:
        extract(tmp_path, server, transport=transport)
    assert server.keys == {"Bearer sk-very-secret"}
    out, err = capfd.readouterr()
    assert "sk-very-secret" not in out + err
    for path in tmp_path.iterdir():
        assert b"sk-very-secret" not in path.read_bytes(), path


@pytest.mark.parametrize("transport", ["aiohttp", "openai"])
def test_without_a_key_no_key_is_sent(
    tmp_path: Path, transport: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RADGEN_API_KEY", raising=False)
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "not-for-you")
    monkeypatch.setenv("HTTP_PROXY", "http://203.0.113.9:1")
    write_reports(tmp_path, range(2))
    seen: list[dict[str, str]] = []
    with FaultServer() as server:
        answer = server._answer

        async def chat(request):  # type: ignore[no-untyped-def]
            seen.append(dict(request.headers))
            return await answer(request)

        server.chat = chat
        assert extract(tmp_path, server, transport=transport).code == 0
    assert server.keys == {None}
    assert "not-for-you" not in json.dumps(seen)


def test_no_report_text_is_printed_whatever_happens(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plans = ["schema", "invalid_json", "length", "refusal", "400", "500", "reasoning", "html", None]
    write_reports(tmp_path, range(9))
    with FaultServer(lambda case, turn: plans[case]) as server:
        done = extract(tmp_path, server)
    assert done.code == 1
    out, err = capfd.readouterr()
    for word in ("effusion", "Case", "pneumothorax", "minimal"):
        assert word not in out + err
    for row in done.rows:
        assert row["error"] is None or "effusion" not in row["error"]


def test_an_error_of_the_server_that_quotes_the_report_stays_out_of_the_output(tmp_path: Path) -> None:
    from aiohttp import web

    write_reports(tmp_path, [1])
    with FaultServer() as server:

        async def chat(request):  # type: ignore[no-untyped-def]
            body = await request.json()
            user = body["messages"][1]["content"]
            if "Case" in user:
                return web.json_response({"error": {"message": user}}, status=400)
            return await server._answer(request)

        server.chat = chat
        done = extract(tmp_path, server)
    assert done.rows[0]["error"] == "rejected: the server rejected the request (HTTP 400)"
    assert "Case 1." in done.dead[0]["detail"]


def test_an_untrusted_certificate_ends_the_run_before_any_text_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A TLS server with a certificate that it signed itself."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs the openssl program to make a certificate")
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = [program, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *names, *files]
    subprocess.run(command, capture_output=True, check=True)
    write_reports(tmp_path, range(3))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with FaultServer(tls=context) as server:
        for transport in ("aiohttp", "openai"):
            with pytest.raises(RadgenError, match=r"no trusted TLS connection.*SSL_CERT_FILE"):
                extract(tmp_path, server, transport=transport)
        assert (server.lists, server.preflights) == (0, 0)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
        for transport in ("aiohttp", "openai"):
            assert extract(tmp_path, server, transport=transport, force=True).code == 0


def test_a_remote_host_is_refused_before_anything_is_read_or_sent(tmp_path: Path) -> None:
    write_reports(tmp_path, range(3))
    chosen = options(tmp_path, base_url="http://203.0.113.7:8000/v1")
    chosen.base_url = "http://8.8.8.8/v1"
    with pytest.raises(RadgenError, match="--allow-remote"):
        extract_with_endpoint(chosen, task())
    assert not chosen.store_path.exists()
