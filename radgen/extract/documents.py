"""Reports that are documents: text files and Open-I XML, one by one, in a folder or in an archive.

Nothing is unpacked to disk. A hostile archive or file runs into a limit of ``data/readers.yaml``.
"""

from __future__ import annotations

import gzip
import os
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO
from xml.parsers import expat

from radgen.errors import RadgenError
from radgen.extract.rows import BOM, Row, Source, decode, settings

#: What a document can give; ``text`` is split into sections later.
COLUMNS = ["id", "findings", "impression", "text", "abnormalities"]


class _DoctypeError(Exception):
    """The XML has something that no report needs and an attack would."""


class _OpenI:
    """Handlers that collect the parts of one Open-I record; no tree is built."""

    def __init__(self) -> None:
        self.id = ""
        self.sections: dict[str, str] = {}
        self.mesh: list[str] = []
        self._label: str | None = None
        self._text: list[str] = []

    def parse(self, raw: bytes) -> dict[str, Any]:
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        # Entities can only be declared in a DOCTYPE: without one nothing expands and nothing is fetched.
        parser.StartDoctypeDeclHandler = self._doctype
        parser.Parse(raw, True)
        return {
            "id": self.id,
            "findings": self.sections.get("FINDINGS"),
            "impression": self.sections.get("IMPRESSION"),
            "abnormalities": self._abnormalities(),
        }

    def _abnormalities(self) -> list[str] | None:
        """MeSH terms that people assigned; ``normal`` is an empty list, no indexing is unknown."""
        if not self.mesh or "no indexing" in [term.lower() for term in self.mesh]:
            return None
        return [term for term in self.mesh if term.lower() != "normal"]

    def _doctype(self, *_: Any) -> None:
        raise _DoctypeError

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name in ("AbstractText", "major"):
            self._label = name if name == "major" else attributes.get("Label", "").strip().upper()
            self._text = []
        elif name == "uId":
            self.id = attributes.get("id", "").strip()

    def _characters(self, text: str) -> None:
        if self._label is not None:
            self._text.append(text)

    def _end(self, name: str) -> None:
        if name not in ("AbstractText", "major"):
            return
        text = " ".join("".join(self._text).split())
        if name == "major" and text:
            self.mesh.append(text)
        elif self._label:
            self.sections[self._label] = " ".join(filter(None, (self.sections.get(self._label), text)))
        self._label = None


def parse_openi(raw: bytes) -> dict[str, Any]:
    """Return id, findings, impression and abnormalities (MeSH terms) of one Open-I record.

    Raises:
        RadgenError: the XML is broken, has a DOCTYPE (entities are never expanded), or is no such record.
    """
    record = _OpenI()
    try:
        data = record.parse(raw)
    except _DoctypeError:
        raise RadgenError("XML with a DOCTYPE is refused") from None
    except (expat.ExpatError, LookupError, ValueError):  # the last two: an unknown encoding
        raise RadgenError("not valid XML") from None
    if not record.sections:
        raise RadgenError("XML, but no Open-I report")
    return data


def _document(name: str, raw: bytes) -> Row:
    """Turn the bytes of one document into a row."""
    stem = name.rsplit(".", 1)[0]
    if len(raw) > settings().limits.document_bytes:
        return Row(name, None, None, f"the file is longer than {settings().limits.document_bytes} bytes")
    if name.lower().endswith(".xml"):
        try:
            data = parse_openi(raw)
        except RadgenError as error:
            return Row(name, None, None, str(error))
        return Row(name, None, data | {"id": data["id"] or stem})
    if b"\0" in raw:
        return Row(name, None, None, "not a text file (UTF-16, or binary)")
    text, latin1 = decode(raw.removeprefix(BOM))
    return Row(name, None, {"id": stem, "text": text}, latin1=latin1)


