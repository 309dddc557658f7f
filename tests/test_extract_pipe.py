"""The rules as a component of a spaCy pipeline."""

from __future__ import annotations

import spacy

import radgen.extract.pipe  # noqa: F401  # registers the component


def test_findings_and_spans_on_a_doc() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("radgen_rules", config={"key": "findings"})
    doc = nlp("No pneumothorax; 8mm RUL nodule. Thank you.")
    assert [(span.text, span.label_) for span in doc.spans["findings"]] == [
        ("No pneumothorax", "pneumothorax"),
        ("8mm RUL nodule", "pulmonary_nodule"),
    ]
    assert [finding.stated() for finding in doc._.radgen_findings] == [
        {"finding": "pneumothorax", "presence": "absent"},
        {
            "finding": "pulmonary_nodule",
            "presence": "present",
            "laterality": "right",
            "lobe": "upper",
            "size_mm": 8,
        },
    ]
    assert nlp("Thank you.")._.radgen_findings == []
    assert nlp("")._.radgen_findings == []
