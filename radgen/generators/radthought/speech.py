"""The sentences of rules: their texts with noun phrases and verbs in the slots.

===================  =====================================================================================
slot                 what stands there
===================  =====================================================================================
``{A}``              noun phrase of a variable: the first of ``derived`` with every detail, others their place
``{A.place}`` …      noun phrase in the detail named: name, place, still (no change), full
``{is|are A}``       the form that agrees with it: any two words
``{all}``            those of ``derived`` and what ``also`` collected, joined by "and"; details as above
``{is|are all}``     the form that agrees with all of them
``{none}``           the same, joined by "or", as what follows "no"
``{system A}``       its organ system
``{side A}``         "left", "right", "bilateral" (only in rules that ask for a side)
===================  =====================================================================================
"""

from __future__ import annotations

import random
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from radgen.errors import RadgenError, unknown
from radgen.generators.radthought.patterns import Item
from radgen.generators.radthought.phrases import DETAILS, NounPhrase, Phraser, capital

_LISTS = ("all", "none")
Part = tuple[Literal["text", "noun", "verb", "list", "system", "side"], str, str]


@dataclass(frozen=True, slots=True)
class Template:
    """A text of a rule, taken apart once.

    Attributes:
        parts: (kind, what, detail or forms).
        names: variables and lists that it names.
        lists: it names what ``also`` collects.
        details: how each variable or list is named, "" where the slot leaves it open.
    """

    parts: tuple[Part, ...]
    names: frozenset[str]
    lists: bool
    details: frozenset[tuple[str, str]]

    def told(self, name: str, first: bool) -> frozenset[str]:
        """Return the fields that it says of a finding where they are stated.

        Args:
            name: a variable of the rule.
            first: the finding is the first of ``derived``, which has every detail.
        """
        fields: set[str] = set()
        for slot, detail in self.details:
            if slot == name or slot == "all":
                fields.update(DETAILS[detail or ("full" if first else "place")])
            elif slot == "none":
                fields.update(DETAILS["whole"])
        return frozenset(fields)


def compile_text(text: str, variables: Sequence[str], where: str) -> Template:
    """Take a text of a rule apart.

    Raises:
        RadgenError: a slot names no variable of the rule, or an unknown detail.
    """
    parts: list[Part] = []
    try:
        fields = list(string.Formatter().parse(text))
    except ValueError as error:
        raise RadgenError(f"radthought.{where}: '{text}': {error}") from None
    for literal, slot, _, _ in fields:
        if literal:
            parts.append(("text", literal, ""))
        if slot is None:
            continue
        head, _, last = slot.rpartition(" ")
        name, _, detail = last.partition(".")
        known = [*variables, *_LISTS]
        if name not in known:
            raise RadgenError(f"radthought.{where}: '{text}': {unknown('slot', slot, known)}")
        if detail and detail not in DETAILS:
            raise RadgenError(f"radthought.{where}: '{text}': {unknown('detail', detail, DETAILS)}")
        if head in ("system", "side"):
            parts.append(("system" if head == "system" else "side", name, ""))
        elif head:
            if head.count("|") != 1:
                raise RadgenError(f"radthought.{where}: '{text}': expected two forms in '{{{slot}}}'")
            parts.append(("verb", name, head))
        elif name in _LISTS:
            parts.append(("list", name, detail))
        else:
            parts.append(("noun", name, detail))
    nouns = {name for kind, name, _ in parts if kind in ("noun", "list")}
    details = frozenset((name, detail) for kind, name, detail in parts if kind in ("noun", "list"))
    return Template(tuple(parts), frozenset(nouns), any(name in _LISTS for name in nouns), details)


@dataclass(slots=True)
class Filling:
    """What goes into a template.

    Attributes:
        bound: the finding of each variable.
        derived: the variables concluded from, the one with every detail first.
        collected: what ``also`` found.
    """

    bound: Mapping[str, Item]
    derived: Sequence[str]
    collected: list[Item] = field(default_factory=list)

    def every(self) -> list[Item]:
        """The findings concluded from, then what was collected."""
        named = [self.bound[name] for name in self.derived]
        return named + [item for item in self.collected if item not in named]


class Speech:
    """Fills templates."""

    def __init__(self, phraser: Phraser, systems: Mapping[str, str]) -> None:
        self.phraser = phraser
        self.systems = systems

    def say(self, rng: random.Random, template: Template, filling: Filling) -> str:
        """Return the sentence; a finding that is named twice has the same phrase twice."""
        nouns: dict[tuple[str, str], NounPhrase] = {}
        lists: dict[str, tuple[str, bool]] = {}
        for kind, name, extra in template.parts:  # nouns first: a verb may stand before its noun
            if kind == "noun":
                detail = extra or ("full" if name == filling.derived[0] else "place")
                nouns[name, extra] = self.phraser.noun_phrase(rng, filling.bound[name].state, detail)
            elif kind == "list":
                lists[name] = self._list(rng, name, extra, filling)
        out = []
        for kind, name, extra in template.parts:
            if kind == "text":
                out.append(name)
            elif kind == "noun":
                out.append(nouns[name, extra].text)
            elif kind == "list":
                out.append(lists[name][0])
            elif kind == "system":
                system = filling.bound[name].system
                out.append(self.systems.get(system, system))
            elif kind == "side":
                out.append(str(filling.bound[name].state.get("laterality", "")))
            else:
                one, many = extra.split("|")
                out.append(many if self._many(name, nouns, lists, filling) else one)
        return capital("".join(out))

    def _many(
        self,
        name: str,
        nouns: Mapping[tuple[str, str], NounPhrase],
        lists: Mapping[str, tuple[str, bool]],
        filling: Filling,
    ) -> bool:
        if name in _LISTS:
            return lists[name][1] if name in lists else len(filling.every()) > 1
        for (noun, _), phrase in nouns.items():
            if noun == name:
                return phrase.plural
        return False

    def _list(self, rng: random.Random, name: str, detail: str, filling: Filling) -> tuple[str, bool]:
        items = filling.every()
        if name == "none":
            phrases = [self.phraser.denied(rng, item.state) for item in items]
            return join([phrase.text for phrase in phrases], "or"), phrases[0].plural
        details = [detail or ("place" if place else "full") for place in range(len(items))]
        phrases = [
            self.phraser.noun_phrase(rng, item.state, how) for item, how in zip(items, details, strict=True)
        ]
        many = len(phrases) > 1 or any(phrase.plural for phrase in phrases)
        return join([phrase.text for phrase in phrases], "and"), many


def join(texts: Sequence[str], word: str) -> str:
    """Return a list in words.

    >>> join(["a", "b", "c"], "or")
    'a, b or c'
    """
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} {word} {texts[-1]}"
