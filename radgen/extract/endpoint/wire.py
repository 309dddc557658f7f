"""What the model is asked to write: §1's finding with a quote, and the words of each attribute.

Every attribute may be missing or null and none has a default, since what is required gets invented.
Every string and list has a maximum, since a grammar without one can run into white space without end.
"""

from __future__ import annotations

import functools
import types
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin

import orjson
from pydantic import ConfigDict, Field, TypeAdapter, with_config
from typing_extensions import TypedDict

from radgen.extract.endpoint.settings import packaged_text
from radgen.ontology.finding import FIELDS, Finding

#: Whose evidence is the quote itself: no single word states them.
WITHOUT_WORDS = ("finding", "presence", "temporality")
WORDED = tuple(name for name in FIELDS if name not in WITHOUT_WORDS)
SECTIONS = ("findings", "impression")

_TAG, _WORDS, _QUOTE, _PLACE = 80, 160, 500, 80
_ITEMS = {"morphology": 10, "size_dims_mm": 3, "size_range_mm": 2}
_FINDINGS = 100


def _dict_type(name: str, fields: dict[str, Any], required: tuple[str, ...] = ()) -> Any:
    """Return a TypedDict that allows no other key; validating into it is thrice as fast as into a model."""
    annotations = {key: kind if key in required else NotRequired[kind] for key, kind in fields.items()}
    kind: Any = TypedDict(name, annotations)  # type: ignore[misc]  # its fields come from §1
    return with_config(ConfigDict(extra="forbid"))(kind)


def _bounded(name: str, annotation: Any) -> Any:
    """Return the annotation of §1 with a maximum on every string and list, and null allowed."""
    inner = [part for part in get_args(annotation) if part is not type(None)]
    kind = inner[0] if get_origin(annotation) in (Union, types.UnionType) and len(inner) == 1 else annotation
    if kind is str:
        kind = Annotated[str, Field(max_length=_PLACE)]
    elif get_origin(kind) is list:
        inside: Any = get_args(kind)[0]
        inside = Annotated[str, Field(max_length=_PLACE)] if inside is str else inside
        kind = Annotated[types.GenericAlias(list, (inside,)), Field(max_length=_ITEMS[name])]
    return kind | None


@functools.cache
def answer_type() -> TypeAdapter[dict[str, Any]]:
    """Return what validates a whole answer; unstated fields stay out of the result."""
    words = _dict_type("Words", dict.fromkeys(WORDED, Annotated[str, Field(max_length=_WORDS)] | None))
    attributes = {
        name: _bounded(name, Finding.model_fields[name].rebuild_annotation())
        for name in FIELDS
        if name != "finding"
    }
    fields = {
        "section": Literal["findings", "impression"] | None,
        "finding": Annotated[str, Field(min_length=1, max_length=_TAG)],
        "quote": Annotated[str, Field(min_length=1, max_length=_QUOTE)],
        **attributes,
        "words": words | None,
    }
    item = _dict_type("Item", fields, ("finding", "quote"))
    items: Any = types.GenericAlias(list, (item,))
    answer = _dict_type(
        "Answer", {"findings": Annotated[items, Field(max_length=_FINDINGS)]}, required=("findings",)
    )
    return TypeAdapter(answer)


def derive_schema() -> dict[str, Any]:
    """Return the JSON schema of the answer: no references, titles or defaults, which some servers refuse."""
    schema = answer_type().json_schema()
    definitions = schema.pop("$defs", {})

    def clean(node: Any, inside_properties: bool = False) -> Any:
        if isinstance(node, list):
            return [clean(item) for item in node]
        if not isinstance(node, dict):
            return node
        if "$ref" in node:
            return clean(definitions[node["$ref"].rsplit("/", 1)[1]])
        dropped = () if inside_properties else ("title", "default", "description")
        return {key: clean(value, key == "properties") for key, value in node.items() if key not in dropped}

    return dict(clean(schema))


@functools.cache
def packaged_schema() -> dict[str, Any]:
    """Return ``extract_schema.json``, which is what is sent."""
    return dict(orjson.loads(packaged_text("extract_schema.json")))
