"""Sentences of radiology reports: where each one starts and ends."""

from __future__ import annotations

import re

#: Where a sentence may end; every alternative begins with one of few signs and takes constant time.
_BREAK = re.compile(
    r"""
      (?P<line>\n\s*)
    | (?P<stop>[.!?]["')\]]{0,2})(?:\s|$)               # a full stop and a space
    | (?P<glued>[.!?])(?=[A-Z][a-z])                     # "normal.No effusion"
    | (?P<number>[0-9]{1,2})[.)][ ]{0,2}(?=[A-Z][a-z])   # "effusion 2. No change"
    """,
    re.VERBOSE,
)
#: One sentence and no doubt about it.
_ONE = re.compile(r"[A-Za-z][^\n.!?0-9]*[A-Za-z)][.!]?")
#: A line that begins like this begins a sentence; any other goes on with the sentence before it.
_NEW_LINE = re.compile(r"[A-Z\[(]|\d{1,2}[.)]\s*\S|[-*\u2022\u25cf\u25aa\u2013]\s*\S")
_LIST_MARK = re.compile(r"[\s\u2022\u25cf\u25aa*]*(?:[-\u2013]\s*|\(?(?P<number>\d{1,2})[.)](?!\d)\s*)?")
_LAST_WORD = re.compile(r"(?:^|[\s(\[/])([A-Za-z][A-Za-z.]*|\d{1,2})$")
_ABBREVIATIONS = frozenset(
    [
        "dr",
        "drs",
        "mr",
        "mrs",
        "ms",
        "prof",
        "vs",
        "approx",
        "ca",
        "cf",
        "eg",
        "e.g",
        "ie",
        "i.e",
        "fig",
        "nos",
        "incl",
        "diam",
        "bilat",
        "hx",
        "s.p",
    ]
)
#: Abbreviations that are also the last word of sentences: what follows decides.
_UNSURE = frozenset(
    [
        "post",
        "min",
        "max",
        "st",
        "med",
        "etc",
        "inf",
        "sup",
        "lat",
        "ant",
        "resp",
        "rt",
        "lt",
        "pt",
        "seg",
        "segs",
        "no",
    ]
)
_MARKS = "-\u2022* \t\n()"
_TAIL = 24


def sentences(text: str) -> list[tuple[int, int]]:
    """Return the spans of the sentences of a text, list marks left out, in order.

    >>> text = "1.No effusion. A 2.5 cm mass vs. scar."
    >>> [text[start:end] for start, end in sentences(text)]
    ['No effusion.', 'A 2.5 cm mass vs. scar.']
    """
    if _ONE.fullmatch(text):
        return [(0, len(text))]
    spans: list[tuple[int, int]] = []
    start, number = 0, 1
    for match in _BREAK.finditer(text):
        kind = match.lastgroup
        end = match.end(kind or 0)
        if kind == "line":
            if match[0].count("\n") < 2 and not _NEW_LINE.match(text, end):
                continue
            end = match.start()
        elif kind == "number":
            at = match.start()
            if at - start < 6 and not text[start:at].strip(_MARKS):
                number = int(match[0][: end - at])
                continue
            if at and text[at - 1].isalnum() and text[at - 1] != "X":
                continue
            if int(text[at:end]) == number + 1:
                number = _add(text, start, at, spans, number) + 1
                start = at
                continue
            if text[end] != ".":
                continue
            end += 1
        elif _goes_on(text, start, match.start(), end):
            continue
        number = _add(text, start, end, spans, number)
        start = match.end() if kind == "line" else end
    _add(text, start, len(text), spans, number)
    return spans


def _add(text: str, start: int, end: int, spans: list[tuple[int, int]], number: int) -> int:
    """Append one sentence without its list mark; return the number of the list that it stands in."""
    if start < end and not text[start].isalpha():
        mark = _LIST_MARK.match(text, start, end)
        if mark and mark.end() > start:
            start = mark.end()
            number = int(mark["number"] or number)
    while end > start and text[end - 1].isspace():
        end -= 1
    if end - start > _TAIL or any(sign.isalnum() for sign in text[start:end]):
        spans.append((start, end))
    return number


def _goes_on(text: str, start: int, stop: int, end: int) -> bool:
    """Tell the full stop of an abbreviation or a list number from one that ends a sentence."""
    if end == len(text):
        return False
    if text[stop] == "?" and not text[start:stop].strip(_MARKS):
        return True  # "? pneumothorax"
    last = _LAST_WORD.search(text[max(start, stop - _TAIL) : stop])
    if not last:
        return False
    word = last[1].lower()
    if word.isdigit():  # "1. no effusion": the number opens what follows; "of 8. No" ends
        return stop - start < 6 and not text[start:stop].strip(_MARKS).strip(last[1])
    if word not in _UNSURE:
        following = text[end : end + 2].strip()[:1] if len(word) == 1 else ""
        return word in _ABBREVIATIONS or (len(word) == 1 and word not in "lr" and following.islower())
    following = text[end : end + 2].strip()[:1]
    return following.isdigit() or (word != "no" and following.islower())
