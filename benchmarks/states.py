"""Finding states: cosines before and after training, and codebooks against labels that people made.

    python benchmarks/states.py --data data --model minilm --model models/states
    python benchmarks/states.py --data data --model minilm --model models/states \
        --archive NLMCXR_reports.tgz --labels labels14_gold.csv --test-ids labels14_test_ids.txt

``--data`` is the folder of ``radgen states``. The first prints, for each model, the mean cosine within
and across the states of every finding on test phrasings (``radgen evaluate --suite states`` with less
around it). The second builds a codebook of each model from the training sentences in ``--data`` and
classifies the reports of the Open-I archive with it, with no training on them: AUROC, F1, sensitivity and
specificity of each NegBio label (what the labels mean in findings is in openi.yaml), beside the rules
extractor. Codebooks assign findings themselves (``codebook``), or the keywords of the ontology do
(``keywords``). Vectors are kept in ``--cache``.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from radgen.extract.readers import Report, open_reports
from radgen.extract.rules import RulesExtractor, default_extractor
from radgen.extract.sentences import sentences
from radgen.generators.states.corpus import Paperwork
from radgen.generators.states.settings import load_settings as load_states_settings
from radgen.ontology.load import load_ontology
from radgen.train.codebook.build import build_codebook, read_states
from radgen.train.codebook.classify import (
    LOWEST,
    PRESENT,
    Classified,
    classify_vectors,
    keyword_assignment,
    reports_of,
)
from radgen.train.codebook.command import encoder_of
from radgen.train.codebook.settings import codebook_settings
from radgen.train.evaluate.encoders import Encoder
from radgen.train.evaluate.outcome import Sure
from radgen.train.evaluate.settings import load_settings
from radgen.train.evaluate.states import states

SECTIONS = ("findings", "impression")
Bools = NDArray[np.bool_]


def cosines(models: Sequence[Encoder], data: Path) -> None:
    """Print the mean cosines of every finding for every model."""
    settings = load_settings()
    sure = Sure(settings.bootstrap.repeats, settings.bootstrap.confidence, settings.seed)
    for encoder in models:
        outcome = states(data, encoder, settings, sure, lambda _: None)
        values = {(value.measure, value.group): value for value in outcome.values}
        print(f"{encoder.name}: mean cosine on test phrasings ({outcome.notes[0]})")
        for tag in outcome.figures["boxes"]:
            numbers = [values["states.within", f"{tag}/{state}"].value for state in ("present", "absent")]
            numbers += [values["states.within", tag].value, values["states.across", tag].value]
            print(f"  {tag:20s} present {numbers[0]:+.3f}  absent {numbers[1]:+.3f}  "
                  f"within {numbers[2]:+.3f}  across {numbers[3]:+.3f}")  # fmt: skip


class Pool:
    """Labelled reports: distinct sentences, each with the number of its report, and what the rules read.

    Attributes:
        texts: sentences, report after report.
        report: the number of each sentence's report.
        gold: for each label, whether it holds.
        stated: for each report, the findings that the rules read as present.
    """

    def __init__(
        self, archive: Path, gold: Mapping[str, Mapping[str, str]], config: Mapping[str, Any]
    ) -> None:
        rules = default_extractor()
        self.ids: list[str] = []
        self.texts: list[str] = []
        self.stated: list[set[str]] = []
        report = []
        for row in open_reports(archive):
            if not isinstance(row, Report) or row.data["id"] not in gold:
                continue
            number = len(self.ids)
            self.ids.append(row.data["id"])
            self.stated.append(set())
            for section in SECTIONS:
                text = row.data.get(section) or ""
                spans = sentences(text)
                self.texts += [" ".join(text[start:end].split()) for start, end in spans]
                report += [number] * len(spans)
                read = rules.states(text, section)
                self.stated[number] |= {s["finding"] for s, _ in read if s["presence"] == "present"}
        self.report = np.array(report, np.int64)
        self.gold = {
            label: np.array([gold[name][label] == "1" for name in self.ids]) for label in config["labels"]
        }


def scored(gold: Bools, score: NDArray[Any], decided: Bools) -> tuple[float, float, float, float]:
    """Return AUROC, F1, sensitivity and specificity."""
    from sklearn.metrics import f1_score, roc_auc_score

    return (
        float(roc_auc_score(gold, score)),
        float(f1_score(gold, decided)),
        float(decided[gold].mean()),
        float((~decided[~gold]).mean()),
    )


def by_label(
    pool: Pool, whole: Classified, findings: Sequence[str], config: Mapping[str, Any]
) -> dict[str, tuple[NDArray[Any], Bools]]:
    """Return for each label the highest score of its findings, and whether one of them is present."""
    out = {}
    for label, rule in config["labels"].items():
        columns = [findings.index(tag) for tag in rule["findings"] if tag in findings]
        score = whole.score[:, columns].max(axis=1) if columns else np.full(len(pool.ids), LOWEST)
        out[label] = (score, (whole.state[:, columns] == PRESENT).any(axis=1))
    return out


def by_rules(pool: Pool, config: Mapping[str, Any]) -> dict[str, tuple[NDArray[Any], Bools]]:
    """Return for each label whether the rules read one of its findings as present; that is the score, too."""
    out = {}
    for label, rule in config["labels"].items():
        decided = np.array([not found.isdisjoint(rule["findings"]) for found in pool.stated])
        out[label] = (decided.astype(float), decided)
    return out


def table(
    title: str, pool: Pool, rows: Bools, found: Mapping[str, tuple[NDArray[Any], Bools]]
) -> dict[str, float]:
    """Print the figures of a way to classify; return the AUROC of each label."""
    print(title)
    scores = {}
    for label, (score, decided) in found.items():
        gold = pool.gold[label][rows]
        if not gold.any():
            print(f"  {label:20s} no positive report")
            continue
        scores[label] = scored(gold, score[rows], decided[rows])
        auroc, f1, sensitivity, specificity = scores[label]
        print(f"  {label:20s} positive {int(gold.sum()):4d}  AUROC {auroc:.3f}  F1 {f1:.3f}  "
              f"sensitivity {sensitivity:.3f}  specificity {specificity:.3f}")  # fmt: skip
    macro = np.mean(list(scores.values()), axis=0)
    print(f"  {'macro':20s} {'':13s}  AUROC {macro[0]:.4f}  F1 {macro[1]:.3f}  "
          f"sensitivity {macro[2]:.3f}  specificity {macro[3]:.3f}")  # fmt: skip
    return {label: values[0] for label, values in scores.items()}


def assignment(
    rules: RulesExtractor, pool: Pool, findings: Sequence[str], config: Mapping[str, Any]
) -> Bools:
    """Return which findings each sentence names; one without a codebook counts for another of its label."""
    tags = list(dict.fromkeys(tag for rule in config["labels"].values() for tag in rule["findings"]))
    every = keyword_assignment(rules, pool.texts, tags)
    out = np.zeros((len(pool.texts), len(findings)), bool)
    for rule in config["labels"].values():
        there = [tag for tag in rule["findings"] if tag in findings]
        for tag in rule["findings"] if there else ():
            out[:, findings.index(tag if tag in there else there[0])] |= every[:, tags.index(tag)]
    return out


def zero_shot(
    models: Sequence[Encoder], data: Path, pool: Pool, config: Mapping[str, Any], test: set[str]
) -> None:
    """Build a codebook of each model, classify the reports, and compare the AUROCs of the models."""
    settings = codebook_settings()
    rules: RulesExtractor = default_extractor()
    tags = list(dict.fromkeys(tag for rule in config["labels"].values() for tag in rule["findings"]))
    made = read_states(data)
    findings = [tag for tag in made.findings if tag in tags]
    made = read_states(data, findings)
    named = assignment(rules, pool, findings, config)
    parts = {"all reports": np.ones(len(pool.ids), bool)}
    if test:
        parts["test reports"] = np.array([name in test for name in pool.ids])
        parts["development reports"] = ~parts["test reports"]
    for part, rows in parts.items():
        table(f"rules extractor, {part} ({int(rows.sum()):,})", pool, rows, by_rules(pool, config))
    kinds = Paperwork(load_states_settings(load_ontology()))
    paperwork = np.array([kinds.kind(text) is not None for text in pool.texts])
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for encoder in models:
        book = build_codebook(made, encoder, settings)
        vectors = encoder.vectors(pool.texts, settings.max_tokens)
        for way, assigned in (("codebook", None), ("keywords", named)):
            read = slice(None) if way == "keywords" else ~paperwork  # as radgen codebook classify does
            classified = classify_vectors(book, vectors[read], assigned, settings.batch)
            whole, _ = reports_of(classified, pool.report[read], len(pool.ids))
            labels = by_label(pool, whole, findings, config)
            for part, rows in parts.items():
                title = f"{encoder.name}, findings assigned by {way}, {part} ({int(rows.sum()):,})"
                found[encoder.name, way, part] = table(title, pool, rows, labels)
    first = models[0].name
    for (name, way, part), scores in found.items():
        if name == first:
            continue
        base = found[first, way, part]
        enough = [label for label in scores if pool.gold[label][parts[part]].sum() >= 20]
        below = [label for label in enough if scores[label] <= base[label]]
        print(
            f"{name} against {first}, {way}, {part}: above on {len(enough) - len(below)} of {len(enough)}"
            f" labels with 20 or more positives{'; not on ' + ', '.join(below) if below else ''}"
        )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of radgen states")
    parser.add_argument("--model", action="append", required=True, help="the first is compared against")
    parser.add_argument("--archive", type=Path, help="NLMCXR_reports.tgz")
    parser.add_argument("--labels", type=Path, help="labels14_gold.csv")
    parser.add_argument("--test-ids", type=Path, help="labels14_test_ids.txt")
    parser.add_argument("--cache", type=Path, help="folder for vectors")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", category=UserWarning)
    models = [encoder_of(name, codebook_settings(), None, arguments.cache) for name in arguments.model]
    cosines(models, arguments.data)
    if arguments.archive and arguments.labels:
        config = yaml.safe_load((Path(__file__).parent / "openi.yaml").read_text())
        with arguments.labels.open(newline="") as file:
            gold = {row["filename"]: row for row in csv.DictReader(file)}
        test = set(arguments.test_ids.read_text().split()) if arguments.test_ids else set()
        zero_shot(models, arguments.data, Pool(arguments.archive, gold, config), config, test)


if __name__ == "__main__":
    main()
