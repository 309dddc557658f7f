"""States of new sentences and reports by the nearest codebook vectors, with no training (MApLe, section 3.4).

Vectors are compared with all codebooks by one matrix product a batch. A report's state of a finding is
present if one of its sentences is, else absent if one is, else nothing: unstated is not absent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import orjson
from numpy.typing import NDArray

from radgen.atomic import AtomicFile
from radgen.errors import RadgenError, unknown
from radgen.extract.readers import Report, open_reports
from radgen.extract.rules import RulesExtractor
from radgen.extract.sentences import sentences
from radgen.generators.states.corpus import Paperwork
from radgen.train.codebook.book import STATES, Codebook, Floats
from radgen.train.codebook.settings import CodebookSettings
from radgen.train.evaluate.encoders import Encoder

#: How it is decided which findings a sentence speaks of.
Assign = Literal["keywords", "codebook"]
ASSIGN: tuple[Assign, ...] = ("keywords", "codebook")
SECTIONS = ("findings", "impression")
PRESENT, ABSENT, UNNAMED = 0, 1, 2
_NAMES = (*STATES, None)
#: Reports read before a batch of their sentences is classified.
_REPORTS = 500
#: The score of what is not assigned, and of reports without sentences: no difference of cosines is lower.
LOWEST = np.float32(-2.0)


@dataclass(frozen=True, eq=False)
class Classified:
    """What sentences state of the findings of a codebook.

    Attributes:
        state: int8 (n, findings): 0 present, 1 absent, 2 nothing.
        similarity: float32 (n, findings), cosine of the nearest vector of that state; of either, for nothing.
        score: float32 (n, findings): how much nearer "present" is than "absent", as MApLe compares them;
            ``LOWEST`` where the sentence is not assigned by its keywords.
    """

    state: NDArray[np.int8]
    similarity: Floats
    score: Floats


def classify_vectors(
    book: Codebook, vectors: Floats, assigned: NDArray[np.bool_] | None = None, batch: int = 4096
) -> Classified:
    """Classify cached vectors; one matrix product a batch, no loop over sentences.

    Args:
        vectors: float32 (n, dimensions), of length one.
        assigned: (n, findings), which findings a sentence speaks of, by keywords; decided by the codebooks
            themselves if absent.

    Raises:
        RadgenError: the vectors are not those of the codebook's model.
    """
    if vectors.ndim != 2 or vectors.shape[1] != book.dimensions:
        raise RadgenError(
            f"vectors of {vectors.shape[-1]} dimensions, but the codebook's have {book.dimensions}: use the"
            " model that it was built with"
        )
    parts = [
        _batch(book, vectors[at : at + batch], None if assigned is None else assigned[at : at + batch])
        for at in range(0, len(vectors), batch)
    ]
    if not parts:
        empty = np.zeros((0, len(book.findings)), np.float32)
        return Classified(empty.astype(np.int8), empty, empty)
    return Classified(
        np.concatenate([part.state for part in parts]),
        np.concatenate([part.similarity for part in parts]),
        np.concatenate([part.score for part in parts]),
    )


def _batch(book: Codebook, vectors: Floats, assigned: NDArray[np.bool_] | None) -> Classified:
    nearest = book.similarities(vectors)
    present, absent = nearest[:, :, 0], nearest[:, :, 1]
    if assigned is None:
        score = present - absent
        is_present = score >= book.thresholds[:, 1]
        is_absent = (-score >= book.thresholds[:, 2]) & ~is_present
    else:
        score = np.where(assigned, present - absent, LOWEST)
        is_present = assigned & (score >= book.thresholds[:, 0])
        is_absent = assigned & ~is_present
    state = np.where(is_present, PRESENT, np.where(is_absent, ABSENT, UNNAMED)).astype(np.int8)
    similarity = np.where(is_present, present, np.where(is_absent, absent, nearest.max(axis=2)))
    return Classified(state, similarity, score)


def reports_of(
    sentence: Classified, report: NDArray[np.int64], count: int
) -> tuple[Classified, NDArray[np.int64]]:
    """Sum sentences up to reports.

    Args:
        report: (n,), the number of each sentence's report, rising.
        count: reports; one without sentences states nothing, with the lowest score.

    Returns:
        The states of the reports; and (reports, findings), the number of the sentence that decides, or -1.
    """
    findings = sentence.state.shape[1]
    state = np.full((count, findings), UNNAMED, np.int8)
    similarity = np.zeros((count, findings), np.float32)
    score = np.full((count, findings), LOWEST, np.float32)
    decides = np.full((count, findings), -1, np.int64)
    if len(report):
        # The strongest state first, and of sentences of one state the one with the highest similarity.
        for column in range(findings):
            order = np.lexsort((-sentence.similarity[:, column], sentence.state[:, column], report))
            first = order[np.r_[True, report[order][1:] != report[order][:-1]]]
            state[report[first], column] = sentence.state[first, column]
            similarity[report[first], column] = sentence.similarity[first, column]
            decides[report[first], column] = np.where(sentence.state[first, column] == UNNAMED, -1, first)
        np.maximum.at(score, report, sentence.score)
    return Classified(state, similarity, score), decides


def check_assign(assign: str) -> None:
    """Check the name of a way to assign sentences.

    Raises:
        RadgenError: there is none of that name.
    """
    if assign not in ASSIGN:
        raise RadgenError(f"--assign: {unknown('way', assign, ASSIGN)}")


def keyword_assignment(
    rules: RulesExtractor, texts: Sequence[str], findings: Sequence[str]
) -> NDArray[np.bool_]:
    """Return (n, findings): which findings a sentence names by the keywords of the ontology."""
    place = {tag: number for number, tag in enumerate(findings)}
    out = np.zeros((len(texts), len(findings)), bool)
    for row, text in enumerate(texts):
        for state, _ in rules.states(text):
            number = place.get(state["finding"])
            if number is not None:
                out[row, number] = True
    return out


@dataclass
class Counts:
    """What came of a file of reports."""

    reports: int = 0
    sentences: int = 0
    states: dict[str, dict[str, int]] = field(default_factory=dict)

    def summary(self, out: Path) -> list[str]:
        """Return what a person wants to know, line by line."""
        lines = [f"{self.reports:,} reports, {self.sentences:,} sentences -> {out}"]
        for tag, counts in self.states.items():
            lines.append(f"{tag}: " + ", ".join(f"{state} {count:,}" for state, count in counts.items()))
        return lines


def classify_reports(
    path: Path,
    out: Path,
    book: Codebook,
    encoder: Encoder,
    rules: RulesExtractor,
    settings: CodebookSettings,
    *,
    paperwork: Paperwork | None = None,
    assign: str = "keywords",
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> Counts:
    """Write a line for each report: ``id``, ``findings`` by name, ``sentences`` with what each states.

    Args:
        paperwork: with ``assign="codebook"``, its sentences are left out, as they are of what codebooks are
            made of: no keyword says of them that they are about a finding.

    Raises:
        RadgenError: the encoder is not the codebook's, the file cannot be read, or ``out`` exists.
    """
    made_with = book.manifest.get("model", {})
    if made_with.get("hash") not in (None, encoder.hash):
        raise RadgenError(
            f"--model {encoder.name}: is not the model of the codebook ({made_with.get('name')}, weights "
            f"{made_with.get('hash')}); give that one, or build a codebook for this one"
        )
    counts = Counts(states={tag: dict.fromkeys(STATES, 0) for tag in book.findings})
    source = open_reports(path)
    with AtomicFile(out, force=force) as file:
        for block in _blocks(source):
            skip = paperwork if assign == "codebook" else None
            for line in _lines(block, book, encoder, rules, settings, assign, skip, counts):
                file.write(line + b"\n")
            progress(counts.reports)
    return counts


def _blocks(source: Any) -> Iterator[list[dict[str, Any]]]:
    block: list[dict[str, Any]] = []
    for row in source:
        if isinstance(row, Report):
            block.append(row.data)
            if len(block) == _REPORTS:
                yield block
                block = []
    if block:
        yield block


def _lines(
    block: list[dict[str, Any]],
    book: Codebook,
    encoder: Encoder,
    rules: RulesExtractor,
    settings: CodebookSettings,
    assign: str,
    skip: Paperwork | None,
    counts: Counts,
) -> Iterator[bytes]:
    places, report, texts = [], [], []
    for number, data in enumerate(block):
        for section in SECTIONS:
            text = data.get(section) or ""
            for start, end in sentences(text):
                sentence = " ".join(text[start:end].split())
                if skip is not None and skip.kind(sentence) is not None:
                    continue
                places.append({"section": section, "start": start, "end": end})
                report.append(number)
                texts.append(sentence)
    vectors = encoder.vectors(texts, settings.max_tokens)
    assigned = keyword_assignment(rules, texts, book.findings) if assign == "keywords" else None
    found = classify_vectors(book, vectors, assigned, settings.batch)
    whole, decides = reports_of(found, np.array(report, np.int64), len(block))
    rows: list[list[dict[str, Any]]] = [[] for _ in block]
    for at, finding in zip(*np.nonzero(found.state != UNNAMED), strict=True):
        said = rows[report[at]]
        if not said or said[-1]["sentence"] != at:
            said.append({"sentence": at, **places[at], "findings": {}})
        said[-1]["findings"][book.findings[finding]] = _entry(found, at, finding)
    for number, data in enumerate(block):
        findings: dict[str, Any] = {}
        for finding, tag in enumerate(book.findings):
            entry = _entry(whole, number, finding)
            at = int(decides[number, finding])
            if at >= 0:
                entry |= places[at]
                counts.states[tag][entry["state"]] += 1
            findings[tag] = entry
        said = [{name: value for name, value in row.items() if name != "sentence"} for row in rows[number]]
        yield orjson.dumps({"id": data["id"], "findings": findings, "sentences": said})
    counts.reports += len(block)
    counts.sentences += len(texts)


def _entry(found: Classified, row: int, finding: int) -> dict[str, Any]:
    state = _NAMES[int(found.state[row, finding])]
    similarity = None if state is None else round(float(found.similarity[row, finding]), 6)
    return {"state": state, "similarity": similarity, "score": round(float(found.score[row, finding]), 6)}
