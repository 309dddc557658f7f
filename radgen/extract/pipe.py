"""The rules extractor as a component of a spaCy pipeline.

>>> import spacy
>>> import radgen.extract.pipe
>>> nlp = spacy.blank("en")
>>> _ = nlp.add_pipe("radgen_rules")
>>> doc = nlp("Small left effusion.")
>>> [(span.text, span.label_) for span in doc.spans["radgen"]]
[('Small left effusion', 'pleural_effusion')]
>>> doc._.radgen_findings[0].laterality
'left'
"""

from __future__ import annotations

from spacy.language import Language
from spacy.tokens import Doc

from radgen.extract.rules import RulesExtractor
from radgen.ontology import load_ontology

if not Doc.has_extension("radgen_findings"):
    Doc.set_extension("radgen_findings", default=[])


class RulesComponent:
    """Puts findings into ``doc._.radgen_findings`` and their evidence into ``doc.spans[key]``.

    Args:
        ontology: the user's ontology files, laid over the packaged one.
        key: name of the group of spans; the label of a span is the tag of its finding.
    """

    def __init__(self, ontology: list[str], key: str) -> None:
        self.rules = RulesExtractor(load_ontology(ontology))
        self.key = key

    def __call__(self, doc: Doc) -> Doc:
        """Extract the findings of a document; its tokens are left as they are."""
        found = self.rules.extract(doc.text)
        spans = []
        for finding in found:
            if finding.evidence is not None:
                span = doc.char_span(
                    finding.evidence.start,
                    finding.evidence.end,
                    label=finding.finding,
                    alignment_mode="expand",
                )
                if span is not None:
                    spans.append(span)
        doc.spans[self.key] = spans
        doc._.radgen_findings = found
        return doc


@Language.factory("radgen_rules", default_config={"ontology": [], "key": "radgen"})
def make_rules(nlp: Language, name: str, ontology: list[str], key: str) -> RulesComponent:
    """Make the component for ``nlp.add_pipe("radgen_rules")``."""
    return RulesComponent(ontology, key)
