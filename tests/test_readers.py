"""Readers: hand-made files of every format, encodings, and what is broken or hostile in them."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radgen.errors import RadgenError
from radgen.extract.documents import parse_openi
from radgen.extract.readers import REPORT_COLUMNS, Reject, Report, choose_columns, guess_format, open_reports
from radgen.extract.reports import convert

SHARED = Path(__file__).resolve().parents[2] / "shared"
F, I = "The lungs are clear.", "No acute disease."  # noqa: E741
EMPTY = dict.fromkeys(REPORT_COLUMNS)


def read(path: Path, **asked: str) -> tuple[list[dict[str, Any]], list[tuple[int | None, str]]]:
    """Return the reports, and (line, reason) of the rejects."""
    reports, rejects = [], []
    for item in open_reports(path, asked):
        if isinstance(item, Report):
            reports.append(item.data)
        else:
            rejects.append((item.line, item.reason))
    return reports, rejects


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def report(
    identifier: str, findings: str | None = F, impression: str | None = I, **more: Any
) -> dict[str, Any]:
    return EMPTY | {"id": identifier, "findings": findings, "impression": impression} | more


# --------------------------------------------------------------------------------------- JSONL


def test_jsonl_rows_and_rejects(tmp_path: Path) -> None:
    rows = [
        json.dumps({"id": "a", "findings": F, "impression": I}),
        "",
        "{broken",
        json.dumps(["a", "list"]),
        json.dumps({"id": 7, "findings": [F, I], "impression": None, "extra": {"x": 1}}),
        json.dumps({"id": "c", "findings": 5}),
        json.dumps({"id": "d", "findings": "  ", "impression": "nan"}),
        '{"id": NaN, "findings": "Clear.", "impression": NaN}',
        '{"id": "e", "findings": "\\ud800"}',
        json.dumps({"id": "f", "impression": I, "abnormalities": ["x", "y"], "prominence": [0.5, 1]}),
    ]
    reports, rejects = read(write(tmp_path / "r.jsonl", "\n".join(rows)))
    assert reports == [
        report("a"),
        report("7", f"{F}\n{I}", None),
        report("r-8", "Clear.", None),
        report("f", None, I, abnormalities=["x", "y"], prominence=[0.5, 1.0]),
    ]
    assert rejects == [
        (3, "not valid JSON"),
        (4, "expected a JSON object, found a list"),
        (6, "findings: expected text, found a number"),
        (7, "neither findings nor impression has text"),
        (9, "not valid JSON"),
    ]
    assert all(list(row) == list(REPORT_COLUMNS) for row in reports)


@pytest.mark.parametrize("name", ["r.jsonl", "r.jsonl.gz", "r.ndjson"])
def test_jsonl_text_column_bom_and_gz(tmp_path: Path, name: str) -> None:
    row = {"study_id": "s1", "report": f"FINDINGS: {F}\nIMPRESSION: {I}"}
    raw = b"\xef\xbb\xbf" + json.dumps(row).encode()
    path = write(tmp_path / name, gzip.compress(raw) if name.endswith(".gz") else raw)
    assert read(path) == ([report("s1")], [])


def test_output_read_again_is_the_same(tmp_path: Path) -> None:
    truth = [{"finding": "pleural_effusion", "presence": "present"}]
    row = report("a", abnormalities=["x"], prominence=[1.0], truth=truth)
    first = write(tmp_path / "a.jsonl", json.dumps(row) + "\n")
    convert(first, tmp_path / "b.jsonl")
    convert(tmp_path / "b.jsonl", tmp_path / "c.jsonl")
    assert json.loads((tmp_path / "b.jsonl").read_text()) == row
    assert (tmp_path / "b.jsonl").read_bytes() == (tmp_path / "c.jsonl").read_bytes()


def test_line_over_the_limit_is_skipped_and_the_next_is_read(tmp_path: Path) -> None:
    good = json.dumps({"id": "a", "findings": F}).encode()
    long = b"x" * (17 << 20)
    path = write(tmp_path / "r.jsonl", b"\n".join([good, long, good.replace(b'"a"', b'"b"')]))
    reports, rejects = read(path)
    assert [row["id"] for row in reports] == ["a", "b"]
    assert rejects == [(2, "the line is longer than 16777216 bytes")]


# ----------------------------------------------------------------------------------------- CSV


def test_csv_quotes_and_lines_within_fields(tmp_path: Path) -> None:
    text = 'Report ID,Findings,IMPRESSION\n1,"Clear, both\nlungs.","A ""small"" nodule."\n\n2,5" node,\n'
    assert read(write(tmp_path / "r.csv", text)) == (
        [report("1", "Clear, both\nlungs.", 'A "small" nodule.'), report("2", '5" node', None)],
        [],
    )


@pytest.mark.parametrize(("name", "mark"), [("r.csv", ","), ("r.csv", ";"), ("r.csv", "|"), ("r.tsv", "\t")])
def test_csv_delimiters(tmp_path: Path, name: str, mark: str) -> None:
    text = f"id{mark}findings{mark}impression\r\na{mark}{F}{mark}{I}\r\n"
    assert read(write(tmp_path / name, "\ufeff" + text)) == ([report("a")], [])


def test_broken_csv_rows_cost_only_themselves(tmp_path: Path) -> None:
    lines = ["id,findings", "a,One.", 'b,"open', "c,Three.", "d,Four.,extra", "e", "f,Six.", 'g,"Seven."']
    reports, rejects = read(write(tmp_path / "r.csv", "\n".join(lines)))
    assert [row["id"] for row in reports] == ["a", "c", "f", "g"]
    assert rejects == [
        (3, "the quotes of the record do not match"),
        (5, "expected 2 columns, found 3"),
        (6, "expected 2 columns, found 1"),
    ]


WRITTEN = st.text(st.sampled_from("ab 1.,;|\"'\n\té"), min_size=1, max_size=40).map(str.strip).filter(
    lambda text: text and not text.lower().startswith(("na", "nan"))
)


@given(st.lists(WRITTEN, min_size=1, max_size=8), st.sampled_from(",;\t|"))
def test_what_a_csv_library_writes_is_read_back(tmp_path_factory: Any, texts: list[str], mark: str) -> None:
    path = tmp_path_factory.getbasetemp() / "written.csv"
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, delimiter=mark)
        writer.writerow(["id", "findings"])
        writer.writerows([number, text] for number, text in enumerate(texts))
    reports, rejects = read(path)
    assert rejects == []
    assert [row["findings"] for row in reports] == texts


def test_unclosed_quote_in_a_long_file(tmp_path: Path) -> None:
    lines = ["id,findings", 'x,"open', *(f"{n},Clear {n}." for n in range(20_000))]
    reports, rejects = read(write(tmp_path / "r.csv", "\n".join(lines)))
    assert len(reports) == 20_000
    assert reports[-1] == report("19999", "Clear 19999.", None)
    assert rejects == [(2, "the quotes of the record do not match")]


def test_csv_of_labels(tmp_path: Path) -> None:
    text = (
        "uid,MeSH,findings,impression\n"
        f"1,Opacity/lung/base/left;Nodule,{F},{I}\n"
        f"2,\"['a', 'b']\",{F},{I}\n"
        f'3,"[""a""]",{F},{I}\n'
        f"4,,{F},{I}\n"
        f"5,[1; 2,{F},{I}\n"
    )
    reports, rejects = read(write(tmp_path / "r.csv", text))
    labels = [row["abnormalities"] for row in reports]
    assert labels == [["Opacity/lung/base/left", "Nodule"], ["a", "b"], ["a"], None]
    assert rejects == [(6, "abnormalities: not a readable list")]


@pytest.mark.parametrize(
    ("labels", "weights", "expected"),
    [
        ("a;b", "0.2;1", (["a", "b"], [0.2, 1.0])),
        ("a", 1, (["a"], [1.0])),
        (None, {"a": 0.2, "b": 1}, (["a", "b"], [0.2, 1.0])),
        (["b", "a"], '{"a": 0.2, "b": 1}', (["b", "a"], [1.0, 0.2])),
        ({"a": 1, "b": 0, "c": True}, None, (["a", "c"], None)),
        ([], [], ([], [])),
        (["a"], [0.1, 0.2], "prominence: 2 numbers for 1 abnormalities"),
        (["a"], {"b": 1}, "prominence: its names are not those of the abnormalities"),
        (["a"], ["high"], "prominence: expected a list of numbers"),
        (["a"], [-1], "prominence: expected numbers of at least 0"),
        (["a"], "1e999", "prominence: expected numbers of at least 0"),
        ([1], None, "abnormalities: expected a list of names"),
    ],
)
def test_prominence(tmp_path: Path, labels: Any, weights: Any, expected: Any) -> None:
    row = {"id": "a", "findings": F, "abnormalities": labels, "prominence": weights}
    reports, rejects = read(write(tmp_path / "r.jsonl", json.dumps(row)))
    if isinstance(expected, str):
        assert (reports, rejects) == ([], [(1, expected)])
    else:
        assert (reports[0]["abnormalities"], reports[0]["prominence"]) == expected


# ------------------------------------------------------------------------------------- columns


def test_named_and_guessed_columns() -> None:
    path = Path("x.csv")
    guessed = choose_columns(["VolumeName", "Findings_EN", "Impressions_EN", "Technique_EN"], {}, path)
    assert guessed == {"id": "VolumeName", "findings": "Findings_EN", "impression": "Impressions_EN"}
    named = choose_columns(["Nr", "Befund", "Urteil"], {"id": "Nr", "findings": "Befund"}, path)
    assert named == {"id": "Nr", "findings": "Befund"}
    # a column that the user gave one role is not guessed for another
    assert choose_columns(["report"], {"impression": "report"}, path) == {"impression": "report"}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"findings": "fndings"}, "x.csv: unknown column for --findings 'fndings'; did you mean 'findings'?"),
        ({"id": "zzz"}, "x.csv: unknown column for --id 'zzz'; known: findings, number"),
    ],
)
def test_wrong_column_names(asked: dict[str, str], said: str) -> None:
    with pytest.raises(RadgenError) as error:
        choose_columns(["findings", "number"], asked, Path("x.csv"))
    assert str(error.value) == said


def test_no_column_with_text() -> None:
    said = r"no column looks like findings, impression or text \(found 'a', 'b'\)"
    with pytest.raises(RadgenError, match=said):
        choose_columns(["a", "b"], {}, Path("x.csv"))


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("r.csv", "", "expected a line with the names of the columns"),
        ("r.csv", "id,findings,id\n", "column 'id' stands twice"),
        ("r.jsonl", '[{"id": 1}]', "no line is a JSON object"),
        ("r.jsonl", b"\xff\xfe{\x00", "the file is UTF-16; save it as UTF-8"),
        # mtime=0: the bytes are the test's name, which must be the same in every worker.
        ("r.jsonl.gz", gzip.compress(b"{}\n" * 1000, mtime=0)[:20], "the compressed file is damaged"),
        ("r.jsonl.gz", b"plain", "the compressed file is damaged"),
        ("r.parquet", b"PAR1 no", "not a Parquet file, or damaged"),
        ("r.tgz", b"nothing", "no tar archive, or damaged"),
        ("r.docx", b"x", "unknown kind of file"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, name: str, content: str | bytes, said: str) -> None:
    with pytest.raises(RadgenError) as error:
        read(write(tmp_path / name, content))
    assert said in str(error.value)
    assert str(error.value).startswith(str(tmp_path / name))
    assert "\n" not in str(error.value)


def test_missing_file_has_a_hint(tmp_path: Path) -> None:
    write(tmp_path / "reports.csv", "id\n")
    with pytest.raises(RadgenError, match=r"no such file or folder; did you mean 'reports\.csv'\?"):
        guess_format(tmp_path / "report.csv")


# ----------------------------------------------------------------------------------- encodings


@pytest.mark.parametrize(
    ("raw", "latin1"),
    [
        ("3 × 4 mm, façade – 20°".encode(), 0),
        (b"\xef\xbb\xbf" + "3 × 4 mm, façade – 20°".encode(), 0),
        ("3 × 4 mm, façade – 20°".encode("cp1252"), 1),
    ],
)
@pytest.mark.parametrize("kind", ["txt", "csv", "jsonl"])
def test_encodings(tmp_path: Path, raw: bytes, latin1: int, kind: str) -> None:
    bom = b"\xef\xbb\xbf" if raw.startswith(b"\xef\xbb\xbf") else b""
    text = raw.removeprefix(bom)
    if kind == "csv":
        raw = bom + b'id,findings\na,"' + text + b'"\n'
    elif kind == "jsonl":
        raw = bom + b'{"id": "a", "findings": "' + text + b'"}\n'
    source = open_reports(write(tmp_path / f"a.{kind}", raw))
    (item,) = list(source)
    assert isinstance(item, Report)
    assert item.data == report("a", "3 × 4 mm, façade – 20°", None)
    assert source.latin1 == latin1


def test_control_characters_and_line_ends(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"One.\r\nTwo.\rThree\x0bfour\x07.\n")
    assert read(path)[0] == [report("a", "One.\nTwo.\nThree\nfour .", None)]


# ------------------------------------------------------------------------------------- Parquet


def test_parquet(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "accession": ["a", "b", None],
            "findings": [F, None, "Clear."],
            "impression": [I, None, None],
            "labels": [["x"], [], None],
        }
    )
    pq.write_table(table, tmp_path / "r.parquet", row_group_size=2)
    reports, rejects = read(tmp_path / "r.parquet")
    assert reports == [report("a", abnormalities=["x"]), report("r-3", "Clear.", None)]
    assert rejects == [(2, "neither findings nor impression has text")]


def test_parquet_without_pyarrow_says_what_to_install(tmp_path: Path) -> None:
    path = write(tmp_path / "r.parquet", b"PAR1")
    code = (
        "import sys\nsys.modules['pyarrow'] = None\nfrom radgen.cli import main\n"
        f"sys.argv = ['radgen', 'reports', {str(path)!r}, '--out', {str(tmp_path / 'o.jsonl')!r}]\nmain()\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "needs pyarrow, which is not installed: pip install 'radgen[parquet]'" in result.stderr


# ----------------------------------------------------------------------------- text files, XML


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "p1").mkdir()
    write(tmp_path / "p1" / "s2.txt", f"FINDINGS: {F}\nIMPRESSION: {I}")
    write(tmp_path / "p1" / "s1.TXT", F)
    write(tmp_path / "b.txt", "")
    write(tmp_path / "c.txt", "binary\0".encode("utf-16"))
    write(tmp_path / "readme.md", "no report")
    write(tmp_path / ".hidden.txt", "no report")
    os.symlink("/etc/hostname", tmp_path / "link.txt")
    source = open_reports(tmp_path)
    items = list(source)
    reports = [item.data for item in items if isinstance(item, Report)]
    assert reports == [report("p1/s1", F, None), report("p1/s2")]
    assert [(item.file, item.reason) for item in items if isinstance(item, Reject)] == [
        ("b.txt", "neither findings nor impression has text"),
        ("c.txt", "not a text file (UTF-16, or binary)"),
    ]
    assert source.skipped == 2


def test_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(RadgenError, match=r"no report in this folder; expected files that end in \.txt"):
        read(tmp_path)


XML = (
    '<?xml version="1.0" encoding="utf-8"?><eCitation><uId id="X1"/><Abstract>'
    '<AbstractText Label="INDICATION">Cough</AbstractText>'
    '<AbstractText Label="FINDINGS">The lungs\n  are <i>clear</i>.</AbstractText>'
    '<AbstractText Label="IMPRESSION">A &lt; B &amp; C.</AbstractText></Abstract>'
    "<MeSH><major>Nodule/lung/left</major><automatic>nodule</automatic></MeSH></eCitation>"
)


def test_openi_record() -> None:
    assert parse_openi(XML.encode()) == {
        "id": "X1",
        "findings": "The lungs are clear.",
        "impression": "A < B & C.",
        "abnormalities": ["Nodule/lung/left"],
    }
    normal = XML.replace("Nodule/lung/left", "normal")
    assert parse_openi(normal.encode())["abnormalities"] == []
    assert parse_openi(XML.replace("Nodule/lung/left", "No Indexing").encode())["abnormalities"] is None
    latin = XML.replace("utf-8", "iso-8859-1").replace("Cough", "é").replace("clear", "cléar")
    assert parse_openi(latin.encode("latin-1"))["findings"] == "The lungs are cléar."


BOMB = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    '<eCitation><AbstractText Label="FINDINGS">&b;</AbstractText></eCitation>'
)
FETCH = (
    '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/hostname">]>'
    '<eCitation><AbstractText Label="FINDINGS">&a;</AbstractText></eCitation>'
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (BOMB, "XML with a DOCTYPE is refused"),
        (FETCH, "XML with a DOCTYPE is refused"),
        ('<!DOCTYPE html SYSTEM "http://127.0.0.1/x.dtd"><html/>', "XML with a DOCTYPE is refused"),
        ("<eCitation><AbstractText", "not valid XML"),
        ("", "not valid XML"),
        ("<a>&undefined;</a>", "not valid XML"),
        ('<?xml version="1.0" encoding="no-such"?><a/>', "not valid XML"),
        ("<note>hello</note>", "XML, but no Open-I report"),
    ],
)
def test_hostile_or_broken_xml(text: str, said: str) -> None:
    with pytest.raises(RadgenError) as error:
        parse_openi(text.encode())
    assert str(error.value) == said


# ------------------------------------------------------------------------------------- archive


def archive(path: Path, members: list[tuple[str, bytes | str]], mode: str = "w:gz") -> Path:
    """Make an archive; a member whose content is text is a symbolic link to it."""
    with tarfile.open(path, mode) as tar:  # type: ignore[call-overload]
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    return path


@pytest.mark.parametrize(("name", "mode"), [("r.tgz", "w:gz"), ("r.tar.gz", "w:gz"), ("r.tar", "w:")])
def test_archive(tmp_path: Path, name: str, mode: str) -> None:
    members: list[tuple[str, bytes | str]] = [
        ("d/1.xml", XML.encode()),
        ("d/2.txt", f"FINDINGS: {F}".encode()),
        ("d/picture.png", b"\x89PNG"),
        ("../outside.txt", b"x"),
        ("/absolute.txt", b"x"),
        ("d/../../up.xml", XML.encode()),
        ("C:/windows.txt", b"x"),
        ("link.txt", "/etc/hostname"),
        ("bomb.xml", BOMB.encode()),
        ("large.txt", b"a" * ((4 << 20) + 1)),
        ("d/3.txt", b"Last."),
    ]
    source = open_reports(archive(tmp_path / name, members, mode))
    items = list(source)
    reports = [item.data for item in items if isinstance(item, Report)]
    assert [(row["id"], row["findings"]) for row in reports] == [
        ("X1", "The lungs are clear."),
        ("d/2", F),
        ("d/3", "Last."),
    ]
    outside = "its name leads outside the archive"
    assert [(item.file, item.reason) for item in items if isinstance(item, Reject)] == [
        ("../outside.txt", outside),
        ("/absolute.txt", outside),
        ("d/../../up.xml", outside),
        ("C:/windows.txt", outside),
        ("link.txt", "a link or device, not a file"),
        ("bomb.xml", "XML with a DOCTYPE is refused"),
        ("large.txt", "the file is longer than 4194304 bytes"),
    ]
    assert source.skipped == 1
    assert sorted(os.listdir(tmp_path)) == [name]


def test_archive_that_ends_early(tmp_path: Path) -> None:
    texts = [(f"{n}.txt", os.urandom(2000).hex().encode()) for n in range(50)]
    path = archive(tmp_path / "r.tgz", list(texts))
    write(path, path.read_bytes()[:40_000])
    with pytest.raises(RadgenError, match="no tar archive, or damaged after"):
        list(open_reports(path))


def test_archive_with_a_giant_header(tmp_path: Path) -> None:
    """A member header that claims 64 MiB of attributes must not be read into memory."""
    path = tmp_path / "r.tar"
    info = tarfile.TarInfo("header")
    info.type, info.size = tarfile.XHDTYPE, 64 << 20
    with path.open("wb") as handle:
        handle.write(info.tobuf())
        handle.truncate(64 << 20)
    with pytest.raises(RadgenError, match="a header in the archive is larger than any real one"):
        list(open_reports(path))


def test_archive_without_reports(tmp_path: Path) -> None:
    with pytest.raises(RadgenError, match="no report in this archive"):
        list(open_reports(archive(tmp_path / "r.tgz", [("a.png", b"x")])))


# ------------------------------------------------------------------------------- any bytes, size


@given(st.binary(max_size=400), st.sampled_from(["jsonl", "csv", "txt", "xml"]))
def test_any_bytes_give_reports_rejects_or_one_line(tmp_path_factory: Any, raw: bytes, kind: str) -> None:
    path = tmp_path_factory.getbasetemp() / f"any.{kind}"
    path.write_bytes({"csv": b"id,findings\n", "jsonl": b'{"findings": "x"}\n'}.get(kind, b"") + raw)
    try:
        items = list(open_reports(path))
    except RadgenError:
        return
    for item in items:
        if isinstance(item, Report):
            assert list(item.data) == list(REPORT_COLUMNS)
            json.dumps(item.data, allow_nan=False).encode()
        else:
            assert item.reason


MEMORY = """
import resource, sys
from pathlib import Path
from radgen.extract.reports import convert
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
convert(Path(sys.argv[1]), Path(sys.argv[2]))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)
"""


@pytest.mark.parametrize("kind", ["jsonl", "csv", "tgz"])
def test_memory_stays_flat(tmp_path: Path, kind: str) -> None:
    """30,000 rows may take at most 8 MB more than 3,000 do (kept, they would take 28 MB more)."""
    grown = []
    for count in (3_000, 30_000):
        path = tmp_path / f"{count}.{kind}"
        text = "There is a nodule in the right upper lobe. " * 24
        if kind == "tgz":
            with tarfile.open(path, "w:gz", compresslevel=1) as tar:
                for n in range(count // 3):
                    info = tarfile.TarInfo(f"{n}.txt")
                    info.size = len(text)
                    tar.addfile(info, io.BytesIO(text.encode()))
        else:
            with path.open("w") as handle:
                handle.write("id,findings\n" if kind == "csv" else "")
                for n in range(count):
                    row = f"{n},{text}\n" if kind == "csv" else json.dumps({"id": n, "findings": text}) + "\n"
                    handle.write(row)
        command = [sys.executable, "-c", MEMORY, str(path), str(tmp_path / f"{count}.out.jsonl")]
        grown.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    assert grown[1] - grown[0] < 8_000, grown


# ----------------------------------------------------------------------- the real Open-I archive


@pytest.mark.skipif(not (SHARED / "data").is_dir(), reason="the Open-I archive is not here")
def test_openi_archive_against_an_xml_library() -> None:
    import xml.etree.ElementTree as ET

    from radgen.extract.sections import findings_and_impression

    path = SHARED / "data" / "openi" / "NLMCXR_reports.tgz"
    expected: dict[str, tuple[str | None, str | None]] = {}
    with tarfile.open(path) as tar:
        for member in tar:
            if member.isfile():
                root = ET.fromstring(tar.extractfile(member).read())  # type: ignore[union-attr]
                parts = {
                    part.get("Label"): " ".join((part.text or "").split()) or None
                    for part in root.iter("AbstractText")
                }
                identifier = root.find("uId").get("id")  # type: ignore[union-attr]
                expected[str(identifier)] = (parts["FINDINGS"], parts["IMPRESSION"])
    items = list(open_reports(path))
    got = {item.data["id"]: item.data for item in items if isinstance(item, Report)}
    assert len(items) == 3955
    assert sum(1 for row in got.values() if row["findings"] and row["impression"]) == 3419
    wrong = [
        identifier
        for identifier, (findings, impression) in expected.items()
        if (findings or impression)
        and (got[identifier]["findings"], got[identifier]["impression"]) != (findings, impression)
    ]
    assert wrong == []
    # The same reports as one text, with headings, come apart again (one holds a second report).
    pairs = {name: both for name, both in expected.items() if all(both) and "FINDINGS:" not in "".join(both)}
    assert len(pairs) == 3418
    forms = ("FINDINGS: {}\nIMPRESSION: {}", "FINDINGS: {} IMPRESSION: {}", "Findings\n{}\nImpression\n{}")
    for form in forms:
        lost = [name for name, both in pairs.items() if findings_and_impression(form.format(*both)) != both]
        assert lost == [], form
