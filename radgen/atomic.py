"""A file that appears under its name only when it is complete."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from radgen.errors import RadgenError


class AtomicFile:
    """Write to ``.NAME.partial`` beside the target, then rename.

    On an error the partial file is removed and the target is as it was. A partial file that a killed
    process left behind is written anew by the next one; two processes at once are refused.

    Raises:
        RadgenError: the target exists and ``force`` is false, or another process writes it now.
        OSError: the folder cannot be written, or the disk is full.
    """

    def __init__(self, path: Path, *, force: bool = False) -> None:
        self.path = path
        self.partial = path.with_name(f".{path.name}.partial")
        if path.is_dir():
            raise RadgenError(f"{path}: is a folder, expected the name of a file")
        nearest = next(folder for folder in path.absolute().parents if folder.exists())
        if not nearest.is_dir():
            raise RadgenError(f"{nearest}: is a file, expected a folder")
        if path.exists() and not force:
            raise RadgenError(f"{path}: exists already; name another file or add --force to replace it")

    def __enter__(self) -> BinaryIO:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.partial, os.O_WRONLY | os.O_CREAT, 0o666)
        self._handle: BinaryIO = os.fdopen(descriptor, "wb")
        try:
            _lock(descriptor, self.path)
            os.ftruncate(descriptor, 0)
        except BaseException:
            self._handle.close()
            raise
        return self._handle

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._handle.flush()
                os.fsync(self._handle.fileno())
                os.replace(self.partial, self.path)
        except OSError as failed:
            self._discard()
            self._name(failed)
            raise
        if kind is not None:
            self._discard()
            if isinstance(error, OSError):
                self._name(error)
        else:
            self._handle.close()

    def _name(self, error: OSError) -> None:
        """Say which file did not fit: writing and flushing know no name."""
        if error.filename is None and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            error.filename = str(self.path)

    def _discard(self) -> None:
        self.partial.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # the buffer cannot be written either; that was raised before
            self._handle.close()


def _lock(descriptor: int, path: Path) -> None:
    """Take the file for this process; the lock ends with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RadgenError(f"{path}: another radgen is writing it now") from None
