"""Suite ``discrepancies``: does a wrong report score below a harmless rewrite; RadJudge's rankings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from radgen.errors import DatasetError, RadgenError
from radgen.extract.rules import RulesExtractor, default_extractor
from radgen.extract.sentences import sentences
from radgen.generators.radsim import load_policy, score
from radgen.generators.similarity.discrepancies import Discrepancies
from radgen.generators.similarity.make import ReportOrder
from radgen.generators.similarity.sections import read_sections
from radgen.generators.splits import Splitter
from radgen.ontology.load import Ontology
from radgen.train import measures as m
from radgen.train.evaluate.encoders import Encoder
from radgen.train.evaluate.outcome import Outcome, SkippedError, Sure
from radgen.train.evaluate.reports import Pool
from radgen.train.evaluate.settings import EvaluateFile

Show = Callable[[int], None]
Row = dict[str, Any]
METHODS = ("cosine", "align_f1", "directional")
_TEXTS = ("anchor", "positive", "negative", "discrepancy")


class Comparer:
    """Scores candidate texts against references in three ways.

    Args:
        tokens: after which a whole text is cut.
    """

    def __init__(
        self, encoder: Encoder, settings: EvaluateFile, extractor: RulesExtractor, tokens: int, show: Show
    ) -> None:
        self.encoder, self.settings, self.extractor = encoder, settings, extractor
        self.tokens, self.show = tokens, show

    def prepare(self, texts: list[str]) -> None:
        """Encode whole texts and their sentences in one go: batches of like length."""
        self.encoder.vectors(texts, self.tokens, self.show)
        parts = [part for text in texts for part in split(text)]
        self.encoder.vectors(parts, self.settings.tokens.sentences, self.show)

    def scores(self, candidate: str, reference: str) -> dict[str, float]:
        """Return cosine, Align-F1 and Directional of a candidate against a reference."""
        whole = self.encoder.vectors([candidate, reference], self.tokens)
        parts = split(reference)
        tokens = self.settings.tokens.sentences
        mine, theirs = self.encoder.vectors(split(candidate), tokens), self.encoder.vectors(parts, tokens)
        abnormal = np.array([self.abnormal(part) for part in parts], bool)
        return {
            "cosine": float(whole[0] @ whole[1]),
            "align_f1": m.align_f1(mine, theirs),
            "directional": m.directional(mine, theirs, abnormal, self.settings.discrepancies.aggregate),
        }

    def abnormal(self, sentence: str) -> bool:
        """Tell whether a sentence states a finding that is there or may be."""
        return any(state.get("presence") != "absent" for state, _ in self.extractor.states(sentence))


def split(text: str) -> list[str]:
    """Return the sentences of a text."""
    return [text[start:end] for start, end in sentences(text)]


def made_rows(pool: Pool, rows: int, seed: int) -> list[Row]:
    """Make discrepancies from the pool's reports, in memory.

    Raises:
        SkippedError: none can be made.
    """
    order = ReportOrder(pool.path, rows, seed, None, False, pool.ontology_files)
    policy = order.policy()
    try:
        reads = order.reads(policy)
        maker = Discrepancies(read_sections(reads, policy.ontology), policy, seed)
    except DatasetError as error:
        raise SkippedError(str(error)) from None
    quotas = Splitter(policy.ontology.axes.splits).quotas(rows)
    made = [orjson.loads(line) for _, line in maker.rows(quotas, "sections")]
    if not made:
        raise SkippedError(f"{pool.path.name}: no sentence of its reports can be made wrong")
    return made


def read_rows(folder: Path, most: int) -> list[Row]:
    """Read the rows of a folder of ``radgen discrepancies``: all of its splits, the first ``most``.

    Raises:
        RadgenError: there is none.
    """
    paths = sorted(folder.rglob("*.jsonl"), key=lambda path: (path.name != "test.jsonl", path.name))
    rows: list[Row] = []
    for path, number, line in _lines(paths):
        try:
            row = orjson.loads(line)
            if not all(isinstance(row[key], str) for key in _TEXTS):
                raise TypeError
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise RadgenError(f"{path}:{number}: not a row of 'radgen discrepancies'") from None
        rows.append(row)
        if len(rows) == most:
            break
    if not rows:
        raise RadgenError(f"{folder}: holds no row of 'radgen discrepancies' (expected *.jsonl in it)")
    return rows


def _lines(paths: list[Path]) -> Iterator[tuple[Path, int, bytes]]:
    for path in paths:
        with path.open("rb") as file:
            yield from ((path, number, line) for number, line in enumerate(file, 1) if line.strip())


def win_rates(
    out: Outcome, rows: list[Row], comparer: Comparer, settings: EvaluateFile, sure: Sure
) -> None:
    """Add the win rate of each way to compare, overall, for each kind of error and of rewrite."""
    comparer.prepare([row[key] for row in rows for key in ("anchor", "positive", "negative")])
    scores: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row in rows:
        harmless = comparer.scores(row["positive"], row["anchor"])
        wrong = comparer.scores(row["negative"], row["anchor"])
        for method in METHODS:
            scores[method].append((harmless[method], wrong[method]))
        if "positive_target" in row:
            scores["radsim"].append((row["positive_target"], row["negative_target"]))
    kinds = np.array([row["discrepancy"] for row in rows])
    controls = np.array([row.get("control", "") for row in rows])
    for method, pairs in scores.items():
        if len(pairs) != len(rows):
            continue
        harmless, wrong = np.array(pairs).T
        wrong = np.where(abs(wrong - harmless) < settings.discrepancies.tie, harmless, wrong)
        won = m.win_rate(harmless, wrong)
        out.add("discrepancies.win_rate", method, sure.mean(won))
        for kind in settings.discrepancies.kinds:
            if (kinds == kind).any():
                out.add("discrepancies.win_rate", f"{method}/{kind}", sure.mean(won[kinds == kind]))
        for control in sorted(set(controls) - {""}):
            mine = won[controls == control]
            out.add("discrepancies.win_rate", f"{method}/against {control}", sure.mean(mine))


def radjudge(
    out: Outcome, path: Path, comparer: Comparer, settings: EvaluateFile, ontology: Ontology, sure: Sure
) -> None:
    """Add the share of RadJudge's tests that each way to compare, and RadSim, rank as expected.

    Raises:
        RadgenError: the file is not RadJudge's.
    """
    try:
        tests = [test for category in orjson.loads(path.read_bytes()) for test in category["tests"]]
        texts = {
            test["id"]: {name: entry["text"] for name, entry in test["candidates"].items()} for test in tests
        }
        rules = {test["id"]: test["expected_ranking"] for test in tests}
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
        raise RadgenError(f"{path}: not RadJudge's file of ranking tests ({type(error).__name__})") from None
    comparer.prepare([text for test in tests for text in (test["ground_truth"], *texts[test["id"]].values())])
    policy = load_policy(ontology)
    right: dict[str, list[float]] = defaultdict(list)
    for test in tests:
        truth = comparer.extractor.extract(test["ground_truth"])
        found: dict[str, dict[str, float]] = defaultdict(dict)
        for name, text in texts[test["id"]].items():
            for method, value in comparer.scores(text, test["ground_truth"]).items():
                found[method][name] = value
            made = score(truth, comparer.extractor.extract(text), policy)
            found["radsim"][name] = max(-1.0, min(1.0, made.agreement + made.family + made.organ))
        expected = rules[test["id"]]
        expected = [expected] if isinstance(expected, str) else expected
        for method, values in found.items():
            right[method].append(float(all(holds(rule, values, settings) for rule in expected)))
    for method, hits in right.items():
        out.add("discrepancies.radjudge", method, sure.mean(np.array(hits)))


def holds(rule: str, scores: dict[str, float], settings: EvaluateFile) -> bool:
    """Tell whether one expectation ("C1 > C2", "C1 = C2") holds."""
    first, sign, second = rule.split()
    difference = scores[first] - scores[second]
    options = settings.discrepancies
    return abs(difference) < options.equal if sign == "=" else difference > options.tie


def discrepancies(
    encoder: Encoder,
    settings: EvaluateFile,
    ontology: Ontology,
    sure: Sure,
    show: Show,
    *,
    rows: Callable[[], list[Row]] | None,
    tokens: int,
    tests: Path | None,
) -> Outcome:
    """Judge report comparison by whole-report cosine, Align-F1, Directional and RadSim.

    Args:
        rows: gives the discrepancies; None where there are no reports.
        tests: RadJudge's file.
    """
    if rows is None and tests is None:
        raise SkippedError("needs --reports, --discrepancies or --radjudge")
    out = Outcome()
    extractor = RulesExtractor(ontology) if ontology.user_sources else default_extractor()
    comparer = Comparer(encoder, settings, extractor, tokens, show)
    if rows is not None:
        made = rows()
        out.notes.append(f"{len(made):,} reports with one wrong sentence")
        win_rates(out, made, comparer, settings, sure)
    if tests is not None:
        radjudge(out, tests, comparer, settings, ontology, sure)
    return out
