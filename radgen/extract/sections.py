"""Sections of a report, found by their headings in the forms that reports really use.

``FINDINGS:``, ``Impression`` on a line of its own, ``CONCLUSION -``, ``FINDINGS/IMPRESSION:``,
``**Findings:**``, ``CT CHEST FINDINGS:``, several on one line, or none at all.
The names are in ``data/sections.yaml``.
"""

from __future__ import annotations

import bisect
import functools
import re
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from radgen.yamlfile import read_yaml, validate

FINDINGS = "findings"
IMPRESSION = "impression"
BOTH = "findings_impression"
PREAMBLE = "preamble"

_DECORATION = r"[\s#*_=<>\[\]|•~>\-]*"
_NAME = r"[A-Za-z][A-Za-z0-9 \t/&,'\-]{0,60}?"
_PAREN = r"(?:[ \t]*\([^()\n]{0,60}\))?"
_COLON = re.compile(rf"{_DECORATION}(?:\d{{1,2}}[.)]\s*)?(?P<name>{_NAME}){_PAREN}[\s*_\]]*[:;][*_\]>]*")
_DASH = re.compile(rf"{_DECORATION}(?P<name>{_NAME}){_PAREN}[*_]*[ \t]+[-–—]+[ \t]+")
_ALONE = re.compile(rf"{_DECORATION}(?P<name>{_NAME}){_PAREN}[\s#*_=<>\[\]|~.:\-]*$")
_JOIN = re.compile(r"\s*(?:[/&,]|\band\b|\bor\b|\s-\s)\s*")
_SENTENCE_END = re.compile(r"[.!?;:)\]\"'*_]\s*$")
_LONGEST_HEADING = 100


