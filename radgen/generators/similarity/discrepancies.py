"""Reports with one wrong sentence, beside a harmless rewrite: for judging (spec §5, §10).

Each row is a triplet: the section, its harmless rewrite, the section with one sentence wrong. Both are read
again by the rules: the harmless one must state what the section states, the other what the edit says and
nothing else.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import orjson

from radgen.errors import DatasetError
from radgen.generators.radsim.policy import clean_states, score
from radgen.generators.similarity.edits import Edit, Edits, differs_by
from radgen.generators.similarity.folder import MadeFromReports, Spec, existing, identity, line_of, write
from radgen.generators.similarity.make import ReportOrder, checked
from radgen.generators.similarity.sections import (
    Block,
    Reader,
    Section,
    Sections,
    State,
    denied_systems,
    joined,
    keys,
    read_sections,
    row_random,
)
from radgen.generators.similarity.settings import settings
from radgen.generators.splits import SPLITS, Split, Splitter, normalise
from radgen.ontology.radsim import Policy

if TYPE_CHECKING:  # the endpoint is loaded only where one is given
    from radgen.extract.endpoint.command import Options
    from radgen.generators.similarity.rewrites import Offer, Rewriter

COLUMNS = (
    "anchor",
    "positive",
    "negative",
    "id",
    "family",
    "level",
    "discrepancy",
    "control",
    "before",
    "after",
    "control_before",
    "control_after",
    "positive_target",
    "negative_target",
    "anchor_state",
    "positive_state",
    "negative_state",
    "anchor_report",
)
DESCRIPTIONS = {
    "anchor": "a section of a report",
    "positive": "the same section, rewritten without harm",
    "negative": "the same section with one sentence wrong",
    "family": "discrepancies",
    "level": "findings or impression",
    "discrepancy": "what is wrong: laterality, presence, severity, size, temporal, omission or addition",
    "control": "how the positive was rewritten: synonym, reordering; by a model: paraphrase, condensation",
    "before": "the sentence that was changed or left out; empty for an addition",
    "after": "what stands in its place; empty for an omission",
    "control_before": "the words that the rewrite changed; empty for a reordering",
    "control_after": "what stands in its place",
    "positive_target": "RadSim of positive and anchor",
    "negative_target": "RadSim of negative and anchor",
    "anchor_state": "what the section states: a list of canonical findings",
    "anchor_report": "id of the report",
}


class Change:
    """A changed section: its text, its states, and the sentence before and after."""

    def __init__(
        self, kind: str, blocks: list[Block], before: str, after: str, states: list[State] | None = None
    ) -> None:
        self.kind, self.blocks, self.before, self.after = kind, blocks, before, after
        self.text = joined(blocks)
        self.states = [state for block in blocks for state in block.states] if states is None else states


class Discrepancies:
    """Makes the rows, split by split; the kinds take turns."""

    def __init__(self, made: Sections, policy: Policy, seed: int, rewriter: Rewriter | None = None) -> None:
        self.made, self.policy, self.seed, self.rewriter = made, policy, seed, rewriter
        self.options = settings().discrepancies
        self.edits = Edits(policy.ontology, self.options)
        self.reader = Reader(policy.ontology)
        self.rejected: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self.controls: Counter[str] = Counter()
        self.short: dict[str, tuple[int, int]] = {}

    def rows(self, quotas: dict[Split, int], name: str) -> Iterator[tuple[Split, bytes]]:
        """Yield the rows; what is missing of a quota is in ``short`` afterwards."""
        for split in SPLITS:
            made = 0
            # One section gives one row a kind at most; rare kinds go first wherever they can.
            needed: Counter[str] = Counter()
            sections = self.made.sections[split]
            for turn in range(len(self.options.kinds)):
                before = made
                left = lambda: quotas[split] - made  # noqa: B023,E731  (asked within this turn)
                for section, offer in self._offered(sections, turn, left):
                    if made == quotas[split]:
                        break
                    rng = row_random("discrepancies", self.seed, turn, section.report, section.name)
                    found = self._one(section, split, rng, needed, offer)
                    if found is None:
                        continue
                    wrong, harmless = found
                    needed[wrong.kind] += 1
                    self.kinds[wrong.kind] += 1
                    if self.rewriter:
                        self.controls[harmless.kind] += 1
                    made += 1
                    yield split, self._line(section, wrong, harmless, name)
                if made in (before, quotas[split]):
                    break
            if made < quotas[split]:
                self.short[split] = (made, quotas[split])

    def _offered(
        self, sections: Iterable[Section], turn: int, left: Callable[[], int]
    ) -> Iterator[tuple[Section, Offer | None]]:
        """Yield each section with a model's rewrite, where one is asked for: no more than rows are left."""
        rest = iter(sections)
        while self.rewriter and (size := min(left(), self.rewriter.words.group)):
            group = list(islice(rest, size))
            if not group:
                return
            yield from zip(group, self.rewriter.offers(group, turn, self.seed), strict=True)
        if not self.rewriter:
            yield from ((section, None) for section in rest)

    def _one(
        self, section: Section, split: Split, rng: Random, made: Counter[str], offer: Offer | None
    ) -> tuple[Change, Change] | None:
        original = keys(section.states)
        if self.reader.keys(joined(section.blocks), section.name) != original:
            self.rejected["the section reads differently when put together"] += 1
            return None
        kinds = sorted(self.options.kinds, key=lambda kind: (made[kind], rng.random()))
        wrong = next((change for kind in kinds if (change := self.change(kind, section, split, rng))), None)
        if wrong is None:
            self.rejected["no sentence can be made wrong"] += 1
            return None
        controls = list(self.options.controls)
        rng.shuffle(controls)
        harmless = self._rewritten(section, offer, wrong) if offer else None
        harmless = harmless or next(
            (change for kind in controls if (change := self.change(kind, section, split, rng))), None
        )
        if harmless is None:
            self.rejected["no harmless rewrite"] += 1
            return None
        for change in (wrong, harmless):
            if not self.made.ownership.claim_new(change.text, split):
                self.rejected["its string belongs to another split, or was made before"] += 1
                return None
        return wrong, harmless

    def change(self, kind: str, section: Section, split: Split, rng: Random) -> Change | None:
        """Return a change of one kind that does what it says and nothing else, None where there is none."""
        if kind == "omission":
            proposals = self._omissions(section)
        elif kind == "addition":
            proposals = self._additions(section, split, rng)
        elif kind == "reordering":
            proposals = self._orders(section, rng)
        else:
            proposals = [self._applied(section, edit) for edit in self.edits.propose(kind, section, rng)]
        if kind != "reordering":
            rng.shuffle(proposals)
        for change in proposals[: self.options.tries]:
            if normalise(change.text) == normalise(section.text):
                continue
            if not differs_by(kind, section.states, change.states):
                self.rejected[f"{kind}: other findings would change too"] += 1
                continue
            if self.reader.keys(change.text, section.name) == keys(change.states):
                return change
            self.rejected[f"{kind}: reads otherwise than it should"] += 1
        return None

    def _rewritten(self, section: Section, offer: Offer, wrong: Change) -> Change | None:
        """Return a model's rewrite if the section read again with it states the same, None otherwise."""
        from radgen.generators.similarity.rewrites import refusal

        wish, reason, change = offer.wish, offer.failure, None
        if offer.text is not None:
            blocks = wish.applied(section, offer.text)
            states = [state for state, _ in self.reader.states(joined(blocks), section.name)]
            change = Change(wish.kind, blocks, wish.original, offer.text, states)
            reason = refusal(wish, offer.text, section.states, states) or ""
            if normalise(change.text) == normalise(section.text):
                reason = "says it in the same words"
            elif not reason and wish.kind == "condensation":  # denials that are left out lower the score
                nearer = self._score(section, change) > self._score(section, wrong)
                reason = "" if nearer else "is no nearer than what is wrong"
        if reason:
            self.rejected[f"{wish.kind}: {reason}"] += 1
            return None
        return change

    def _score(self, section: Section, change: Change) -> float:
        return score(section.states, change.states, self.policy).value

    @staticmethod
    def _applied(section: Section, edit: Edit) -> Change:
        blocks = list(section.blocks)
        blocks[edit.place] = Block(edit.after, edit.states)
        return Change(edit.kind, blocks, edit.before, edit.after)

    @staticmethod
    def _omissions(section: Section) -> list[Change]:
        """Leave out one sentence with a finding that is there and that nothing else in the section states."""
        out = []
        for place, block in enumerate(section.blocks):
            rest = [*section.blocks[:place], *section.blocks[place + 1 :]]
            other = {tag for item in rest for tag in item.tags}
            if block.single and block.tags and not block.tags & other and rest:
                out.append(Change("omission", rest, block.text, ""))
        return out

    def _additions(self, section: Section, split: Split, rng: Random) -> list[Change]:
        """Add a sentence of another report with findings that the section neither names nor denies."""
        named = {tag for block in section.blocks for tag in block.named}
        denied = denied_systems(self.policy, section.states)
        pool = self.made.pool[split]
        out = []
        for _ in range(4 * self.options.tries if pool else 0):
            block = pool[int(rng.random() * len(pool))]
            if block.named & named or any(self.policy.system(tag) in denied for tag in block.tags):
                continue
            blocks = list(section.blocks)
            blocks.insert(int(rng.random() * (len(blocks) + 1)), block)
            out.append(Change("addition", blocks, "", block.text))
            if len(out) == self.options.tries:
                break
        return out

    @staticmethod
    def _orders(section: Section, rng: Random) -> list[Change]:
        if len(section.blocks) < 2:
            return []
        out = []
        for _ in range(3):
            blocks = list(section.blocks)
            rng.shuffle(blocks)
            out.append(Change("reordering", blocks, "", ""))
        return out

    def _line(self, section: Section, wrong: Change, harmless: Change, name: str) -> bytes:
        states = section.states
        texts = {
            "anchor": orjson.dumps(section.text),
            "positive": orjson.dumps(harmless.text),
            "negative": orjson.dumps(wrong.text),
        }
        rest: dict[str, Any] = {
            "family": "discrepancies",
            "level": section.name,
            "discrepancy": wrong.kind,
            "control": harmless.kind,
            "before": wrong.before,
            "after": wrong.after,
            "control_before": harmless.before,
            "control_after": harmless.after,
            "positive_target": self._score(section, harmless),
            "negative_target": self._score(section, wrong),
            "anchor_state": clean_states(states),
            "positive_state": clean_states(harmless.states),
            "negative_state": clean_states(wrong.states),
            "anchor_report": section.report,
        }
        return line_of(name, texts, rest)


