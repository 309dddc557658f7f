"""Any text gives a result: spans inside the text, valid findings, linear time, flat memory."""

from __future__ import annotations

import random
import time
import tracemalloc

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from radgen.extract.rules import RulesExtractor, default_extractor
from radgen.ontology import Finding, load_ontology

WORDS = [
    "no", "left", "right", "upper", "lobe", "and", "or", ",", ";", ".", "nodule", "nodules", "effusion",
    "8", "mm", "x", "cm", "T8", "8th", "rib", "segment", "from", "to", "previously", "heart", "size",
    "is", "normal", "lungs", "clear", "may", "represent", "versus", "COPD", "L", "R", "RUL", "XXXX",
    "___", "the", "largest", "it", "with", "of", "in", "unchanged", "increased", "two", "-", "/", "(",
    ")", "?", ":", "1.", "cannot", "exclude", "status", "post",
]  # fmt: skip


def check(text: str) -> None:
    for finding in default_extractor().extract(text):
        span = finding.evidence
        assert span is not None
        assert 0 <= span.start < span.end <= len(text)
        assert text[span.start : span.end] == span.text
        Finding.model_validate(finding.model_dump())


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=300))
def test_any_text(text: str) -> None:
    check(text)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.sampled_from([*WORDS, "\n"]), max_size=60), st.sampled_from([" ", ""]))
def test_any_order_of_words(words: list[str], join: str) -> None:
    check(join.join(words))


@pytest.mark.parametrize(
    "text",
    [
        "\u00b2 8 \u00b2\u00b3 nodule \u0663 mm",
        "9" * 5000 + " mm nodule",
        "\x00nodule\x00",
        "\ud800 nodule",
        "\u0130 nodule \u0130",
        "\u00df" * 50,
        "nodule \u200b8\u200bmm",
        "8 x x 8 x cm",
        "T8" * 200,
        "1/2/3/4/5",
        "0 mm nodule",
        "nodule 0 x 0 cm",
        "99999 mm nodule",
    ],
)
def test_odd_texts(text: str) -> None:
    check(text)


def seconds(text: str) -> float:
    rules = default_extractor()
    best = 99.0
    for _ in range(2):
        started = time.process_time()
        rules.uncached(text)
        best = min(best, time.process_time() - started)
    return best


@pytest.mark.parametrize(
    "piece",
    [
        "no effusion, ",
        "COPD ",
        "3 mm ",
        "right, left, ",
        "pleural or pericardial effusion ",
        "normal heart ",
        "it is ",
        "may represent pneumonia or ",
        "in the left upper, ",
        "T8-T9 ",
    ],
)
def test_time_is_linear_in_one_sentence(piece: str) -> None:
    small, large = (seconds(piece * (size // len(piece))) for size in (8_000, 64_000))
    assert large < 30 * small + 0.2  # eight times the text; a quadratic way takes 64 times as long


@pytest.mark.slow
def test_a_megabyte_of_one_sentence() -> None:
    started = time.process_time()
    check("no pneumothorax and small left effusion, " * 25_000)
    assert time.process_time() - started < 60


def test_memory_does_not_grow_with_new_words() -> None:
    rules = RulesExtractor(load_ontology())
    rng = random.Random(1)

    def read(count: int) -> None:
        for _ in range(count):
            word = "".join(rng.choices("abcdefghijklmnop", k=12))
            rules.states(
                f"The {word} shows a small left effusion measuring {rng.random():.6f} cm near {word}."
            )

    read(2_000)
    rules.forget()
    tracemalloc.start()
    read(500)
    rules.forget()
    first, _ = tracemalloc.get_traced_memory()
    read(4_000)
    rules.forget()
    second, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert second < first + 100_000  # bytes, for 8,000 words that were never seen before


def test_what_is_remembered_is_bounded() -> None:
    rules = RulesExtractor(load_ontology())
    for number in range(25_000):
        rules.states(f"Word{number}.")
    assert len(rules._memory) <= 20_000
    rules.states("No effusion. " + "very " * 100 + "large effusion.")
    assert all(len(sentence) <= 300 for sentence in rules._memory)
