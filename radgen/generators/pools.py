"""Pools of worker processes that end with the process that started them, however it ends."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

#: Seconds between two looks at whether the parent still lives.
LOOK = 0.5


def pool(
    workers: int, initializer: Callable[..., None] | None = None, arguments: tuple[Any, ...] = ()
) -> ProcessPoolExecutor:
    """Return a pool of processes; forked where the system can, so that nothing need be loaded again.

    A worker of :mod:`concurrent.futures` waits for work for ever when its parent is killed: these look.
    """
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    given = (os.getpid(), initializer, arguments)
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=given)


def _start(parent: int, initializer: Callable[..., None] | None, arguments: tuple[Any, ...]) -> None:
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    if initializer is not None:
        initializer(*arguments)


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK)
    os._exit(1)
