"""What the page asks of results.json: values by model, measure and group; what was skipped or quoted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from radgen.errors import RadgenError

FORMAT = 1
#: Digits after the point, by the unit of a measure; three for shares, cosines and correlations.
_DIGITS = {"ratio": 2, "reports/s": 1, "s": 2, "MiB": 0, "bytes": 0}


class Skip(NamedTuple):
    """A suite that was not run, for these models, and why."""

    suite: str
    models: tuple[str, ...]
    reason: str


class Evaluation:
    """The content of results.json, as `radgen evaluate` writes it (format 1).

    Raises:
        RadgenError: it is not an evaluation, or one of another format.
    """

    def __init__(self, results: Mapping[str, Any]) -> None:
        if results.get("radgen") != "evaluation" or not isinstance(results.get("results"), list):
            raise RadgenError("results: expected the results.json of 'radgen evaluate', found something else")
        if results.get("format") != FORMAT:
            raise RadgenError(f"results: format {results.get('format')!r}, expected {FORMAT}; run it again")
        self.data = results
        self.models: list[str] = [model["name"] for model in results["models"]]
        self.suites: list[str] = list(results["suites"])
        self.measures: Mapping[str, Mapping[str, Any]] = results["measures"]
        self.entries = {(entry["suite"], entry["model"]): entry for entry in results["results"]}
        self._values = {
            (entry["model"], value["measure"], value["group"]): value
            for entry in results["results"]
            for value in entry["values"]
        }

    def value(self, model: str, measure: str, group: str) -> Mapping[str, Any] | None:
        """Return a value's entry, or None where the model has none."""
        return self._values.get((model, measure, group))

    def number(self, model: str, measure: str, group: str) -> float | None:
        """Return a value, or None where there is none or it could not be measured."""
        value = self.value(model, measure, group)
        return None if value is None else value["value"]

    def keys(self, suite: str) -> list[tuple[str, str]]:
        """Return the measures and groups of a suite, of all models, in their order."""
        found: dict[tuple[str, str], None] = {}
        for model in self.models:
            for value in self.values(suite, model):
                found[value["measure"], value["group"]] = None
        return list(found)

    def values(self, suite: str, model: str) -> Sequence[Mapping[str, Any]]:
        """Return the values of a suite and a model; none where it was skipped."""
        values: Sequence[Mapping[str, Any]] = self.entries.get((suite, model), {}).get("values", ())
        return values

    def figure(self, suite: str, model: str, key: str) -> Any:
        """Return the data of a figure, or None where there is none."""
        return (self.entries.get((suite, model), {}).get("figures") or {}).get(key)

    def reason(self, suite: str, model: str) -> str | None:
        """Return why a suite was skipped for a model, or None where it was not."""
        entry = self.entries.get((suite, model))
        if entry is None:
            return "not asked for"
        return None if entry["status"] == "done" else str(entry["reason"] or "no reason was given")

    def skipped(self) -> list[Skip]:
        """Return all that was skipped; models with the same reason together."""
        out: list[Skip] = []
        for suite in self.suites:
            reasons: dict[str, list[str]] = {}
            for model in self.models:
                reason = self.reason(suite, model)
                if reason is not None:
                    reasons.setdefault(reason, []).append(model)
            out += [Skip(suite, tuple(models), reason) for reason, models in reasons.items()]
        return out

    def notes(self, suite: str) -> list[str]:
        """Return the remarks on a suite; those that hold for some models alone name them."""
        notes: dict[str, list[str]] = {}
        done = [model for model in self.models if self.reason(suite, model) is None]
        for model in done:
            for note in self.entries[suite, model]["notes"]:
                notes.setdefault(note, []).append(model)
        return [
            note if len(models) == len(done) else f"{', '.join(models)}: {note}"
            for note, models in notes.items()
        ]

    def quoted(self, measure: str, group: str) -> dict[str, Mapping[str, Any]]:
        """Return the paper's figures for a measure and group, by encoder."""
        return {
            entry["encoder"]: entry
            for entry in self.data.get("quoted", ())
            if entry["measure"] == measure and entry["group"] == group
        }

    def best(self, measure: str, group: str) -> float | None:
        """Return the best value of two or more models, or None where no value is better than another."""
        numbers = [self.number(model, measure, group) for model in self.models]
        known = [number for number in numbers if number is not None]
        better = self.measures[measure]["better"]
        if len(known) < 2 or better not in ("higher", "lower") or min(known) == max(known):
            return None
        return max(known) if better == "higher" else min(known)

    def arrow(self, measure: str) -> str:
        """Return which way is better as an arrow."""
        return {"higher": "↑", "lower": "↓"}.get(self.measures[measure]["better"], "")

    def formulas(self, suite: str) -> list[tuple[str, str]]:
        """Return each measure of a suite with its formula, its source, and which way is better."""
        out = []
        for measure in dict.fromkeys(measure for measure, _ in self.keys(suite)):
            entry = self.measures[measure]
            better = {"higher": "higher is better", "lower": "lower is better"}.get(entry["better"])
            said = "; ".join(part for part in (entry["formula"], entry["source"], better) if part)
            out.append((str(entry["title"]), said))
        return out

    def say(self, measure: str, number: float) -> str:
        """Return a number as the reader sees it: 0.97849 of a share is "0.978"."""
        digits = _DIGITS.get(self.measures[measure]["unit"], 3)
        return f"{number:z,.{digits}f}".replace("-", "−")

    def unit(self, measure: str) -> str:
        """Return the unit where it has to be said: shares, cosines and correlations have none."""
        unit = str(self.measures[measure]["unit"])
        return unit if unit in ("reports/s", "s", "MiB", "bytes") else ""
