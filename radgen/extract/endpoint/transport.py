"""Bytes to the endpoint and back: a small interface, and its fast form over aiohttp.

A transport knows nothing of retries, limits or JSON. It never follows a redirect to another host,
verifies TLS, and never uses a proxy from the environment.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urljoin, urlsplit

import aiohttp

from radgen.errors import RadgenError

#: The most redirects within one host that are followed.
_HOPS = 3
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(slots=True)
class Reply:
    """What the endpoint answered: status, header fields (any case) and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class NoReply(Exception):  # noqa: N818  (not an error of the program: it is handled)
    """No answer came. ``kind`` is ``connect`` (nobody there), ``reset`` (broken off) or ``timeout``."""

    def __init__(self, kind: str, detail: str) -> None:
        self.kind = kind
        self.detail = detail
        super().__init__(f"{kind}: {detail}")


class Transport(Protocol):
    """Sends one request; ``path`` follows the base URL, ``timeout`` is in seconds and in all.

    Raises:
        NoReply: there is no answer.
        RadgenError: there can be none: an untrusted certificate, a redirect to another host.
    """

    async def request(self, method: str, path: str, body: bytes | None, timeout: float) -> Reply: ...

    async def close(self) -> None: ...


def redirect(base_url: str, url: str, reply: Reply) -> str | None:
    """Return the URL to ask instead, or ``None`` if the reply is no redirect.

    Raises:
        RadgenError: it leads to another host, port or scheme, or nowhere.
    """
    if reply.status not in _REDIRECTS:
        return None
    target = urljoin(url, next((v for k, v in reply.headers.items() if k.lower() == "location"), ""))
    here, there = urlsplit(base_url), urlsplit(target)
    if (here.scheme, here.hostname, here.port) != (there.scheme, there.hostname, there.port):
        raise RadgenError(
            f"{base_url}: redirects to {there.scheme}://{there.hostname}; report text is not "
            "sent to a host that you did not name (give that address as --base-url if it is right)"
        )
    return target


def headers(key: str | None) -> dict[str, str]:
    """Return the header fields of every request."""
    fields = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
    if key:
        fields["Authorization"] = f"Bearer {key}"
    return fields


def translate(base_url: str, error: BaseException, timeout: float) -> NoReply | RadgenError:
    """Return what a failure of the connection means."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return RadgenError(
            f"{base_url}: no trusted TLS connection ({error}); if the certificate is your own authority's, "
            "name its file in SSL_CERT_FILE"
        )
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError):
        return NoReply("connect", type(error).__name__)
    if isinstance(error, TimeoutError):
        return NoReply("timeout", f"no answer within {timeout:g} s")
    if isinstance(error, aiohttp.InvalidURL):
        return RadgenError(f"{base_url}: not a URL that can be asked")
    return NoReply("reset", type(error).__name__)


class AiohttpTransport:
    """The default: one aiohttp session, one connection for each request under way."""

    def __init__(self, base_url: str, key: str | None, concurrency: int, connect_timeout: float) -> None:
        self.base_url = base_url
        self._connect_timeout = connect_timeout
        # The pool is bounded by the workers; a limit here would only make requests time out in a queue.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0, limit_per_host=0, ttl_dns_cache=300, ssl=ssl.create_default_context()
            ),
            headers=headers(key),
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=["User-Agent"],
            trust_env=False,
        )
        self._timeouts: dict[float, aiohttp.ClientTimeout] = {}

    def _timeout(self, seconds: float) -> aiohttp.ClientTimeout:
        known = self._timeouts.get(seconds)
        if known is None:
            connect = min(self._connect_timeout, seconds)
            known = aiohttp.ClientTimeout(total=seconds, sock_connect=connect)
            self._timeouts[seconds] = known
        return known

    async def request(self, method: str, path: str, body: bytes | None, timeout: float) -> Reply:
        """Send one request (see :class:`Transport`)."""
        url = self.base_url + path
        for _ in range(_HOPS):
            reply = await self._once(method, url, body, timeout)
            target = redirect(self.base_url, url, reply)
            if target is None:
                return reply
            url = target
        raise RadgenError(f"{self.base_url}: more than {_HOPS} redirects")

    async def _once(self, method: str, url: str, body: bytes | None, timeout: float) -> Reply:
        try:
            async with self._session.request(
                method, url, data=body, timeout=self._timeout(timeout), allow_redirects=False
            ) as response:
                return Reply(response.status, response.headers, await response.read())
        except (aiohttp.ClientError, OSError) as error:
            raise translate(self.base_url, error, timeout) from None

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()


def make_transport(name: str, base_url: str, key: str | None, concurrency: int, connect: float) -> Transport:
    """Return the transport of that name: ``aiohttp`` or ``openai`` (the SDK).

    Raises:
        RadgenError: there is no such transport.
    """
    if name == "aiohttp":
        return AiohttpTransport(base_url, key, concurrency, connect)
    if name == "openai":
        from radgen.extract.endpoint.transport_sdk import SdkTransport

        return SdkTransport(base_url, key, concurrency, connect)
    raise RadgenError(f"--transport '{name}': expected aiohttp or openai")
