"""The vocabulary: every form that the generators use is understood, and phrases are matched as spaCy does."""

from __future__ import annotations

import random

import pytest
import spacy
from spacy.matcher import PhraseMatcher
from spacy.tokens import Doc
from spacy.util import filter_spans

from radgen.extract.matching import Tree, longest, plant
from radgen.extract.rules import default_extractor
from radgen.ontology import load_ontology
from radgen.templates.phrasings import agree, load_phrasings

WORDS = load_phrasings(load_ontology()).words


def forms() -> list[tuple[str, str, str, str]]:
    """Return (field, value, position, words) of every form of an attribute."""
    found = []
    for name, levels in WORDS.words.items():
        for level, positions in levels.items():
            for position, options in positions.items():
                for form in options:
                    field = "count_category" if name == "count" else name
                    plural = form.number == "plural" or (name == "count" and level != "single")
                    found.append((field, level, position, agree(form.text, plural)))
    return found


@pytest.mark.parametrize(("field", "value", "position", "words"), forms())
def test_every_form_of_every_value_is_understood(field: str, value: str, position: str, words: str) -> None:
    many = (
        (field == "count_category" and value != "single")
        or " are " in f" {words} "
        or "have" in words.split()
    )
    noun = "pulmonary nodules" if many else "pulmonary nodule"
    sentence = {
        "adj": f"{words} {noun}.",
        "post": f"{noun}{words}.",
        "pred": f"the {noun} {words}.",
        "of": f"{words} the {noun}.",
        "exist": f"{words} {noun}.",
        "hedge": f"{words} {noun}.",
    }[position]
    states = [finding.stated() for finding in default_extractor().extract(sentence)]
    assert len(states) == 1, sentence
    assert states[0]["finding"] == "pulmonary_nodule"
    assert states[0].get(field) == value, sentence
    absent = value == "resolved"
    expected = "indeterminate" if value == "cannot_exclude" else "absent" if absent else "present"
    assert states[0]["presence"] == expected
    assert set(states[0]) <= {"finding", "presence", field}, sentence


def test_every_name_of_every_finding_is_found() -> None:
    ontology = load_ontology()
    rules = default_extractor()
    for tag, entry in ontology.findings.items():
        for term in [*entry.terms, *([entry.definition] if entry.definition else [])]:
            for text in {term.text, term.form(True)}:
                states = [finding.stated() for finding in rules.extract(f"There is {text}.")]
                assert [state["finding"] for state in states] == [tag], text
                assert states[0]["presence"] == "present"
                assert set(states[0]) == {"finding", "presence"}, text


def test_phrases_are_matched_as_spacy_matches_them() -> None:
    """spaCy's PhraseMatcher with filter_spans (longest first) on words without overlaps is the reference."""
    lexicon = default_extractor().lexicon
    plain = [words for words in lexicon.phrases if all(word == word.lower() for word in words)]
    vocab = spacy.blank("en").vocab
    matcher = PhraseMatcher(vocab)
    matcher.add("PHRASE", [Doc(vocab, words=list(words)) for words in plain])
    tree: Tree = {}
    for words in plain:
        plant(tree, words, lexicon.phrases[words])
    rng = random.Random(5)
    compared = 0
    for _ in range(3000):
        picked = [word for _ in range(rng.randint(1, 4)) for word in (*rng.choice(plain), "zzz")]
        ours = {(start, end) for _, start, end in longest(tree, picked)}
        doc = Doc(vocab, words=picked)
        theirs = {(span.start, span.end) for span in filter_spans(matcher(doc, as_spans=True))}
        # the longest from the left and the longest first agree wherever phrases do not overlap in part
        every = {(start, end) for _, start, end in matcher(doc)}
        if any(a < c < b < d for a, b in every for c, d in every):
            continue
        compared += 1
        assert ours == theirs, picked
    assert compared > 1000
