"""The rules extractor against labels that people made, and its speed against negspacy.

    python benchmarks/extraction.py ARCHIVE --labels labels14_gold.csv --test-ids labels14_test_ids.txt
    python benchmarks/extraction.py ARCHIVE --speed            # needs the extra "bench"
    python benchmarks/extraction.py ARCHIVE --memory

ARCHIVE is the Open-I archive (NLMCXR_reports.tgz). Labels are those of NegBio (14 findings, the whole
report; what they mean in findings is in openi.yaml); sides, severities and lobes are compared with the MeSH
terms of the reports, where a term has a single one and the text states it. Both halves are printed; the rules
were written with the development half only.
"""

from __future__ import annotations

import argparse
import csv
import re
import resource
import statistics
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from radgen.extract.readers import Report, open_reports
from radgen.extract.rules import RulesExtractor, default_extractor
from radgen.extract.sentences import sentences

SECTIONS = ("findings", "impression")
SIDES = {"left", "right"}


def reports(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the reports of the archive; broken members are left out."""
    for row in open_reports(path):
        if isinstance(row, Report):
            yield row.data


def carries(state: dict[str, Any], evidence: str, rule: dict[str, Any], guess: re.Pattern[str]) -> bool:
    """Whether one finding carries a label."""
    if state["finding"] not in rule["findings"] or state["presence"] != "present":
        return False
    if guess.search(evidence) or state.get("certainty") not in rule.get(
        "certainty", [state.get("certainty")]
    ):
        return False
    if any(state.get(name) == value for name, value in rule.get("unless", {}).items()):
        return False
    if "evidence" in rule and not re.search(rule["evidence"], evidence, re.I):
        return False
    return not ("without" in rule and re.search(rule["without"], evidence, re.I))


def labels_of(rules: RulesExtractor, report: dict[str, Any], config: dict[str, Any]) -> set[str]:
    """Return the labels that the extracted findings of a report carry."""
    guess = re.compile(config["guess"], re.I)
    found: set[str] = set()
    for section in SECTIONS:
        text = report.get(section) or ""
        for state, (start, end) in rules.states(text, section):
            for label, rule in config["labels"].items():
                if carries(state, text[start:end], rule, guess):
                    found.add(label)
    return found


def f1(hits: int, false: int, missed: int) -> float:
    """Return the F1 score of counts."""
    return 2 * hits / max(1, 2 * hits + false + missed)


def label_scores(
    rules: RulesExtractor, rows: list[dict[str, Any]], gold: dict[str, Any], config: dict[str, Any]
) -> tuple[float, float]:
    """Print F1 for each label; return micro and macro F1."""
    counts: dict[str, Counter[str]] = {label: Counter() for label in config["labels"]}
    for row in rows:
        found = labels_of(rules, row, config)
        for label, count in counts.items():
            count[f"{int(label in found)}{gold[row['id']][label]}"] += 1
    total: Counter[str] = Counter()
    scores = []
    for label, count in counts.items():
        total.update(count)
        hits, false, missed = count["11"], count["10"], count["01"]
        scores.append(f1(hits, false, missed))
        print(f"  {label:20s} hit {hits:4d}  false {false:3d}  missed {missed:3d}  F1 {scores[-1]:.3f}")
    micro = f1(total["11"], total["10"], total["01"])
    macro = sum(scores) / len(scores)
    print(f"  micro-F1 {micro:.4f}  macro-F1 {macro:.4f}")
    return micro, macro


def mesh_scores(
    rules: RulesExtractor, rows: list[dict[str, Any]], config: dict[str, Any], show: str | None = None
) -> dict[str, float]:
    """Print how often side, severity and lobe of a MeSH term are right, where the text states them.

    "Left basilar opacity may represent atelectasis" does not say where the atelectasis is; such terms are in
    the second count only.
    """
    right: Counter[str] = Counter()
    given: Counter[str] = Counter()
    stated: Counter[str] = Counter()
    for row in rows:
        found: list[tuple[str, dict[str, Any]]] = []
        for section in SECTIONS:
            text = row.get(section) or ""
            for start, end in sentences(text):
                found += [(text[start:end], state) for state, _ in rules.states(text[start:end], section)]
        for term in row.get("abnormalities") or []:
            head, *qualifiers = term.split("/")
            records = [(s, state) for s, state in found if state["finding"] in config["mesh"].get(head, ())]
            for field, pattern, values in questions(qualifiers, config):
                said = [state for sentence, state in records if re.search(pattern, sentence, re.I)]
                if not said:
                    continue
                stated[field] += 1
                got = [state[field] for state in said if field in state]
                given[field] += bool(got)
                right[field] += any(value in values for value in got)
                if show == field and not any(value in values for value in got):
                    print(row["id"], term, [s for s, state in records if re.search(pattern, s, re.I)], said)
    shares = {field: right[field] / max(1, given[field]) for field in ("laterality", "severity", "lobe")}
    for field, share in shares.items():
        print(
            f"  {field:10s} right {right[field]:4d} of {given[field]:4d}: {share:.4f}"
            f"   (the word is somewhere in a sentence that names the finding: {stated[field]})"
        )
    return shares


def questions(qualifiers: list[str], config: dict[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (field, pattern of the words that state it, right values) for single qualifiers of a term."""
    sides = SIDES.intersection(qualifiers)
    if len(sides) == 1 and "bilateral" not in qualifiers:
        side = sides.pop()
        yield "laterality", rf"\b{side}\b", [side]
    for field, table in (("severity", config["severity"]), ("lobe", config["lobe"])):
        named = [name for name in table if name in qualifiers]
        if len(named) == 1:
            entry = table[named[0]]
            yield field, rf"\b({entry['words']})\b", entry.get("levels") or [entry["value"]]


def all_sentences(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Return every sentence of the reports."""
    found = []
    for row in rows:
        for section in SECTIONS:
            text = row.get(section) or ""
            found += [text[start:end] for start, end in sentences(text)]
    return found


def speed(rules: RulesExtractor, texts: list[str]) -> None:
    """Print sentences a second: the rules, and negspacy's pipeline with the same phrases."""
    import spacy
    from negspacy.negation import Negex  # noqa: F401  # registers the component

    phrases = sorted({" ".join(words) for words in rules.lexicon.finds})
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    ruler = pipeline.add_pipe("entity_ruler", config={"phrase_matcher_attr": "LOWER"})
    ruler.add_patterns([{"label": "FINDING", "pattern": phrase} for phrase in phrases])  # type: ignore[attr-defined]  # add_pipe is typed as a bare callable
    pipeline.add_pipe("negex", config={"ent_types": ["FINDING"]})
    print(f"  {len(texts)} sentences, {len(set(texts))} distinct, {len(phrases)} phrases")
    ratios: dict[str, list[float]] = {}
    for _ in range(5):
        rates: dict[str, float] = {}
        for name, run in (
            ("negspacy", lambda: sum(len(doc.ents) for doc in pipeline.pipe(texts))),
            ("rules", lambda: sum(len(rules.states(text)) for text in texts)),
            ("rules, no cache", lambda: sum(len(rules.uncached(text)) for text in texts)),
        ):
            rules.forget()
            started = time.process_time()
            count = run()
            rates[name] = len(texts) / (time.process_time() - started)
            ratios.setdefault(name, []).append(rates[name] / rates["negspacy"])
            print(f"  {name:16s} {rates[name]:9.0f} sentences/s  {count} findings")
    for name in ("rules", "rules, no cache"):
        print(f"  {name} / negspacy, median of rounds: {statistics.median(ratios[name]):.2f}")


def memory(rules: RulesExtractor, rows: list[dict[str, Any]], count: int) -> None:
    """Print the peak memory while ``count`` reports, every one of them different, are read."""
    done = 0
    while done < count:
        for row in rows:
            for section in SECTIONS:
                rules.states(f"{row.get(section) or ''} Word{done} marker{done}.", section)
            done += 1
            if done % (count // 10) == 0:
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                print(f"  {done:7d} reports  peak {peak:.0f} MiB")
            if done >= count:
                break


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archive", type=Path)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--test-ids", type=Path)
    parser.add_argument("--half", choices=["development", "test", "both"], default="both")
    parser.add_argument("--show", help="print the misses of one MeSH field in the development half")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--reports", type=int, default=100_000)
    options = parser.parse_args()
    rules = default_extractor()
    rows = list(reports(options.archive))
    config = yaml.safe_load(Path(__file__).with_name("openi.yaml").read_text(encoding="utf-8"))
    if options.labels and options.test_ids:
        with options.labels.open(encoding="utf-8") as file:
            gold = {row["filename"]: row for row in csv.DictReader(file)}
        test = set(options.test_ids.read_text(encoding="utf-8").split())
        for name in ("development", "test") if options.half == "both" else (options.half,):
            half = [row for row in rows if row["id"] in gold and (row["id"] in test) == (name == "test")]
            print(f"{name} half, {len(half)} reports")
            label_scores(rules, half, gold, config)
            mesh_scores(rules, half, config, options.show if name == "development" else None)
    if options.speed:
        print("speed")
        speed(rules, all_sentences(rows))
    if options.memory:
        print("memory")
        memory(rules, rows, options.reports)


if __name__ == "__main__":
    main()
