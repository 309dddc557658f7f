"""Orders for datasets of RadThought records: their identity, volumes and shortfalls (spec §6, §9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import orjson

from radgen.errors import DatasetError
from radgen.generators.radthought.corpus_texts import records_path
from radgen.generators.radthought.pair_settings import settings_text
from radgen.generators.similarity.folder import Spec
from radgen.generators.splits import SPLITS, Split, Splitter
from radgen.ontology.load import load_ontology
from radgen.ontology.radsim import Policy, load_policy

#: Raised when the same records and seed give other rows.
RADTHOUGHT_PAIRS_VERSION = 1
FAMILY = "radthought"


@dataclass(frozen=True)
class ThoughtOrder:
    """What to make of which records.

    Attributes:
        records: ``records.jsonl`` or its folder.
        reports: that the records are of; None: synthetic ones, which are made again.
        rows: of each dataset over all splits; None is the recipe's volume, or what so many reports give.
    """

    records: Path
    reports: Path | None = None
    rows: int | None = None
    seed: int = 42
    ontology_files: tuple[str, ...] = ()

    def command(self, verb: str, option: str) -> str:
        """Return the command line, without what does not change the rows."""
        words = [f"radgen radthought {verb}", self.records.name, option]
        words += [f"--reports {self.reports.name}"] if self.reports else []
        words += [f"--n {self.rows}"] if self.rows is not None else []
        words += [f"--seed {self.seed}"]
        words += [f"--ontology {Path(path).name}" for path in self.ontology_files]
        return " ".join(words)

    def policy(self) -> Policy:
        """Return RadSim's policy over the ontology of the order."""
        return load_policy(load_ontology(self.ontology_files))

    def records_file(self) -> Path:
        """Return the file of records."""
        return records_path(self.records)


def identity(spec: Spec, policy: Policy, rows: int | None, sources: Sequence[str]) -> str:
    """Return the hash of all that the rows of a dataset depend on."""
    parts = {
        "version": RADTHOUGHT_PAIRS_VERSION,
        "family": spec.family,
        "name": spec.name,
        "rows": rows,
        "seed": spec.seed,
        "ontology": policy.ontology.fingerprint,
        "radsim": policy.fingerprint,
        "settings": sha256(settings_text()).hexdigest(),
        "sources": list(sources),
    }
    return sha256(orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)).hexdigest()


def volume(order: ThoughtOrder, recipe: int, most: Mapping[Split, float], policy: Policy) -> dict[Split, int]:
    """Return the rows of each split: as asked for, or the recipe's, at most what so many reports give."""
    splitter = Splitter(policy.ontology.axes.splits)
    if order.rows is not None:
        return splitter.quotas(order.rows)
    return {split: min(rows, int(most[split])) for split, rows in splitter.quotas(recipe).items()}


def shortfall(
    order: ThoughtOrder,
    recipe: int,
    quotas: Mapping[Split, int],
    got: Mapping[Split, int],
    spec: Spec,
    rejected: Counter[str],
) -> list[str]:
    """Say what is missing of the volume; an error where rows were asked for by number."""
    missing = {split: (got[split], quotas[split]) for split in SPLITS if got[split] < quotas[split]}
    text = ", ".join(f"{split} {have:,} of {want:,}" for split, (have, want) in missing.items())
    if missing and order.rows is not None:
        took = "; ".join(f"{count:,} {reason}" for reason, count in rejected.most_common(3) if count)
        raise DatasetError(
            f"{spec.family}/{spec.name}: these records give only {text} rows (left out: {took})"
        )
    notes = [f"fewer rows than so many reports should give: {text}"] if missing else []
    total = sum(quotas.values())
    if order.rows is None and total < recipe:
        notes.insert(0, f"{total:,} rows: so many reports give no more of the recipe's {recipe:,}")
    return notes
