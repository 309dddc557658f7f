"""Headings in the forms that reports use; every expectation is read off the text by eye."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radgen.extract.sections import classify_heading, findings_and_impression, split_sections

F = "The lungs are clear."
I = "No acute disease."  # noqa: E741


@pytest.mark.parametrize(
    "text",
    [
        f"FINDINGS: {F}\nIMPRESSION: {I}",
        f"FINDINGS:\n{F}\n\nIMPRESSION:\n{I}\n",
        f"Findings\n{F}\nImpression\n{I}",
        f"Findings: {F} Impression: {I}",
        f"FINDINGS: {F} IMPRESSION: {I}",
        f"findings: {F}\nimpression: {I}",
        f"FINDINGS:{F}\nCONCLUSION:{I}",
        f"FINDINGS: {F}\nCONCLUSIONS: {I}",
        f"FINDINGS: {F}\nConclusion\n{I}",
        f"Finding: {F}\nOPINION: {I}",
        f"**FINDINGS:** {F}\n**IMPRESSION:** {I}",
        f"**Findings**\n{F}\n\n**Impression**:\n{I}",
        f"## Findings\n\n{F}\n\n## Impression\n\n{I}",
        f"[FINDINGS]\n{F}\n[IMPRESSION]\n{I}",
        f"== FINDINGS ==\n{F}\n== IMPRESSION ==\n{I}",
        f"FINDINGS - {F}\nIMPRESSION - {I}",
        f"FINDINGS – {F}\nIMPRESSION – {I}",
        f"FINDINGS {F}\nIMPRESSION {I}",
        f"FINDINGS  {F}\nIMPRESSION\t{I}",
        f"FINDINGS;\n{F}\nIMPRESSION.\n{I}",
        f"1. FINDINGS: {F}\n2. IMPRESSION: {I}",
        f"CT CHEST FINDINGS: {F}\nFINAL IMPRESSION: {I}",
        f"Findings (CT chest): {F}\nIMPRESSION (PRELIMINARY): {I}",
        f"COMPARISON/FINDINGS: {F}\nIMPRESSION AND RECOMMENDATIONS: {I}",
        f"Chest radiograph findings:\n{F}\nSummary:\n{I}",
        f"  FINDINGS :  {F}\r\n\r\n  IMPRESSION :  {I}\r\n",
        f"HISTORY: Cough.\nTECHNIQUE: PA view.\nFINDINGS: {F}\nIMPRESSION: {I}\nRECOMMENDATION: None.",
        f"EXAM: CHEST\n\nINDICATION: Pain. COMPARISON: None. FINDINGS: {F} IMPRESSION: {I}",
        f"FINDINGS: {F}\nIMPRESSION: {I}\nElectronically signed by: A. Writer",
        f"Observations: {F}\nInterpretation: {I}",
        # no findings heading: the paragraph after the introduction, or before the impression
        f"EXAMINATION: CHEST (PA AND LAT)\n\nCOMPARISON: None.\n\n{F}\n\nIMPRESSION: {I}",
        f"{F}\n\nIMPRESSION: {I}",
        f"{F} IMPRESSION: {I}",
    ],
)
def test_both_sections(text: str) -> None:
    assert findings_and_impression(text) == (F, I)


@pytest.mark.parametrize(
    "heading",
    [
        "FINDINGS/IMPRESSION:",
        "FINDINGS / IMPRESSION:",
        "FINDINGS AND IMPRESSION:",
        "Findings & Impression",
        "Findings and Conclusions:",
        "IMPRESSION/FINDINGS:",
        "FINDINGS, IMPRESSION:",
    ],
)
def test_common_section_is_findings(heading: str) -> None:
    text = f"INDICATION: Pain.\n{heading} {F}" if heading.endswith(":") else f"{heading}\n{F}"
    assert findings_and_impression(text) == (F, None)
    assert [s.name for s in split_sections(text)][-1] == "findings_impression"


@pytest.mark.parametrize(
    ("text", "findings", "impression"),
    [
        ("The heart is normal. No effusion.", "The heart is normal. No effusion.", None),
        ("IMPRESSION: Stable.", None, "Stable."),
        ("CHEST, TWO VIEWS\n\nIMPRESSION: Stable.", None, "Stable."),
        ("FINDINGS: Clear.", "Clear.", None),
        ("FINDINGS:\nIMPRESSION: Stable.", None, "Stable."),
        ("", None, None),
        (" \n ", None, None),
        # two studies in one report
        ("FINDINGS: A.\nIMPRESSION: B.\nFINDINGS: C.\nIMPRESSION: D.", "A.\nC.", "B.\nD."),
        # headings of organs stay in the text
        (
            "FINDINGS:\nLungs: Clear.\nHEART: Normal.\nIMPRESSION: Normal.",
            "Lungs: Clear.\nHEART: Normal.",
            "Normal.",
        ),
        # words that are no headings
        (
            "FINDINGS: Clear.\nIMPRESSION: Stable. Findings were discussed with the team.",
            "Clear.",
            "Stable. Findings were discussed with the team.",
        ),
        (
            "FINDINGS: There is a history of cancer.\nThe impression on the esophagus is unchanged.",
            "There is a history of cancer.\nThe impression on the esophagus is unchanged.",
            None,
        ),
        ("FINDINGS ARE UNCHANGED FROM BEFORE.", "FINDINGS ARE UNCHANGED FROM BEFORE.", None),
        ("FINDINGS: CLEAR. IMPRESSION: NORMAL CHEST.", "CLEAR.", "NORMAL CHEST."),
        ("FINDINGS: Clear lungs IMPRESSION: Normal", "Clear lungs", "Normal"),
        ("CLINICAL IMPRESSION: Pneumonia.\nFINDINGS: Clear.", "Clear.", None),
        (
            "FINDINGS: 2.5 cm nodule: stable.\nIMPRESSION:\n1. Nodule.\n2. Cyst.",
            "2.5 cm nodule: stable.",
            "1. Nodule.\n2. Cyst.",
        ),
        ("ADDENDUM: Seen again.\nFINDINGS: Clear.\nIMPRESSION: Normal.", "Clear.", "Normal."),
    ],
)
def test_forms(text: str, findings: str | None, impression: str | None) -> None:
    assert findings_and_impression(text) == (findings, impression)


def test_names_and_spans() -> None:
    text = "HISTORY: Pain.\nTECHNIQUE: AP.\nCOMPARISON: None.\nFINDINGS: Clear.\nIMPRESSION: Normal."
    assert [(s.name, text[s.start : s.end]) for s in split_sections(text)] == [
        ("history", "Pain."),
        ("technique", "AP."),
        ("comparison", "None."),
        ("findings", "Clear."),
        ("impression", "Normal."),
    ]


@pytest.mark.parametrize(
    ("heading", "name"),
    [
        ("REASON FOR EXAM", "history"),
        ("Clinical History", "history"),
        ("HISTORY/INDICATION", "history"),
        ("Technique and Comparison", "technique"),
        ("PORTABLE CHEST FINDINGS", "findings"),
        ("IMPRESSION CT CHEST", "impression"),
        ("Lungs and pleura", None),
        ("Findings of note", None),
    ],
)
def test_classify(heading: str, name: str | None) -> None:
    assert classify_heading(heading) == name


@given(st.text(alphabet=st.characters() | st.sampled_from("FINDGSMPRESO:\n .-*#/"), max_size=300))
def test_any_text_gives_spans_inside_it_in_order(text: str) -> None:
    last = 0
    for section in split_sections(text):
        assert last <= section.start < section.end <= len(text)
        assert text[section.start : section.end].strip() == text[section.start : section.end]
        last = section.end


def test_long_text_in_linear_time() -> None:
    def seconds(text: str) -> float:
        start = time.perf_counter()
        findings_and_impression(text)
        return time.perf_counter() - start

    for piece in ("The lungs are clear. ", "FINDINGS ", "IMPRESSION: x ", "a\n", "- - - ", "# "):
        short, long = (seconds(piece * (size // len(piece))) for size in (30_000, 300_000))
        assert long < 30 * short + 0.5, piece  # quadratic would be 100 times
