"""Places in a sentence: "right upper and left lower lobe" as one item with two alternatives."""

from __future__ import annotations

from radgen.extract.matching import Item

#: How far a list of places is followed, in items.
_LONGEST_LIST = 40

Place = tuple[str | None, str | None, str | None]
_JOINS = frozenset(("and", "or", "slash", "versus"))

#: First words of findings that are also the noun of a place before them: "upper | lung nodule".
_NOUNS = {"lung": "zone", "lungs": "zone", "lobe": "lobe", "lobar": "lobe"}


def merge_places(items: list[Item]) -> list[Item]:
    """Join words of place that stand together, and read them as (laterality, lobe, zone) alternatives."""
    if "place" not in {item.kind for item in items}:
        return items
    result: list[Item] = []
    index = 0
    size = len(items)
    while index < size:
        item = items[index]
        if item.kind != "place" or "anatomy" in item.phrase.place:
            if item.kind == "place":
                item.kind = "site"
            result.append(item)
            index += 1
            continue
        end = _run(items, index)
        noun = None
        if end < size and items[end].kind == "find" and items[end].start == items[end - 1].end:
            noun = _NOUNS.get(items[end].phrase.words[0])
        result.append(_read(items[index:end], noun))
        index = end
    return result


def _run(items: list[Item], start: int) -> int:
    """Return the end of the words of place that begin at ``start``."""
    size = len(items)
    after_preposition = (start > 0 and items[start - 1].kind == "prep") or (
        start > 1 and items[start - 1].kind == "det" and items[start - 2].kind == "prep"
    )
    at = start + 1
    while at < size:
        item = items[at]
        if item.kind == "place" and "anatomy" not in item.phrase.place:
            if item.start > items[at - 1].end:
                return at
            at += 1
            continue
        step = at
        while step < size and items[step].kind in ("and", "or", "slash", "versus", "comma", "det"):
            if items[step].start > items[step - 1].end:
                return at
            step += 1
        if step == at or step >= size or step - at > 3:
            return at
        following = items[step]
        if (
            following.kind != "place"
            or "anatomy" in following.phrase.place
            or following.start > items[step - 1].end
        ):
            return at
        if any(items[k].kind == "det" for k in range(at, step)) and not after_preposition:
            return at
        close = _conjunct_end(items, step)
        joined = any(items[k].kind in _JOINS for k in range(at, step))
        if not joined and not _listed(items, close):
            return at
        if after_preposition and joined and _opens_noun(items, close, items[at - 1]):
            return at
        at = close
    return at


def _opens_noun(items: list[Item], close: int, last: Item) -> bool:
    """Whether a place belongs to the noun after it: "in the right lung and left | effusion"."""
    if close >= len(items) or items[close].start != items[close - 1].end:
        return False
    if items[close].kind == "find":
        return _complete(last)
    return items[close].kind in ("attribute", "subject") and "noun" in last.phrase.place


def _complete(item: Item) -> bool:
    place = item.phrase.place
    return "noun" in place or "zone" in place or "lobe" in place or set(place) == {"laterality"}


def _conjunct_end(items: list[Item], start: int) -> int:
    at = start + 1
    while at < len(items) and items[at].kind == "place" and "anatomy" not in items[at].phrase.place:
        if items[at].start > items[at - 1].end:
            break
        at += 1
    return at


def _listed(items: list[Item], at: int) -> bool:
    """Whether a comma list of places goes on to an "and"."""
    size = min(len(items), at + _LONGEST_LIST)
    while at < size:
        if items[at].kind in ("and", "or"):
            return (
                at + 1 < size
                and items[at + 1].kind == "place"
                and "anatomy" not in items[at + 1].phrase.place
            )
        if items[at].kind == "comma" and at + 1 < size:
            if items[at + 1].kind in ("and", "or"):
                at += 1
                continue
            if items[at + 1].kind == "place":
                at = _conjunct_end(items, at + 1)
                continue
        return False
    return False


def _read(items: list[Item], noun: str | None) -> Item:
    """Read one run of words of place; ``noun`` is what the word after it adds ("upper" | "lung nodule")."""
    merged = Item("place", items[0].phrase, items[0].start, items[-1].end, {})
    if len(items) > 1 or noun or "noun" in items[0].phrase.place:
        merged.places = _alternatives(items, noun)
        merged.attrs = {"lung": True} if any(_names_lung(item) for item in items) else {}
    else:
        place = items[0].phrase.place
        known = place.get("laterality"), place.get("lobe"), place.get("zone")
        merged.places = [known] if any(known) else []
        if "lung" in items[0].phrase.words or "lungs" in items[0].phrase.words:
            merged.attrs = {"lung": True}
    return merged


def _names_lung(item: Item) -> bool:
    return item.phrase.words[-1] in ("lung", "lungs") or item.phrase.words[0] == "lung"


def _alternatives(items: list[Item], noun: str | None) -> list[Place]:
    conjuncts: list[dict[str, str]] = [{}]
    for item in items:
        if item.kind != "place":
            if conjuncts[-1]:
                conjuncts.append({})
            continue
        place = item.phrase.place
        current = conjuncts[-1]
        side, other = place.get("laterality"), current.get("laterality")
        if len(place) == 1 and side and other and side not in (other, "bilateral"):
            conjuncts.append({})
            current = conjuncts[-1]
        current.update(place)
    conjuncts = [conjunct for conjunct in conjuncts if conjunct]
    for conjunct in reversed(conjuncts):
        noun = conjunct.get("noun", noun)
        if noun:
            conjunct.setdefault("noun", noun)
    noun = None
    for conjunct in conjuncts:
        noun = conjunct.get("noun", noun)
        if noun and ("lobe_position" in conjunct or "zone_position" in conjunct):
            conjunct.setdefault("noun", noun)
    shared: str | None = None
    for conjunct in conjuncts:
        shared = conjunct.get("laterality", shared)
        if shared and (shared, conjunct.get("lobe")) != ("right", "lingula"):
            conjunct.setdefault("laterality", shared)
    if conjuncts and conjuncts[-1].get("laterality") == "bilateral":  # "upper and lower lobes bilaterally"
        for conjunct in conjuncts:
            conjunct.setdefault("laterality", "bilateral")
    places = list(dict.fromkeys(_place(conjunct) for conjunct in conjuncts))
    places = [place for place in places if any(place)]
    return _both_sides(places)


def _place(conjunct: dict[str, str]) -> Place:
    lobe, zone = conjunct.get("lobe"), conjunct.get("zone")
    noun = conjunct.get("noun")
    if noun == "lobe" and not lobe:
        lobe = conjunct.get("lobe_position")
    elif noun == "zone" and not zone:
        zone = conjunct.get("zone_position")
    elif not zone and not lobe and "zone_position" in conjunct and "lobe_position" not in conjunct:
        zone = conjunct["zone_position"]
    return conjunct.get("laterality"), lobe, zone


def _both_sides(places: list[Place]) -> list[Place]:
    """Read "right and left lower lobe" as bilateral."""
    result: list[Place] = []
    for place in places:
        for index, (side, lobe, zone) in enumerate(result):
            if (lobe, zone) == place[1:] and {side, place[0]} == {"left", "right"}:
                result[index] = ("bilateral", lobe, zone)
                break
        else:
            result.append(place)
    return result