class _SectionsFile(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    sections: dict[str, list[str]]
    qualified: list[str]
    qualifiers: list[str]
    not_current: list[str]
    metadata: list[str]


@dataclass(frozen=True, slots=True)
class Section:
    """One section: ``text[start:end]`` is its body without the heading and outer white space.

    ``name`` is a key of ``sections.yaml``, ``findings_impression`` for a common section, or
    ``preamble`` for what stands before the first heading.
    """

    name: str
    start: int
    end: int
    heading: str = ""


@functools.cache
def section_names() -> _SectionsFile:
    """Return the packaged names of sections."""
    with resources.as_file(resources.files("radgen.extract").joinpath("data", "sections.yaml")) as path:
        source = read_yaml(Path(path), name="radgen/extract/data/sections.yaml", careful=False)
    return validate(_SectionsFile, source.data, [source])


@functools.cache
def _phrases() -> dict[str, str]:
    return {phrase: name for name, phrases in section_names().sections.items() for phrase in phrases}


@functools.cache
def _inline() -> re.Pattern[str]:
    """Names that may stand within a line; matched against the text that ends at a colon."""
    names = sorted(_phrases(), key=len, reverse=True)
    first = [name for name in names if _phrases()[name] in (FINDINGS, IMPRESSION)]
    joined = "|".join(re.escape(name).replace(r"\ ", r"[ \t]+") for name in names)
    main = "|".join(re.escape(name) for name in first if " " not in name)
    pair = rf"(?:{main})\s?(?:/|&|,|and)\s?(?:{main})"
    return re.compile(rf"(?<![\w/&])(?P<name>{pair}|{joined}){_PAREN}[ \t]?$", re.IGNORECASE)


@functools.lru_cache(maxsize=4096)
def classify_heading(heading: str) -> str | None:
    """Return the section that a heading names, or ``None`` if it names none.

    >>> classify_heading("CT CHEST FINDINGS"), classify_heading("Findings / Impression")
    ('findings', 'findings_impression')
    >>> classify_heading("Lungs") is None
    True
    """
    text = " ".join(heading.lower().split()).strip(" -/,&'")
    whole = _classify_part(text)
    if whole:
        return whole
    parts = [_classify_part(part) for part in _JOIN.split(text) if part]
    names = [part for part in parts if part]
    if not names or len(names) != len(parts):
        return None
    if FINDINGS in names:
        return BOTH if IMPRESSION in names else FINDINGS
    return IMPRESSION if IMPRESSION in names else names[0]


def _classify_part(text: str) -> str | None:
    phrases = _phrases()
    if text in phrases:
        return phrases[text]
    names, words = section_names(), text.split()
    for cut in range(1, len(words)):
        for name, others in ((words[cut:], words[:cut]), (words[:cut], words[cut:])):
            section = phrases.get(" ".join(name))
            if section in names.qualified and all(word in names.qualifiers for word in others):
                return section
    return None


def _line_heading(line: str) -> tuple[str, str, int] | None:
    """Return (section, heading, length of the heading) of a line that begins with a heading."""
    start = line[:_LONGEST_HEADING]
    match = _COLON.match(start)
    if match and (name := classify_heading(match["name"])):
        return name, match["name"], match.end()
    match = _ALONE.match(start) if len(line) <= _LONGEST_HEADING else None
    if match and match["name"][0].isupper() and (name := classify_heading(match["name"])):
        return name, match["name"], len(line)
    match = _DASH.match(start)
    if match and match["name"][0].isupper():
        name = classify_heading(match["name"])
        if name in (FINDINGS, IMPRESSION, BOTH):
            return name, match["name"], match.end()
    return _bare_heading(start)


_BARE = re.compile(r"\s*(?P<name>[A-Z]{3,}(?:[ ]?(?:/|&|AND)[ ]?[A-Z]{3,})?)(?P<gap>[ \t]+)(?P<next>\S+)")


def _bare_heading(line: str) -> tuple[str, str, int] | None:
    """A name in capitals without a colon: a wide gap, a number, or text in small letters must follow."""
    match = _BARE.match(line)
    if not match:
        return None
    name = classify_heading(match["name"])
    if name not in (FINDINGS, IMPRESSION, BOTH):
        return None
    following = match["next"]
    wide = len(match["gap"]) > 1 or "\t" in match["gap"]
    sentence = following[0].isdigit() or (following[0].isupper() and line[match.end() - 1].islower())
    article = following in ("A", "An", "No") or (len(following) == 1 and following.isupper())
    if wide or sentence or article:
        return name, match["name"], match.end("gap")
    return None


def _inline_headings(text: str) -> list[tuple[int, int, str, str]]:
    found = []
    colon = text.find(":")
    while colon >= 0:
        begin = max(0, colon - _LONGEST_HEADING)
        match = _inline().search(text[begin:colon])
        name = classify_heading(match["name"]) if match else None
        if match and name:
            main = name in (FINDINGS, IMPRESSION, BOTH)
            capitals = match["name"].isupper() and len(match["name"]) > 3
            after_sentence = bool(_SENTENCE_END.search(text[begin : begin + match.start()]))
            if (main and (capitals or after_sentence)) or (capitals and after_sentence):
                found.append((begin + match.start(), colon + 1, name, match["name"]))
        colon = text.find(":", colon + 1)
    return found


def split_sections(text: str) -> list[Section]:
    """Return the sections of a report in their order; a text without headings is one preamble.

    Sections with an empty body are left out.

    >>> text = "FINDINGS: Clear lungs. IMPRESSION: Normal."
    >>> [(s.name, text[s.start : s.end]) for s in split_sections(text)]
    [('findings', 'Clear lungs.'), ('impression', 'Normal.')]
    """
    headings: dict[int, tuple[int, str, str]] = {}
    offset = 0
    for line in text.splitlines(keepends=True):
        found = _line_heading(line.rstrip("\r\n"))
        if found:
            name, heading, length = found
            headings[offset] = (offset + length, name, heading)
        offset += len(line)
    bodies = sorted((start, end) for start, (end, _, _) in headings.items())
    for start, end, name, heading in _inline_headings(text):
        index = bisect.bisect_right(bodies, (start, len(text)))
        if not index or bodies[index - 1][1] <= start:  # not the heading that the line begins with
            headings[start] = (end, name, heading)
    marks = sorted((start, *rest) for start, rest in headings.items())
    out: list[Section] = []
    edges = [*(start for start, *_ in marks), len(text)]
    _append(out, text, PREAMBLE, 0, edges[0], "")
    for (_, body, name, heading), end in zip(marks, edges[1:], strict=True):
        _append(out, text, name, body, end, heading)
    return out


def _append(out: list[Section], text: str, name: str, start: int, end: int, heading: str) -> None:
    body = text[start:end]
    stripped = body.strip()
    if stripped:
        start += len(body) - len(body.lstrip())
        out.append(Section(name, start, start + len(stripped), heading))


def findings_and_impression(text: str) -> tuple[str | None, str | None]:
    """Return the findings and the impression of a report's text, ``None`` where it has none.

    A common section ("FINDINGS/IMPRESSION") is findings: as both it would make a pair of equal texts.
    Without a findings heading, the unnamed paragraphs after the introduction are the findings; a text
    without any heading is findings as a whole.
    """
    sections = split_sections(text)
    findings = [text[s.start : s.end] for s in sections if s.name in (FINDINGS, BOTH)]
    impression = [text[s.start : s.end] for s in sections if s.name == IMPRESSION]
    if not findings:
        findings = _unnamed_findings(text, sections)
    return "\n".join(findings) or None, "\n".join(impression) or None


def _unnamed_findings(text: str, sections: list[Section]) -> list[str]:
    metadata = section_names().metadata
    before = []
    for section in sections:
        if section.name == IMPRESSION:
            break
        before.append(section)
    for section in reversed(before):
        if section.name in metadata:
            paragraphs = re.split(r"\n[ \t]*\n", text[section.start : section.end], maxsplit=1)
            if len(paragraphs) == 2 and paragraphs[1].strip():
                return [paragraphs[1].strip()]
    preamble = [s for s in sections if s.name == PREAMBLE]
    if not preamble:
        return []
    body = text[preamble[0].start : preamble[0].end]
    if len(sections) == 1:
        return [body]
    return [body] if not _is_title(body) else []


def _is_title(text: str) -> bool:
    """A title names the study ("CHEST, TWO VIEWS"); it is short and no line of it is a sentence."""
    return all(
        len(line.split()) <= 10 and not re.search(r"[a-z\d)][.!?]\s*$", line) for line in text.splitlines()
    )
