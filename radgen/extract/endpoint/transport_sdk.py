"""The other transport: the ``openai`` SDK over aiohttp, given a ready body, with its own retries off."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import aiohttp
import openai

from radgen.errors import RadgenError
from radgen.extract.endpoint.transport import NoReply, Reply, headers, redirect, translate


class SdkTransport:
    """``AsyncOpenAI`` with ``DefaultAioHttpClient``; ``client.post`` skips the transform of the request.

    It costs about three times the CPU of the aiohttp transport, and is there for whoever has to go
    through the SDK (its tracing, a gateway that expects its header fields).
    """

    def __init__(self, base_url: str, key: str | None, concurrency: int, connect_timeout: float) -> None:
        self.base_url = base_url
        fields: dict[str, str | openai.Omit] = {**headers(key)}
        # What the SDK would take from the environment is not the user's word for this endpoint.
        for name in ("OpenAI-Organization", "OpenAI-Project"):
            fields[name] = openai.Omit()
        # Without a key there is no such field at all; the SDK takes that only from the single request.
        self._options: Any = {} if key else {"headers": {"Authorization": openai.Omit()}}
        client = openai.DefaultAioHttpClient(
            follow_redirects=False, trust_env=False, timeout=None, verify=ssl.create_default_context()
        )
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=key or "none",
            max_retries=0,
            http_client=client,
            default_headers=fields,  # type: ignore[arg-type]  # Omit is what takes a field away
        )

    async def request(self, method: str, path: str, body: bytes | None, timeout: float) -> Reply:
        """Send one request (see :class:`radgen.extract.endpoint.transport.Transport`)."""
        reply = await self._once(method, path, body, timeout)
        target = redirect(self.base_url, self.base_url + path, reply)
        if target is not None:
            reply = await self._once(method, target, body, timeout)
            if redirect(self.base_url, target, reply) is not None:
                raise RadgenError(f"{self.base_url}: more than one redirect")
        return reply

    async def _once(self, method: str, path: str, body: bytes | None, timeout: float) -> Reply:
        binary = openai.HttpxBinaryResponseContent
        try:
            async with asyncio.timeout(timeout):
                if method == "GET":
                    answer = await self._client.get(path, cast_to=binary, options=self._options)
                else:
                    answer = await self._client.post(
                        path, content=body, cast_to=binary, options=self._options
                    )
            response = answer.response
            return Reply(response.status_code, response.headers, response.content)
        except openai.APIStatusError as error:
            return Reply(error.response.status_code, error.response.headers, error.response.content)
        except openai.APIConnectionError as error:
            raise translate(self.base_url, _root(error), timeout) from None
        except TimeoutError:
            raise NoReply("timeout", f"no answer within {timeout:g} s") from None
        except (aiohttp.ClientError, OSError) as error:
            raise translate(self.base_url, error, timeout) from None

    async def close(self) -> None:
        """Close every connection."""
        await self._client.close()


def _root(error: BaseException) -> BaseException:
    """Return aiohttp's own error behind the SDK's: it tells a refused connection from one that broke off."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, aiohttp.ClientError):
        cause = cause.__cause__
    return cause or error
