"""Dataset folders (spec §9): written beside their place and renamed into it, never over another one.

A folder is either a whole dataset or not there: an interrupted run leaves ``.NAME.partial``, which the next
run of the same command replaces.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from radgen.errors import DatasetError
from radgen.generators.splits import SPLITS

MANIFEST = "manifest.json"


def dump(value: Any) -> bytes:
    """Return JSON with sorted keys, indented: the same bytes for the same value."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n"


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """Return the manifest of a dataset folder, or None where there is none.

    Raises:
        DatasetError: there is one that is not JSON.
    """
    path = folder / MANIFEST
    try:
        found = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except NotADirectoryError:
        raise DatasetError(f"{folder}: expected a folder, found a file") from None
    except orjson.JSONDecodeError as error:
        raise DatasetError(f"{path}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise DatasetError(f"{path}: expected a JSON object")
    return found


def finished(folder: Path, fingerprint: str, force: bool) -> bool:
    """Whether the dataset already stands here; False where it has to be made.

    Raises:
        DatasetError: something else stands here, and ``force`` was not given, or it is no dataset at all.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise DatasetError(
                f"{folder}: holds files that are no radgen dataset; give another --out (nothing was changed)"
            )
        return False
    if manifest.get("fingerprint") == fingerprint and _whole(folder, manifest):
        return True
    if not force:
        raise DatasetError(
            f"{folder}: holds another dataset ({manifest.get('command', 'unknown command')}); "
            "give another --out, or --force to replace it"
        )
    return False


def _whole(folder: Path, manifest: dict[str, Any]) -> bool:
    """Whether every file of the manifest is there with its size (``radgen verify`` checks the rest)."""
    files = manifest.get("files", {})
    return bool(files) and all(
        (folder / name).is_file() and (folder / name).stat().st_size == entry.get("bytes")
        for name, entry in files.items()
    )


class Writer:
    """Writes the three files of a dataset and counts and hashes what goes into them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows: dict[str, int] = dict.fromkeys(SPLITS, 0)
        self.bytes: dict[str, int] = dict.fromkeys(SPLITS, 0)
        self._hashes: dict[str, Any] = {name: sha256() for name in SPLITS}
        self._files: dict[str, BinaryIO] = {
            name: (folder / f"{name}.jsonl").open("wb", buffering=1 << 20) for name in SPLITS
        }

    def write(self, split: str, line: bytes) -> None:
        """Append one row to a split."""
        data = line + b"\n"
        self._files[split].write(data)
        self._hashes[split].update(data)
        self.rows[split] += 1
        self.bytes[split] += len(data)

    def close(self, *, keep: bool = True) -> None:
        """Close the files; with ``keep`` they are on the disk when this returns."""
        for file in self._files.values():
            if keep:
                file.flush()
                os.fsync(file.fileno())
            file.close()

    def files(self) -> dict[str, dict[str, Any]]:
        """Return rows, bytes and sha256 a file."""
        return {
            f"{name}.jsonl": {
                "rows": self.rows[name],
                "bytes": self.bytes[name],
                "sha256": self._hashes[name].hexdigest(),
            }
            for name in SPLITS
        }


@contextmanager
def replacing(folder: Path) -> Iterator[Path]:
    """Give a folder to write into that takes the place of ``folder`` when the block ends well.

    Raises:
        DatasetError: the disk is full, or the place cannot be written; nothing that stood there is touched.
    """
    partial = folder.parent / f".{folder.name}.partial"
    old = folder.parent / f".{folder.name}.old"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        if not folder.exists() and old.exists():
            os.rename(old, folder)  # a run was killed between the two renames below
        shutil.rmtree(old, ignore_errors=True)
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
    except OSError as error:
        raise DatasetError(_cannot(folder, error)) from None
    try:
        yield partial
        if folder.exists():
            os.rename(folder, old)
        os.rename(partial, folder)
        _sync(folder.parent)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise DatasetError(_cannot(folder, error)) from None
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _cannot(folder: Path, error: OSError) -> str:
    reason = {
        errno.ENOSPC: "the disk is full",
        errno.EDQUOT: "the disk quota is used up",
        errno.EROFS: "the file system is read-only",
        errno.EACCES: "no permission to write there",
        errno.EPERM: "no permission to write there",
        errno.ENOTDIR: "a part of the path is a file",
        errno.EEXIST: "a part of the path is a file",
    }.get(error.errno or 0, error.strerror or str(error))
    return f"{folder}: cannot be written: {reason}; nothing was changed"


def write_file(path: Path, data: bytes) -> None:
    """Write a small file so that it is on the disk when this returns."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
