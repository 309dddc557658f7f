"""The language of evidence predicates (spec §6): a tokenizer and a recursive-descent parser.

::

    predicate = name "(" term { "," term } ")"
    term      = id | number | name | text
    id        = "f" digit { digit }                   a finding of the report: f1, f2, …
    number    = digit { digit } [ "." digit { digit } ]
    name      = lower { lower | digit | "_" }         a word of the vocabulary
    text      = '"' { character | '\\"' | '\\\\' } '"'  anything else that a report calls a place or a form

Conditions of rules are written in the same language with three more kinds of term: a variable for a finding
(an upper-case name), choices (``mild|moderate``, ``@group``) and comparisons (``>=30``); see ``patterns``.
White space between the parts means nothing.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from radgen.errors import RadgenError


class PredicateError(RadgenError):
    """A predicate that cannot be read, or that its vocabulary does not have; the text says where and what."""


@dataclass(frozen=True, slots=True, order=True)
class Ref:
    """A finding of the report, ``f1`` for the first."""

    number: int

    def __str__(self) -> str:
        return f"f{self.number}"


@dataclass(frozen=True, slots=True)
class Variable:
    """A finding that a condition looks for: ``A``, ``EFFUSION``."""

    name: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Any of several values: names, ``@groups`` of the rule base."""

    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    """A comparison with a number: ``>=30``."""

    sign: str
    value: float


Value = Ref | float | str
Term = Value | Variable | Choice | Bound

_TOKENS = re.compile(
    r"\s*(?:(?P<number>[0-9]+(?:\.[0-9]+)?)(?![\w.])|(?P<name>[a-z][a-z0-9_]*)|(?P<variable>[A-Z][A-Z0-9_]*)"
    r'|(?P<text>"(?:[^"\\]|\\["\\])*")|(?P<group>@[a-z][a-z0-9_]*)|(?P<sign><=|>=|<|>)|(?P<mark>[(),|])|(?P<bad>\S))'
)
_ESCAPED = re.compile(r"\\(.)")
_ID = re.compile(r"f[1-9][0-9]*")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CALLED = {"number": "a number", "name": "a name", "variable": "a variable", "text": "a text"}


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


class _Parser:
    """Reads one predicate; every method takes what it names and leaves the rest."""

    def __init__(self, source: str, *, pattern: bool) -> None:
        self.source, self.pattern = source, pattern
        self.tokens = list(self._split(source))
        self.place = 0

    def _split(self, source: str) -> list[_Token]:
        out: list[_Token] = []
        at = 0
        while at < len(source):
            match = _TOKENS.match(source, at)
            if match is None:  # white space at the end
                break
            kind = match.lastgroup or "bad"
            text = match.group(kind)
            if kind == "bad":
                what = "a text that does not end" if text == '"' else f"the character {text!r}"
                raise self._error(f"did not expect {what}", match.start(kind))
            out.append(_Token(kind, text, match.start(kind)))
            at = match.end()
        out.append(_Token("end", "", len(source)))
        return out

    def _error(self, what: str, at: int) -> PredicateError:
        return PredicateError(f"predicate {self.source!r}, character {at + 1}: {what}")

    def _next(self) -> _Token:
        token = self.tokens[self.place]
        self.place = min(self.place + 1, len(self.tokens) - 1)
        return token

    def _mark(self, text: str) -> bool:
        """Take a mark if it comes next."""
        token = self.tokens[self.place]
        if token.kind == "mark" and token.text == text:
            self.place += 1
            return True
        return False

    def _expected(self, what: str) -> PredicateError:
        token = self.tokens[self.place]
        found = "the end" if token.kind == "end" else f"'{token.text}'"
        return self._error(f"expected {what}, found {found}", token.at)

    def predicate(self) -> tuple[str, tuple[Term, ...]]:
        """``name "(" term { "," term } ")"``, and nothing after it."""
        name = self.tokens[self.place]
        if name.kind != "name":
            raise self._expected("the name of a predicate")
        self._next()
        if not self._mark("("):
            raise self._expected("'('")
        terms = [self.term()]
        while self._mark(","):
            terms.append(self.term())
        if not self._mark(")"):
            raise self._expected("',' or ')'")
        if self.tokens[self.place].kind != "end":
            raise self._expected("the end")
        return name.text, tuple(terms)

    def term(self) -> Term:
        """``id | number | name | text``; in a pattern also a variable, choices, or a comparison."""
        token = self.tokens[self.place]
        if token.kind == "number":
            self._next()
            return float(token.text)
        if token.kind == "text":
            self._next()
            return _ESCAPED.sub(r"\1", token.text[1:-1])
        if token.kind == "name" and _ID.fullmatch(token.text):
            self._next()
            return Ref(int(token.text[1:]))
        if self.pattern:
            return self._pattern_term(token)
        if token.kind == "name":
            self._next()
            return token.text
        raise self._expected("a finding (f1), a number, a name or a text")

    def _pattern_term(self, token: _Token) -> Term:
        if token.kind == "variable":
            self._next()
            return Variable(token.text)
        if token.kind == "sign":
            self._next()
            number = self.tokens[self.place]
            if number.kind != "number":
                raise self._expected("a number")
            self._next()
            return Bound(token.text, float(number.text))
        values: list[str] = []
        while True:
            token = self.tokens[self.place]
            if token.kind not in ("name", "group"):
                raise self._expected("a variable, a value, '@group' or a comparison")
            self._next()
            values.append(token.text)
            if not self._mark("|"):
                return Choice(tuple(values))


def parse_terms(source: str, *, pattern: bool = False) -> tuple[str, tuple[Term, ...]]:
    """Return the name and the terms of one predicate.

    Args:
        pattern: a condition of a rule, which may have variables, choices and comparisons.

    Raises:
        PredicateError: what was expected and what was found, with the place (from 1).
    """
    return _Parser(source, pattern=pattern).predicate()


def print_value(value: Value) -> str:
    """Return a value as the grammar has it.

    >>> print_value(12.0), print_value(2.5), print_value("right"), print_value("T8"), print_value("f1")
    ('12', '2.5', 'right', '"T8"', '"f1"')
    """
    if isinstance(value, Ref):
        return str(value)
    if isinstance(value, str):
        if _NAME.fullmatch(value) and not _ID.fullmatch(value):
            return value
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return str(int(value)) if value == int(value) else format(Decimal(repr(value)), "f")
