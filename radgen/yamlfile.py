"""YAML files whose mistakes are reported with file, line and path, all of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from radgen.errors import OntologyError, RadgenError, did_you_mean

Loc = tuple[str | int, ...]
M = TypeVar("M", bound=BaseModel)
_Loader: type = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass
class Source:
    """One YAML file: its name for messages, its data, and (on demand) the line of every key."""

    name: str
    text: str
    data: dict[str, Any]
    _marks: dict[Loc, int] | None = field(default=None, repr=False)

    @property
    def marks(self) -> dict[Loc, int]:
        """Line numbers (from 1) by path; read only when something has to be reported."""
        if self._marks is None:
            self._marks = {}
            loader = _Loader(self.text)
            _mark(loader.get_single_node(), (), self._marks)
        return self._marks

    def line(self, loc: Loc) -> tuple[int, int]:
        """Return (length of the longest prefix of ``loc`` that this file holds, its line)."""
        for length in range(len(loc), 0, -1):
            if loc[:length] in self.marks:
                return length, self.marks[loc[:length]]
        return 0, 1


@dataclass
class Section(Source):
    """A user's file, asked for lines by paths inside one of its top-level sections."""

    section: str = ""

    @classmethod
    def of(cls, source: Source, section: str) -> Section:
        """Return the file with its lines asked for inside a section."""
        return cls(source.name, source.text, source.data, section=section)

    def line(self, loc: Loc) -> tuple[int, int]:
        """Return (length of the longest prefix of ``loc`` that the section holds, its line)."""
        length, line = super().line((self.section, *loc))
        return length - 1, line


def _mark(node: Any, loc: Loc, marks: dict[Loc, int]) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            inner = (*loc, str(key.value))
            marks[inner] = key.start_mark.line + 1
            _mark(value, inner, marks)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            marks[(*loc, index)] = value.start_mark.line + 1
            _mark(value, (*loc, index), marks)


def _duplicates(node: Any, name: str, loc: tuple[str, ...], problems: list[str]) -> None:
    """Report keys that stand twice in one mapping: YAML would silently keep the last."""
    if isinstance(node, yaml.MappingNode):
        seen: dict[str, int] = {}
        for key, value in node.value:
            word = str(key.value)
            line = key.start_mark.line + 1
            if word in seen:
                problems.append(
                    f"{name}:{line}: '{'.'.join((*loc, word))}' stands twice (first on line {seen[word]})"
                )
            seen[word] = line
            _duplicates(value, name, (*loc, word), problems)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _duplicates(value, name, loc, problems)


def read_yaml(path: Path, *, name: str | None = None, careful: bool = True) -> Source:
    """Read one YAML mapping.

    Args:
        careful: also look for keys that stand twice (packaged files are checked by a test instead).

    Raises:
        RadgenError: the file is missing, unreadable or no mapping.
        OntologyError: it is not YAML, or a key stands twice.
    """
    name = name or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise RadgenError(f"{name}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RadgenError(f"{name}: cannot be read as UTF-8 text: {error}") from None
    try:
        if careful:
            problems: list[str] = []
            _duplicates(_Loader(text).get_single_node(), name, (), problems)
            if problems:
                raise OntologyError(problems)
        data = _Loader(text).get_single_data()
    except yaml.MarkedYAMLError as error:
        line = (error.problem_mark.line + 1) if error.problem_mark else 1
        raise OntologyError([f"{name}:{line}: not valid YAML: {error.problem}"]) from None
    except yaml.YAMLError as error:
        raise OntologyError([f"{name}:1: not valid YAML: {error}"]) from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise OntologyError([f"{name}:1: expected a mapping of sections, found {type(data).__name__}"])
    return Source(name, text, _text_keys(data))


def _text_keys(value: Any) -> Any:
    """Make every key text, so that ``3:`` and ``true:`` in YAML cannot surprise the models."""
    if isinstance(value, dict):
        return {str(key): _text_keys(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_text_keys(inner) for inner in value]
    return value


def merge(base: Any, over: Any) -> Any:
    """Lay one tree over another: mappings merge, everything else replaces.

    >>> merge({"a": {"x": 1, "y": 2}}, {"a": {"y": 3}})
    {'a': {'x': 1, 'y': 3}}
    """
    if isinstance(base, Mapping) and isinstance(over, Mapping):
        out = dict(base)
        for key, value in over.items():
            out[key] = merge(base[key], value) if key in base else value
        return out
    return over


def where(sources: Iterable[Source], loc: Loc) -> str:
    """Return ``file:line`` of the source that holds most of ``loc``; the last one wins a tie."""
    best, place = -1, ""
    for source in sources:
        length, line = source.line(loc)
        if length >= best:
            best, place = length, f"{source.name}:{line}"
    return place


def validate(model: type[M], data: Any, sources: list[Source], prefix: Loc = ()) -> M:
    """Validate ``data`` and report every mistake with file, line, path and the nearest right word.

    Raises:
        OntologyError: with one line a mistake.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        problems = []
        for item in error.errors():
            loc = prefix + tuple(part for part in item["loc"])
            problems.append(f"{where(sources, loc)}: {'.'.join(map(str, loc))}: {explain(item, model)}")
        raise OntologyError(problems) from None


_SHAPES = {
    "dict_type": "a mapping (key: value)",
    "model_type": "a mapping (key: value)",
    "model_attributes_type": "a mapping (key: value)",
    "list_type": "a list",
    "string_type": "text",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
}


def explain(item: Any, model: type[BaseModel]) -> str:
    """Say what was expected instead of what one pydantic error found, with the nearest right word."""
    kind, given = item["type"], item.get("input")
    if kind == "extra_forbidden":
        key = str(item["loc"][-1])
        known = sorted(_keys(model, set()))
        return f"unknown key '{key}'{did_you_mean(key, known)}"
    if kind == "literal_error":
        expected = item["ctx"]["expected"]
        words = [word.strip(" '") for word in expected.replace(" or ", ",").split(",")]
        return f"expected {expected}, found {given!r}{did_you_mean(str(given), words)}"
    if kind == "missing":
        return f"expected a value for '{item['loc'][-1]}', found none"
    if kind in _SHAPES:
        return f"expected {_SHAPES[kind]}, found {given!r}"
    return f"{item['msg'][0].lower()}{item['msg'][1:]}, found {given!r}"


def _keys(model: type[BaseModel], seen: set[type]) -> set[str]:
    """Every key that a model or a model inside it knows."""
    if model in seen:
        return set()
    seen.add(model)
    names: set[str] = set()
    for name, info in model.model_fields.items():
        names.add(info.alias or name)
        for inner in _models(info.annotation):
            names |= _keys(inner, seen)
    return names


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for arg in getattr(annotation, "__args__", ()) for found in _models(arg)]
