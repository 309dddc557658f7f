"""Where text may be sent, and with which key (spec §8: never to a host that the user did not name)."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import urlsplit

from radgen.errors import RadgenError

Resolve = Callable[[str], Iterable[str]]


def _addresses(host: str) -> list[str]:
    return [str(item[4][0]) for item in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]


def is_private(host: str, resolve: Resolve = _addresses) -> bool:
    """Return whether every address of a host is loopback, private or link-local.

    >>> is_private("127.0.0.1"), is_private("10.1.2.3"), is_private("8.8.8.8"), is_private("::1")
    (True, True, False, True)
    """
    try:
        found: Iterable[str] = [str(ipaddress.ip_address(host.strip("[]")))]
    except ValueError:
        found = resolve(host)
    return all(not ipaddress.ip_address(address.split("%")[0]).is_global for address in found)


def check_base_url(url: str | None, *, allow_remote: bool = False, resolve: Resolve = _addresses) -> str:
    """Return the base URL without a closing slash, if text may be sent there.

    Raises:
        RadgenError: no URL, no http(s) URL, a URL with a key or a query in it, a host that is not
            loopback or private without ``allow_remote``, or a name that cannot be resolved.
    """
    if not url:
        raise RadgenError(
            "--base-url is missing: give the endpoint that the reports may be sent to, "
            "such as --base-url http://127.0.0.1:8000/v1"
        )
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise RadgenError(f"--base-url '{url}': expected http://HOST:PORT/v1 or https://HOST/v1")
    shown = f"{parts.scheme}://{parts.hostname}"
    if parts.username or parts.password:
        raise RadgenError(f"--base-url {shown}…: no user or password in it; see --api-key-file")
    if parts.query or parts.fragment:
        raise RadgenError(f"--base-url {shown}…: nothing may follow the path (found '?' or '#')")
    try:
        port = parts.port
    except ValueError:
        raise RadgenError(f"--base-url {shown}…: the port is not a number from 1 to 65535") from None
    if not allow_remote:
        try:
            private = is_private(parts.hostname, resolve)
        except OSError as error:
            raise RadgenError(f"--base-url {shown}: the host cannot be resolved ({error})") from None
        if not private:
            raise RadgenError(
                f"--base-url {shown}: the host is neither loopback nor private, so report text would leave "
                "your network; add --allow-remote if that is meant"
            )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def host_of(base_url: str) -> str:
    """Return the host of a checked base URL.

    >>> host_of("http://[::1]:8000/v1")
    '::1'
    """
    return urlsplit(base_url).hostname or ""


def read_key(env: str | None = None, file: str | Path | None = None) -> str | None:
    """Return the API key from a file, or from an environment variable, or ``None``.

    Args:
        env: name of the variable; ``RADGEN_API_KEY`` if not given, which may be unset.

    Raises:
        RadgenError: the file or the variable named by the user is missing or empty.
    """
    if file is not None:
        try:
            key = Path(file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not text"
            raise RadgenError(f"--api-key-file {file}: {reason}") from None
        where = f"--api-key-file {file}"
    else:
        key = os.environ.get(env or "RADGEN_API_KEY", "").strip()
        if not key and env is None:
            return None
        where = f"--api-key-env {env}"
    if not key:
        raise RadgenError(f"{where}: empty, expected an API key")
    if not key.isprintable() or not key.isascii() or any(letter.isspace() for letter in key):
        raise RadgenError(f"{where}: holds white space or other characters that no key has")
    return key