def make_discrepancies(
    order: ReportOrder,
    out: Path,
    *,
    endpoint: Options | None = None,
    force: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> MadeFromReports:
    """Write discrepancies to ``out/discrepancies/sections``; errors as ``make_perturbations``.

    Args:
        endpoint: asked for paraphrases and condensations; without one, harmless rewrites are radgen's own.

    Raises:
        RadgenError: the endpoint cannot be asked, see ``rewrites.Rewriter``.
    """
    if order.truth or order.extracted:
        raise DatasetError(
            "discrepancies are read by the rules before and after; leave --truth and --extracted out"
        )
    rewriter, more = None, {}
    words: tuple[str, ...] = ()
    if endpoint is not None:
        from radgen.generators.similarity.rewrites import Rewriter

        rewriter = Rewriter(endpoint)
        more = {"rewrites": rewriter.identity}
        words = (f"--base-url URL --model {endpoint.model}",)
    policy, sources, options = order.policy(), order.digests(), settings().discrepancies
    spec = Spec(
        family="discrepancies",
        name="sections",
        command=order.command("discrepancies", *words),
        seed=order.seed,
        columns=COLUMNS,
        texts=("anchor", "positive", "negative"),
        label=None,
        kinds=dict.fromkeys(("anchor_state", "positive_state", "negative_state"), "states"),
        target="negative_target",
        about="Sections of reports, each with a harmless rewrite and with one sentence wrong.",
        descriptions=DESCRIPTIONS,
    )
    fingerprint = identity(spec, policy, order.rows, sources, **more)
    if found := existing(out, spec, fingerprint, force):
        return found
    reads = order.reads(policy)
    made = read_sections(reads, policy.ontology, progress=progress)
    total = order.rows if order.rows is not None else max(1, round(options.per_report * made.total))
    quotas = Splitter(policy.ontology.axes.splits).quotas(total)
    notes: list[str] = []
    counts = {"reports": made.total, "sections": sum(map(len, made.sections.values()))}
    with rewriter or nullcontext():
        maker = Discrepancies(made, policy, order.seed, rewriter)
        maker.rejected.update(reads.rejected + made.dropped)
        return write(
            out,
            spec,
            fingerprint,
            checked(maker, maker.rows(quotas, spec.name), order, notes, counts),
            policy,
            states=reads.states,
            rejected=maker.rejected,
            counts=counts,
            sources=sources,
            notes=notes,
            constants={"discrepancies": options.model_dump(), **more},
        )
