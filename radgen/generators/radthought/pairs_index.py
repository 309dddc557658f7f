"""Candidate pairs of records through posting lists, linear in the records (see ``similarity/index.py``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from radgen.generators.radthought.corpus import Thoughts
from radgen.generators.radthought.scores_coded import Ints
from radgen.generators.similarity.index import Dice, Postings, mixed

#: Records and the keys of each, side by side.
Keys = tuple[Ints, Any]


class ThoughtIndex:
    """Posting lists of the records of one split.

    Args:
        thoughts: the records.
        members: numbers of the records that are drawn.
        levels: the levels (of ``record.LEVELS``) whose processes count.
        seed: of the draws.
    """

    def __init__(self, thoughts: Thoughts, members: Ints, levels: Sequence[str], seed: np.uint64) -> None:
        self.members = members
        self.dice = Dice(seed)
        count = len(members)
        marks, owner = thoughts.tags.expand(members)
        there, tags = marks % 2 == 1, marks // 2
        has, lacks = (owner[there], tags[there]), (owner[~there], tags[~there])
        families = self._families(thoughts)
        kinds = (has[0], families[has[1]])
        processes = self._processes(thoughts, levels)
        signature, near = _signatures(count, *has)
        whole, _ = _signatures(count, *processes)
        either = (np.concatenate([has[0], lacks[0]]), np.concatenate([has[1] + 1, -1 - lacks[1]]))
        other = (either[0], -either[1])
        self.postings = {
            "label": Postings.of(count, has, has),
            "denied": Postings.of(count, either, other),
            "family": Postings.of(count, kinds, kinds),
            "process": Postings.of(count, processes, processes),
            "signature": Postings.of(count, signature, signature),
            "near": Postings.of(count, near, near),
            "processes": Postings.of(count, whole, whole),
        }

    @staticmethod
    def _families(thoughts: Thoughts) -> Ints:
        """Return by tag the number of its family; a tag of no family is its own."""
        names: dict[str, int] = {}
        out = []
        for tag, number in thoughts.tag_numbers.numbers.items():
            entry = thoughts.policy.ontology.findings.get(tag)
            out.append(-1 - number if entry is None else names.setdefault(entry.family, len(names)))
        return np.array(out, np.int64)

    def _processes(self, thoughts: Thoughts, levels: Sequence[str]) -> Keys:
        """Return the processes that the records conclude at some levels, denied ones apart from others."""
        owners, keys = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for level in levels:
            numbers, owner = thoughts.levels[level].expand(self.members)
            owners.append(owner)
            keys.append(2 * thoughts.scorer.about[numbers] + thoughts.scorer.denied[numbers])
        return np.concatenate(owners), np.concatenate(keys)

    def draw(self, source: str, texts: Ints) -> Ints:
        """Return another record for each place among the members, -1 where the source leads nowhere."""
        if source == "chance":
            found = (self.dice(len(texts)) * len(self.members)).astype(np.int64)
        else:
            found = self.postings[source].draw(texts, self.dice)
        return np.where(found >= 0, self.members[found], -1)


def _signatures(count: int, owner: Ints, keys: Ints) -> tuple[Keys, Keys]:
    """Return the hash of each record's set of keys, and with it the hashes of the set less one."""
    order = np.lexsort((keys, owner))
    owner, keys = owner[order], keys[order]
    fresh = np.ones(len(owner), bool)
    fresh[1:] = (owner[1:] != owner[:-1]) | (keys[1:] != keys[:-1])
    owner, keys = owner[fresh], keys[fresh]
    each = mixed(keys + 1)
    whole = np.zeros(count, np.uint64)
    np.bitwise_xor.at(whole, owner, each)
    some = np.flatnonzero(np.bincount(owner, minlength=count) > 0)
    less = whole[owner] ^ each
    more = less != 0  # a record with one key is near every record otherwise
    near = (np.concatenate([some, owner[more]]), np.concatenate([whole[some], less[more]]))
    return (some, whole[some]), near