def _readable(name: str) -> str:
    """Make a file name that is no UTF-8 printable."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _wanted(name: str) -> bool:
    base = name.rsplit("/", 1)[-1].lower()
    return not base.startswith(".") and base.endswith(tuple(settings().suffixes["document"]))


def document_source(path: Path) -> Source:
    """Return the one row of a text or XML file."""
    with path.open("rb") as handle:
        raw = handle.read(settings().limits.document_bytes + 1)
    return Source(COLUMNS, [_document(_readable(path.name), raw)])


# -------------------------------------------------------------------------------------- folder


def folder_source(path: Path) -> Source:
    """Return a row for every text or XML file in a folder and the folders in it, in the order of names."""
    source = Source(COLUMNS, ())
    source.rows = _folder_rows(path, source)
    return source


def _folder_rows(root: Path, source: Source) -> Iterator[Row]:
    found = False
    for entry in _walk(root):
        name = _readable(os.path.relpath(entry, root).replace(os.sep, "/"))
        if not _wanted(name):
            source.skipped += 1
            continue
        found = True
        try:
            with open(entry, "rb") as handle:
                raw = handle.read(settings().limits.document_bytes + 1)
        except OSError as error:
            yield Row(name, None, None, f"cannot be read: {error.strerror}")
            continue
        yield _document(name, raw)
    if not found:
        kinds = ", ".join(settings().suffixes["document"])
        raise RadgenError(f"{root}: no report in this folder; expected files that end in {kinds}")


def _walk(folder: Path) -> Iterator[str]:
    """Yield the regular files below a folder; links are not followed, they may lead outside or in circles."""
    with os.scandir(folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            yield entry.path


# ------------------------------------------------------------------------------------- archive


class _Metered:
    """Bytes of an unpacked archive, with a limit on all of it and on what stands between two members."""

    def __init__(self, handle: BinaryIO, path: Path) -> None:
        self._handle, self._path = handle, path
        self._left = settings().limits.archive_bytes
        self._allowance = settings().limits.header_bytes

    def expect(self, size: int) -> None:
        """Allow a member of this size and the next header."""
        self._allowance = size + settings().limits.header_bytes

    def read(self, size: int) -> bytes:
        data = self._handle.read(size)
        self._left -= len(data)
        self._allowance -= len(data)
        if self._left < 0:
            limit = settings().limits.archive_bytes
            raise RadgenError(f"{self._path}: the archive unpacks to more than {limit} bytes; refused")
        if self._allowance < 0:
            raise RadgenError(f"{self._path}: a header in the archive is larger than any real one; refused")
        return data


def archive_source(path: Path) -> Source:
    """Return a row for every text or XML file in a tar archive, compressed with gzip or not.

    Members are read in memory and never written, so no name can lead outside; one that tries is rejected.
    """
    source = Source(COLUMNS, ())
    source.rows = _archive_rows(path, source)
    return source


def _archive_rows(path: Path, source: Source) -> Iterator[Row]:
    count = 0
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream: Any = gzip.GzipFile(fileobj=raw) if zipped else raw
        metered: Any = _Metered(stream, path)
        try:
            with tarfile.open(fileobj=metered, mode="r|") as archive:
                for member in archive:
                    # tarfile keeps every header: memory would grow without end
                    archive.members = []  # type: ignore[attr-defined]  # not in the stubs
                    metered.expect(member.size)
                    row = _member(archive, member)
                    if row is None:
                        source.skipped += not member.isdir()
                    else:
                        count += 1
                        yield row
        except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile):
            raise RadgenError(f"{path}: no tar archive, or damaged after {count} files") from None
    if not count:
        kinds = ", ".join(settings().suffixes["document"])
        raise RadgenError(f"{path}: no report in this archive; expected files that end in {kinds}")


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> Row | None:
    """Read one member; ``None`` for a folder and for a file that is no report."""
    name = _readable(member.name)
    if member.isdir() or not _wanted(name):
        return None
    parts = PurePosixPath(name).parts
    if ".." in parts or name.startswith(("/", "\\")) or ":" in parts[0]:
        return Row(name, None, None, "its name leads outside the archive")
    if not member.isreg():
        return Row(name, None, None, "a link or device, not a file")
    limit = settings().limits.document_bytes
    if member.size > limit:
        return Row(name, None, None, f"the file is longer than {limit} bytes")
    handle = archive.extractfile(member)
    return None if handle is None else _document(name, handle.read())
