"""Whether the sentences are English, say what their state says, and nothing else.

The rules and word lists here are the test's own: they are not read from the realiser's tables.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import defaultdict
from collections.abc import Iterator

import orjson
import pytest

from radgen.generators.levels import values
from radgen.generators.recipes import combination_names, contrast_names
from radgen.generators.stream import Order, stream
from radgen.ontology.load import load_ontology
from radgen.templates.phrasings import load_phrasings
from radgen.templates.realiser import Realiser

ONTOLOGY = load_ontology()
AXES = list(ONTOLOGY.axes.axes)
ROWS = 560  # an axis: with three texts a row, over 20,000 sentences together

# --- English ---

NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
SEVERAL = "multiple several numerous many innumerable countless various few myriad uncountable"
#: The noun phrase ends before these words.
STOPS = {
    "in",
    "within",
    "of",
    "at",
    "on",
    "with",
    "measuring",
    "up",
    "which",
    "is",
    "are",
    "has",
    "have",
    "can",
    "could",
    "cannot",
    "may",
    "might",
    "measures",
    "measure",
    "number",
    "demonstrates",
    "demonstrate",
    "shows",
    "show",
    "appears",
    "appear",
    "remains",
    "remain",
    "noted",
    "seen",
    "present",
    "identified",
    "visualized",
    "demonstrated",
    "evident",
    "visible",
    "appreciated",
    "observed",
    "shown",
    "affecting",
    "involving",
    "bilaterally",
    "since",
    "from",
    "not",
    "and",
    "for",
}
VERBS = {
    "is": False,
    "has": False,
    "measures": False,
    "shows": False,
    "demonstrates": False,
    "appears": False,
    "remains": False,
    "are": True,
    "have": True,
    "measure": True,
    "show": True,
    "demonstrate": True,
    "appear": True,
    "remain": True,
    "number": True,
}
IRREGULAR = {
    "bullae",
    "diverticula",
    "foci",
    "emboli",
    "thrombi",
    "calculi",
    "hila",
    "axillae",
    "apices",
    "densities",
    "bases",
    "metastases",
    "masses",
}
LIKE_S = ("ss", "us", "is", "'s")


def is_plural_word(word: str) -> bool:
    """Whether a noun is a plural, by its ending."""
    word = word.strip("().,:").lower()
    return word in IRREGULAR or (
        word.endswith("s") and not word.endswith(LIKE_S) and word not in ("ascites", "gas", "ards")
    )


def takes_an(word: str) -> bool:
    """Whether "an" goes before a word, by how it is read aloud."""
    if word[0].isdigit():
        digits = re.match(r"\d+", word).group(0)  # type: ignore[union-attr]
        return digits[0] == "8" or digits in ("11", "18")
    letters = re.match(r"[A-Z]{2,}", word)
    if letters:
        return word[0] in "AEFHILMNORSX" and word not in ("ROUX",)
    lower = word.lower()
    if lower.startswith(("uni", "usual", "uter", "ure", "uri", "use", "eu", "one")):
        return lower.startswith(("unin", "unim"))
    return lower[0] in "aeiou"


def head(words: list[str]) -> str:
    """The noun that a noun phrase is about: the last word before what hangs on it."""
    out = ""
    for word in words:
        if word.strip(",.:") in STOPS or word.startswith("("):
            break
        out = word
        if word.endswith(","):
            break
    return out.rstrip(",.:")


LEAD = re.compile(
    r"^(?:in addition|additionally|also|of note|radiographically|since the prior study|bilaterally"
    r"|(?:on|in|at|within) [^,]+), ",
    re.I,
)


def english_problems(text: str) -> list[str]:
    """Name each mistake of form, agreement or anatomy in a sentence."""
    out = []
    if "  " in text or text != text.strip():
        out.append("doubled or outer space")
    if re.search(r"\s[,.;:)]|\(\s|,(?! )|:(?! )|,\s*[,.]|\.\.", text):
        out.append("space at punctuation")
    if not (text[0].isupper() or text[0].isdigit()):
        out.append("no capital")
    if not text.endswith(".") or re.search(r"\.(?!\d|$)", text):
        out.append("not one full stop at the end")
    if re.search(r"[{}|<>_\x00-\x1f]|\bNone\b|\bnan\b|\bTrue\b", text):
        out.append("unfilled slot")
    if again := re.search(r"\b([A-Za-z]+) \1\b", text, re.I):
        out.append(f"'{again.group(0)}'")
    if wrong := re.search(
        r"left middle lobe|right lingula|\b(?:L?ML)\b(?<!RML)|bilateral (?:\w+ )?(?:middle lobe|lingula)"
        r"|both (?:middle lobes|lingula)|right LUL|right LLL|left R[UML]L"
        r"|(?:solitary|single|\bone) bilateral",
        text,
    ):
        out.append(f"impossible: '{wrong.group(0)}'")
    out += [
        f"article: '{found.group(0)}'"
        for found in re.finditer(r"\b([Aa]n?) (\S+)", text)
        if (found.group(1).lower() == "an") != takes_an(found.group(2))
    ]
    return out + number_problems(text)


def number_problems(text: str) -> list[str]:
    """Name each noun phrase or verb that disagrees in number."""
    out = []
    counted = r"\b([Aa]) (?:few|handful of|small number of|number of|total of|myriad of)\b"
    plain = re.sub(counted, "several", text)
    plain = re.sub(r"\b([Nn])ewly (?:seen|identified)\b", r"\1ew", plain)
    plain = plain.replace("A several", "several").replace("too numerous to count", "numerous")
    words = plain.split(" ")
    for place, word in enumerate(words):
        rest = words[place + 1 :]
        low = word.lower().strip("(")
        if not rest:
            continue
        if low in ("a", "an", "one", "1", "solitary", "single") and rest[0].strip(",.:") not in STOPS:
            noun = head(rest)
            if noun and is_plural_word(noun) and not word.endswith(","):
                out.append(f"'{word} … {noun}'")
        several = low in SEVERAL.split() or low in NUMBERS or (low.isdigit() and int(low) > 1)
        sized = rest[0].rstrip(",.)") in ("mm", "cm", "millimeter", "x", "by")
        after = place and words[place - 1] in ("x", "by", "about", "approximately", "roughly")
        if (
            several
            and not sized
            and not after
            and rest[0].strip(",.:") not in STOPS
            and not word.endswith(",")
        ):
            noun = head(rest)
            if noun and not is_plural_word(noun):
                out.append(f"'{word} … {noun}'")
    for found in re.finditer(
        r"\bthere (is|are) (?:probably |likely |most likely |possibly |definitely |clearly |unequivocally )?",
        plain,
        re.I,
    ):
        after_words = plain[found.end() :].split(" ")
        if after_words[0] in ("no", "evidence"):
            after_words = after_words[1:]
        noun = head(list(after_words))
        if noun and noun != "evidence" and (found.group(1).lower() == "are") != is_plural_word(noun):
            out.append(f"'there {found.group(1)} … {noun}'")
    subject_text = LEAD.sub("", plain)
    subject = head(subject_text.removeprefix("PA and lateral ").split(" "))
    tokens = subject_text.rstrip(".").split(" ")
    for place, word in enumerate(tokens):
        if (
            word in VERBS
            and place
            and tokens[0].lower() not in ("there", "findings", "appearances", "question")
        ):
            if tokens[place - 1] == "in" or (word == "number" and tokens[place - 1] in ("in", "small")):
                continue  # "three in number"
            if subject and VERBS[word] != is_plural_word(subject):
                out.append(f"'{subject} … {word}'")
            break
    for found in re.finditer(r", which (\w+)", plain):
        start = re.search(r"\bthere \w+ |\bthere (?:may|could|might) be ", plain, re.I)
        if start and found.group(1) in VERBS:
            skip = ("probably", "likely", "most", "possibly", "definitely", "clearly", "unequivocally", "be")
            noun = head([w for w in plain[start.end() :].split(" ") if w not in skip])
            if VERBS[found.group(1)] != is_plural_word(noun):
                out.append(f"'{noun}, which {found.group(1)}'")
    return out


# --- what a sentence states, read by a small list of words ---

EXCLUDES = (
    r"(?:cannot|not|difficult to|unable to)(?: be)?(?: (?:entirely|completely|fully|definitely))?"
    r"(?: exclude\w*| ruled? out)"
)
SAYS: dict[str, dict[str, str]] = {
    "severity": {
        "trace": r"minimal|trace|tiny|very mild|very slight|very small|trivial|minuscule|barely perceptible",
        "mild": r"mild|slight|small(?! number)|small-volume|small-sized|smallish|minor",
        "moderate": r"moderate|moderately sized|moderate-sized|moderate-volume|medium-sized"
        r"|medium size|mid-sized",
        "severe": r"severe|marked|(?<!more )(?<!less )extensive|pronounced|large|massive"
        r"|large-volume|advanced|profound"
        r"|gross|sizable|huge",
    },
    "temporal_change": {
        "new": r"new|newly|interval (?:development|appearance|occurrence)|development of|ha(?:s"
        r"|ve) (?:developed|appeared)"
        r"|not seen previously|not present on the prior study",
        "increased": r"increas\w+|worse\w*|enlarging|ha(?:s|ve) enlarged|interval enlarge\w+|progress\w+"
        r"|growing|grown|interval growth|larger|bigger|more extensive",
        "decreased": r"decreas\w+|improv\w+|shrinking|smaller|reduction|reduced since|diminish\w+"
        r"|regress\w+|less extensive",
        "stable": r"stable|unchanged|no (?:\w+ )?change|not (?:significantly )?changed"
        r"|without (?:significant|interval) change|static|unaltered|persist\w*|similar",
        "resolved": r"resolved|resolution|no longer|cleared|clearing|disappear\w+",
    },
    "density": {
        "ground_glass": r"ground[- ]?glass|non-?solid",
        "part_solid": r"part[- ]solid|partly solid|partially solid",
        "solid": r"solid|soft tissue density",
        "calcified": r"calcified|calcific",
    },
    "margin": {
        "smooth": r"smooth\w*|smooth-\w+|well-(?:defined|circumscribed|marginated)|sharply marginated"
        r"|sharp margins",
        "lobulated": r"lobulated|lobular",
        "ill_defined": r"ill[- ]defined|poorly defined|indistinct|ill-marginated|poorly marginated"
        r"|fuzzy|blurred|hazy",
        "spiculated": r"spiculat\w+|spicular",
    },
    "distribution": {
        "focal": r"focal|localized|unifocal",
        "multifocal": r"multi-?focal|scattered|multicentric|multiple foci",
        "diffuse": r"diffuse|widespread|generalized|pervasive|widely distributed",
    },
    "certainty": {
        "cannot_exclude": EXCLUDES,
        "possible": r"possibl[ey]|questionable|questioned|question of|may|might|could|can"
        r"|consider(?:ed|ation)?"
        r"|possibility of"
        r"|potential(?:ly)?|equivocal|perhaps|suggested",
        "probable": r"probabl[ey]|likely|suspected|favor(?:ed)?|presum\w+|suggest|suggestive|consistent with"
        r"|compatible with|suspicious for|concerning for",
        "definite": r"definite(?:ly)?|unequivocal(?:ly)?|clearly|diagnostic|definitive(?:ly)?"
        r"|confirmed|obvious"
        r"|certain(?:ly)?|unmistakabl[ey]|undoubtedly|pathognomonic",
    },
    "side": {
        "left": r"left(?:-sided)?|LUL|LLL",
        "right": r"right(?:-sided)?|RUL|RML|RLL",
        "bilateral": r"bilateral(?:ly)?|both|bi(?:apical|basilar|basal)",
    },
    "lobe": {
        "upper": r"upper lobes?|[LR]UL",
        "middle": r"middle lobe|RML",
        "lingula": r"lingular?",
        "lower": r"lower lobes?|[LR]LL",
    },
    "zone": {
        "apical": r"(?:bi)?apical|apex|apices",
        "upper": r"upper[- ]zones?|upper lungs?",
        "mid": r"mid[- ]?zones?|mid ?lung",
        "lower": r"lower[- ]zones?|lower lungs?",
        "basal": r"(?:bi)?bas(?:al|ilar)|bases?",
    },
}
#: What holds the word of another level, and is taken away before that one is looked for.
FIRST = {
    "severity": [("trace", r"very (?:mild|slight|small)")],
    "density": [("part_solid", r"part(?:[- ]|ly |ially )solid|semi-?solid|mixed ground-glass and solid")],
    "distribution": [("multifocal", r"multi-?focal")],
    "temporal_change": [("decreased", r"partial(?:ly)? (?:resol\w+|clear\w+)|resolving")],
    "certainty": [("cannot_exclude", rf"(?:could |does )?{EXCLUDES}")],
    "side": [("bilateral", r"left and right|right and left")],
}


def stated(text: str, axis: str) -> set[str]:
    """The levels of an axis that the words of a text state."""
    found, left = set(), text
    for level, pattern in FIRST.get(axis, []):
        if re.search(rf"\b(?:{pattern})\b", left, re.I):
            found.add(level)
            left = re.sub(rf"\b(?:{pattern})\b", "", left, flags=re.I)
    for level, pattern in SAYS[axis].items():
        if re.search(rf"(?<![\w-])(?:{pattern})(?![\w-]|-sized)", left, re.I):
            found.add(level)
    return found


def own_words(tag: str) -> str:
    """A pattern of every name of a finding, the longest first."""
    forms = {form for term in ONTOLOGY.findings[tag].terms for form in (term.text, term.plural) if form}
    return "|".join(re.escape(form) for form in sorted(forms, key=len, reverse=True))


NAMES = {tag: re.compile(rf"\b(?:{own_words(tag)})\b", re.I) for tag in ONTOLOGY.findings}
#: Words of the frames and leads that look like a level.
NEUTRAL = re.compile(r"\bfrontal\b|small number of|both views", re.I)


def meaning_problems(text: str, state: dict) -> list[str]:
    """Name each field that a sentence states otherwise than its state, or without it."""
    tag = state["finding"]
    if not NAMES[tag].search(text):
        return [f"does not name {tag}"]
    rest = NEUTRAL.sub(" ", NAMES[tag].sub(" ", text, count=1))
    out = []
    for axis in SAYS:
        field = {"side": "laterality"}.get(axis, axis)
        want = {state[field]} if state.get(field) else set()
        said = stated(rest, axis)
        if axis == "side" and state.get("lobe") == "lingula":
            said |= want
        if said != want:
            out.append(f"{axis}: says {sorted(said)}, state has {sorted(want)}")
    sizes = {round(float(n) * (10 if unit == "cm" else 1), 1) for n, unit in sizes_in(rest)}
    if bool(sizes) != bool(state.get("size_mm")) or (sizes and state["size_mm"] not in sizes):
        out.append(f"size: says {sizes}, state has {state.get('size_mm')}")
    return out


def sizes_in(text: str) -> list[tuple[str, str]]:
    """Every number with its unit; "12 x 9 mm" gives both."""
    unit = r"(?:mm|cm|millimeter)"
    out = [(n, u) for n, u in re.findall(rf"(\d+(?:\.\d+)?)[ -]?({unit})\b", text)]
    for first, second, u in re.findall(rf"(\d+(?:\.\d+)?) (?:x|by) (\d+(?:\.\d+)?) ({unit})", text):
        out += [(first, u), (second, u)]
    return out


# --- the sentences ---


def sampled() -> Iterator[tuple[str, dict]]:
    """Sentences of every dataset with their states."""
    orders = [("contrasts", name) for name in contrast_names(ONTOLOGY) if not name.endswith("_pairs")]
    orders += [("contrasts", "presence"), *(("crossaxis", name) for name in combination_names(ONTOLOGY))]
    realiser = Realiser(ONTOLOGY)
    for family, name in orders:
        rows = {"contrasts": ROWS, "crossaxis": 150}[family]
        for row, _ in stream(Order(family, name, rows=rows, seed=7), realiser=realiser):
            data = orjson.loads(row.line)
            for part in ("anchor", "positive", "negative"):
                if part in data:
                    yield data[part], data[f"{part}_state"]
            for part in ("1", "2"):
                if f"sentence{part}" in data:
                    yield data[f"sentence{part}"], data[f"state{part}"]


@pytest.fixture(scope="module")
def sentences() -> list[tuple[str, dict]]:
    found = [(text, state) for text, state in sampled() if isinstance(state, dict)]
    assert len(found) >= 20_000
    return found


def every_value() -> Iterator[dict]:
    """Every value of every axis of every finding."""
    rng = random.Random(3)
    for tag, entry in ONTOLOGY.findings.items():
        for axis in entry.axes:
            for fields in values(ONTOLOGY, tag, axis, {}, rng):
                yield {"finding": tag, "presence": "present", **dict(fields)}


def report(problems: dict[str, list[str]]) -> str:
    lines = [f"{sum(map(len, problems.values()))} problems"]
    for kind, texts in sorted(problems.items(), key=lambda item: -len(item[1]))[:25]:
        lines.append(f"{len(texts)} × {kind}: {texts[0]}")
    return "\n".join(lines)


def test_twenty_thousand_sentences_are_english(sentences: list[tuple[str, dict]]) -> None:
    problems = defaultdict(list)
    for text, _ in sentences:
        for problem in english_problems(text):
            problems[problem].append(text)
    assert not problems, report(problems)


def test_sentences_state_their_state_and_nothing_else(sentences: list[tuple[str, dict]]) -> None:
    problems = defaultdict(list)
    for text, state in sentences:
        for problem in meaning_problems(text, state):
            problems[problem].append(f"{state['finding']}: {text}")
    assert not problems, report(problems)


def test_every_value_of_every_finding_is_said_rightly() -> None:
    realiser = Realiser(ONTOLOGY)
    rng = random.Random(5)
    problems = defaultdict(list)
    for state in every_value():
        for modality in ONTOLOGY.findings[state["finding"]].modalities:
            speaker = realiser.speaker(state, modality)
            for text in {speaker.say(rng).text for _ in range(3)}:
                for problem in english_problems(text) + meaning_problems(text, state):
                    problems[problem].append(f"{state['finding']}: {text}")
    assert not problems, report(problems)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("There is an nodule.", "article"),
        ("There are a nodule.", "there are"),
        ("A left nodules is seen.", "nodules"),
        ("Three nodule are seen.", "nodule"),
        ("The nodules measures 8 mm.", "measures"),
        ("A left middle lobe nodule is seen.", "impossible"),
        ("A right upper lung lung nodule is seen.", "lung lung"),
        ("A nodule  is seen.", "space"),
        ("A nodule , new, is seen.", "space"),
        ("a nodule is seen.", "capital"),
        ("A nodule is seen", "full stop"),
        ("A {side} nodule is seen.", "slot"),
    ],
)
def test_the_check_finds_mistakes(text: str, what: str) -> None:
    assert any(what in problem for problem in english_problems(text)), english_problems(text)


def test_the_check_finds_wrong_statements() -> None:
    state = {"finding": "pulmonary_nodule", "presence": "present", "laterality": "left", "size_mm": 8.0}
    assert not meaning_problems("An 8 mm left pulmonary nodule is seen.", state)
    assert meaning_problems("An 8 mm right pulmonary nodule is seen.", state)
    assert meaning_problems("A 9 mm left pulmonary nodule is seen.", state)
    assert meaning_problems("A new 0.8 cm left pulmonary nodule is seen.", state)
    assert meaning_problems("An 8 mm left pleural effusion is seen.", state)


# --- the names in the ontology ---

#: Findings whose name holds a word of an axis because that is what they are.
INHERENT = {
    "ground_glass_opacity",
    "calcified_lymph_node",
    "hepatic_calcified_granuloma",
    "left_atrial_enlargement",
    "left_ventricular_enlargement",
    "right_ventricular_enlargement",
    "right_heart_enlargement",
    "right_aortic_arch",
    "aberrant_right_subclavian_artery",
    "lvad",
    "pulmonary_vascular_congestion",
    "diffuse_idiopathic_skeletal_hyperostosis",
}


def test_no_name_states_an_attribute() -> None:
    problems = []
    for tag, entry in ONTOLOGY.findings.items():
        if tag in INHERENT or not entry.axes:
            continue
        for term in [*entry.terms, *([entry.definition] if entry.definition else [])]:
            for axis in SAYS:
                if axis in ("zone", "lobe") or (axis == "density" and "calcif" in entry.name):
                    continue
                if said := stated(term.text, axis):
                    problems.append(f"{tag}: '{term.text}' states {axis} {sorted(said)}")
    assert not problems, "\n".join(problems)


def test_what_is_measured_is_counted_and_what_is_sided_takes_a_place() -> None:
    problems = []
    for tag, entry in ONTOLOGY.findings.items():
        for term in entry.terms:
            if "size" in entry.axes and term.number != "count":
                problems.append(f"{tag}: an 8 mm '{term.text}'?")
            if {"laterality", "location"} & set(entry.axes) and re.search(r" (?:of|in) ", term.text):
                problems.append(f"{tag}: '{term.text}' in the left …?")
            if "severity" in entry.axes and re.match(
                r"(?:enlarged|dilated|widened|thickened|elevated|raised|tortuous|atrophic|distended"
        r"|fractured|ectatic|prominent)\b",
                term.text,
            ):
                problems.append(f"{tag}: a mild '{term.text}'?")
    assert not problems, "\n".join(problems)


def test_summaries_devices_and_procedures_have_no_doubtful_axes() -> None:
    for tag, entry in ONTOLOGY.findings.items():
        if tag.endswith("_abnormality") and tag not in ("lordosis_abnormality",):
            assert not entry.axes, tag
        if entry.kind in ("device", "procedure"):
            assert not {"certainty", "severity", "temporal_change", "distribution"} & set(entry.axes), tag


def test_spiculation_is_said_of_what_can_be_spiculated() -> None:
    for tag, entry in ONTOLOGY.findings.items():
        if "margin" in entry.axes and "spiculated" in entry.levels_on("margin", ["smooth", "spiculated"]):
            assert entry.system in ("lung", "breast", "mediastinum"), tag
            assert "effusion" not in entry.name
            assert "thickening" not in entry.name


# --- variety ---


@pytest.mark.parametrize("modality", ["xr", "ct"])
def test_at_least_25_frames_a_modality(modality: str) -> None:
    frames = load_phrasings(ONTOLOGY).frames.values()
    assert sum(modality in frame.entry.modality and not frame.entry.negates for frame in frames) >= 25


def test_every_value_has_at_least_four_forms() -> None:
    """Counted over what is said: the words that two sentences of one value, frame and name differ in."""
    realiser = Realiser(ONTOLOGY)
    examples = {
        "severity": "pleural_effusion atelectasis hiatal_hernia",
        "density": "pulmonary_nodule",
        "margin": "pulmonary_nodule",
        "distribution": "atelectasis",
        "temporal_change": "pulmonary_nodule atelectasis",
        "certainty": "pulmonary_nodule atelectasis",
    }
    for axis, tags in examples.items():
        for tag in tags.split():
            for fields in values(ONTOLOGY, tag, axis, {}, random.Random(1)):
                state = {"finding": tag, "presence": "present", **dict(fields)}
                level = state[axis]
                speaker = realiser.speaker(state, "ct")
                forms = set()
                for number in range(400):
                    text = speaker.say(random.Random(number)).text
                    rest = NEUTRAL.sub(" ", NAMES[tag].sub("N", text, count=1))
                    for found in re.finditer(
                        rf"(\w+ )?(?<![\w-])(?:{SAYS[axis][level]})(?![\w-])( \w+)?", rest, re.I
                    ):
                        forms.add(found.group(0).lower())
                assert len(forms) >= 4, (axis, tag, level, forms)


def test_sizes_counts_and_places_are_said_in_all_the_ways_of_reports() -> None:
    realiser = Realiser(ONTOLOGY)

    def said(**fields: object) -> str:
        state = {"finding": "pulmonary_nodule", "presence": "present", **fields}
        speaker = realiser.speaker(state, "ct")
        return "\n".join(speaker.say(random.Random(number)).text for number in range(600))

    size = said(size_mm=8.0)
    for form in ("8 mm", "8-mm", "0.8 cm", "measuring 8 mm", "measures 8 mm"):
        assert form in size, form
    assert "1.2 x 0.8 cm" in said(size_mm=12.0, size_dims_mm=[12.0, 8.0])
    assert "measuring up to 8 mm" in said(size_mm=8.0, size_comparator="up_to")
    several = said(count=3)
    assert all(form in several for form in ("Three", "3 ", "three in number"))
    assert "olitary" in said(count_category="single")
    assert "everal" in said(count_category="multiple")
    left = said(laterality="left")
    assert all(form in left for form in ("left pulmonary", "left-sided", "on the left", "in the left lung"))
    lobe = said(laterality="left", lobe="lower")
    assert all(form in lobe for form in ("left lower lobe", "LLL"))


def test_values_give_room_to_both_hedges() -> None:
    realiser = Realiser(ONTOLOGY)
    for level, words in {"possible": "possible", "probable": "likely"}.items():
        state = {"finding": "pneumonia", "presence": "present", "certainty": level}
        texts = [realiser.speaker(state, "xr").say(random.Random(n)).text.lower() for n in range(300)]
        places = {
            text.find(words) < text.find("pneumonia")
            for text in texts
            if words in text and "pneumonia" in text
        }
        assert places == {True, False}, level


def test_axes_of_all_findings_are_reached() -> None:
    pairs = {
        (state["finding"], axis)
        for state in every_value()
        for axis in ONTOLOGY.findings[state["finding"]].axes
    }
    assert pairs == {(tag, axis) for tag, entry in ONTOLOGY.findings.items() for axis in entry.axes}
    assert len(list(itertools.islice(every_value(), 3000))) == 3000
