"""Kinds of bad input, made from tables: arguments, files, schemas, models, outputs."""

import copy
import gzip
import hashlib
import io
import itertools
import json
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

LONG = "x" * 300
MAY_PASS = ("blank lines between", "carriage returns", "a name with a space")


@dataclass(frozen=True)
class Kind:
    "One kind of input."

    group: str  # such as "schema"
    name: str  # what is wrong
    words: list[str]  # of the command line
    files: dict[str, Any] = field(default_factory=dict)  # name -> bytes to write first
    fine: bool = False  # it looks wrong, but is not: the command may also succeed


# ---------------------------------------------------------------- a table that is right
def good_table() -> pd.DataFrame:
    "A small table with a column of each sort."
    rng = np.random.default_rng(0)
    n = 200
    days = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "pay": rng.lognormal(3, 1, n).round(2),
            "town": rng.choice(["Ulm", "Bern", "Zürich"], n),
            "grade": rng.integers(1, 4, n),
            "owner": rng.random(n) < 0.5,
            "day": days.strftime("%Y-%m-%d"),
        }
    )


GOOD_SCHEMA: dict[str, Any] = {
    "version": 1,
    "columns": [
        dict(kind="numeric", name="age", low=0, high=110, bins=11, integer=True),
        dict(kind="numeric", name="pay", low=0.0, high=500.0, bins=10, decimals=2),
        dict(kind="categorical", name="town", levels=["Ulm", "Bern", "Zürich"]),
        dict(kind="ordinal", name="grade", levels=[1, 2, 3]),
        dict(kind="boolean", name="owner"),
        dict(
            kind="datetime",
            name="day",
            low="2020-01-01",
            high="2023-01-01",
            bins=6,
            dtype="datetime64[D]",
        ),
    ],
}


def prepare(folder: Path) -> None:
    "Write what all commands start from: a table, a schema, a model, a ledger."
    from privpgd.app.cli import main

    good_table().to_csv(folder / "good.csv", index=False)
    good_table().to_parquet(folder / "good.parquet")
    (folder / "good.json").write_text(json.dumps(GOOD_SCHEMA))
    for words in (
        "synth good.csv --schema good.json -o copy.csv --save good.privpgd "
        "--particles 50 --epochs 0 --quiet",
        "account good.ledger --open --epsilon 1 --delta 1e-6",
    ):
        assert main(words.split()) == 0, words
    (folder / "file").write_text("no folder")
    (folder / "folder").mkdir()
    for a, b in ("xy", "yx"):
        (folder / f"loop{a}").symlink_to(folder / f"loop{b}")


SYNTH = [
    "synth",
    "good.csv",
    "--schema",
    "good.json",
    "-o",
    "out.csv",
    "--particles",
    "50",
    "--epochs",
    "0",
]
PLAN = ["plan", "--rows", "200", "--schema", "good.json"]


# ---------------------------------------------------------------------------- arguments
NOT_NUMBERS = ("", "abc", "1,5", "0x10", "1e", "--", "None", "[]", "½", "1 2", "NaN%")
NOT_POSITIVE = ("-1", "0", "nan", "inf", "-inf", "1e400", "-0.0")
NOT_WHOLE = ("1.5", "1e9999", "99999999999999999999999", "-3", "10" * 40)
OPTIONS: dict[str, tuple[list[str], tuple[str, ...]]] = {
    "--epsilon": (SYNTH, NOT_NUMBERS + NOT_POSITIVE + ("1e-320",)),
    "--delta": (SYNTH, NOT_NUMBERS + ("-1", "1", "2", "nan", "inf", "1e400")),
    "--particles": (SYNTH[:6], NOT_NUMBERS + NOT_WHOLE + ("0", "nan", "10" * 9)),
    "--epochs": (SYNTH[:6], NOT_NUMBERS + ("1.5", "1e9", "-3", "nan")),
    "--rows": (SYNTH, NOT_NUMBERS + ("0", "-1", "1.5", "inf", "nan", "1e400")),
    "--seed": (SYNTH, NOT_NUMBERS + ("-1", "1.5", "nan")),
    "--select": (
        SYNTH,
        ("", "abc", "0", "7", "99", "-1", "age:nobody", "age:", ":", ",", "age:age")
        + ("age", "1.5", "9" * 30, "mst,aim", "age;pay", "[('age',)]"),
    ),
    "--neighbors": (SYNTH, ("", "abc", "add", "REPLACE", "add_remove")),
    "--preset": (SYNTH, ("", "abc", "Paper", "1")),
    "--person": (SYNTH, ("", "nobody", "age", "a,b", LONG)),
    "--max-rows": ([*SYNTH, "--person", "age"], NOT_NUMBERS + ("0", "-1", "1.5")),
    "--schema": (SYNTH[:2] + SYNTH[4:], ("", "no.json", "folder", "good.csv", LONG)),
    "--ledger": (SYNTH, ("", "no.ledger", "folder", "good.csv", LONG, "loopx")),
    "--report": (SYNTH, ("", "-", "folder", "no/r.html", LONG, "good.json", "loopx")),
    "--save": (SYNTH, ("", "-", "folder", "no/m", LONG, "good.csv", "file/m")),
    "--diagnostics": (SYNTH, ("", "-", "folder", "no/d.json", LONG, "good.csv")),
    "-o": (
        SYNTH[:4],
        ("", "folder", "no/x.csv", LONG + ".csv", "good.csv", "x.xlsx", "x", "x.json")
        + ("file/x.csv", "loopx", "loopx/x.csv", "x" * 250 + ".parquet", "x.csv/"),
    ),
    "--unit": (SYNTH, ()),
}
MORE_OPTIONS: list[tuple[list[str], str, tuple[str, ...]]] = [
    (PLAN, "--epsilon", NOT_POSITIVE + NOT_NUMBERS),
    (PLAN, "--delta", ("-1", "1", "2", "nan", "x")),
    (PLAN, "--particles", ("0", "-1", "1.5", "x", "1e5")),
    (PLAN, "--public", ("", "no.csv", "folder", "good.json", "loopx")),
    (PLAN, "--select", ("abc", "0", "-2", "age:x", "7")),
    (["plan", "--schema", "good.json"], "--rows", NOT_NUMBERS + ("0", "-1", "inf")),
    (
        ["schema", "good.csv", "-o", "d.json"],
        "--bins",
        NOT_NUMBERS + NOT_WHOLE + ("0",),
    ),
    (["schema", "good.csv", "-o", "d.json"], "--levels", NOT_NUMBERS + ("0", "-1")),
    (["schema", "good.csv", "-o", "d.json"], "--drop", ("x", "age,x", ",;", LONG)),
    (["schema", "good.csv", "-o", "d.json"], "--declare", ("x", "age,x", LONG)),
    (["schema", "good.csv"], "-o", ("", "folder", "no/d.json", LONG, "good.csv")),
    (["sample", "good.privpgd"], "-o", ("", "folder", "no/x.csv", LONG, "x", "loopx")),
    (["sample", "good.privpgd", "-o", "x.csv"], "-n", NOT_NUMBERS + ("0", "-1", "inf")),
    (["sample", "good.privpgd", "-o", "x.csv"], "--seed", ("-1", "x", "1.5", "")),
    (["report", "good.privpgd"], "-o", ("", "folder", "no/r.html", LONG, "loopx")),
    (["report", "good.privpgd", "-o", "r.html"], "--real", ("no", "folder", "file")),
    (["report", "good.privpgd", "-o", "r.html"], "--target", ("age", "x")),
    (["report", "good.privpgd", "-o", "r.html"], "--test", ("good.csv", "no.csv")),
    (
        [
            "evaluate",
            "good.csv",
            "good.csv",
            "--schema",
            "good.json",
            "--test",
            "good.csv",
        ],
        "--target",
        ("nobody", "", "age,pay"),
    ),
    (
        ["evaluate", "good.csv", "good.csv", "--schema", "good.json"],
        "--seed",
        ("x", "-1"),
    ),
    (["account", "good.ledger", "--open"], "--epsilon", NOT_POSITIVE + NOT_NUMBERS),
    (["account", "new.ledger", "--open"], "--delta", ("1", "2", "-1", "nan", "x")),
    (["demo", "--quiet"], "-o", ("", "file", "file/x", LONG, "loopx")),
    (["demo", "--quiet", "-o", "d"], "--epsilon", NOT_POSITIVE + ("x",)),
    (["demo", "--quiet", "-o", "d"], "--delta", ("1", "2", "-1", "x")),
]
BENCH = {
    "--datasets": "toy_moons",
    "--methods": "independent",
    "--epsilons": "1",
    "--seeds": "1",
    "--out": "results",
    "--delta": "1e-5",
    "--jobs": "1",
}
BENCH_VALUES = {
    "--datasets": ("", "nobody", "a,b", ","),
    "--methods": ("", "magic", "gsd+", "+", "privpgd+x", ","),
    "--epsilons": ("", "0", "-1", "x", "nan", "inf", "1,,x", ","),
    "--seeds": ("0", "-1", "x", "1.5", ""),
    "--out": ("file", "file/x", LONG, "loopx"),
    "--delta": ("0.0x", "1", "2", "-1", "nan", "inf"),
    "--jobs": ("0", "x", "1.5", ""),
}


def argument_kinds() -> Iterator[Kind]:
    "Every option with values that it cannot have."
    named = [(base, option, values) for option, (base, values) in OPTIONS.items()]
    for base, option, values in [*named, *MORE_OPTIONS]:
        for value in values:
            extra = [] if option in base or base[0] != "synth" else []
            if base[0] == "synth" and "-o" not in base and option != "-o":
                extra = ["-o", "out.csv"]
            words = [*base, *extra, option, value]
            yield Kind("arguments", f"{base[0]} {option} {value[:30]!r}", words)
    for option, values in BENCH_VALUES.items():
        for value in values:
            chosen = {**BENCH, option: value}
            words = ["bench", *itertools.chain(*chosen.items()), "--quiet"]
            yield Kind("arguments", f"bench {option} {value[:30]!r}", words)
    for words in (
        ["dance"],
        ["synth"],
        ["synth", "good.csv"],
        ["plan"],
        ["plan", "--rows", "5"],
        ["plan", "good.csv", "--rows", "5", "--schema", "good.json"],
        ["plan", "good.csv", "--schema", "good.json", "--neighbors", "add-remove"],
        ["schema"],
        ["sample"],
        ["sample", "good.privpgd"],
        ["report"],
        ["evaluate"],
        ["evaluate", "good.csv"],
        ["evaluate", "good.csv", "good.csv"],
        ["account"],
        ["account", "no.ledger"],
        ["account", "folder"],
        ["account", "good.csv"],
        ["account", "good.ledger", "--name", "other"],
        ["bench"],
        ["synth", "--wrong"],
        [*SYNTH, "--json", "-o", "-"],
        [*SYNTH, "--max-rows", "3"],
        ["--wrong"],
        ["synth", "good.csv", "good.csv", "--schema", "good.json", "-o", "x.csv"],
    ):
        yield Kind("arguments", "words: " + " ".join(words)[:60], words)


# ------------------------------------------------------------------------------- tables
def csv_text(frame: pd.DataFrame | None = None, **options: Any) -> str:
    "A table as CSV."
    return (good_table() if frame is None else frame).to_csv(index=False, **options)


def parquet_bytes(table: Any) -> bytes:
    "A table as Parquet."
    if isinstance(table, pd.DataFrame):
        table = pa.Table.from_pandas(table, preserve_index=False)
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def zip_bytes(**members: bytes) -> bytes:
    "A zip file."
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return sink.getvalue()


def with_cell(column: str, text: str, row: int = 7) -> bytes:
    "The good table with one other value."
    frame = good_table().astype(object)
    frame.loc[row, column] = text
    return csv_text(frame).encode()


STRANGE_CELLS = {
    "age": ("old", "1,5", "1e999", "--", "0x1F", "9" * 400, "1 2", "Ulm", "½", "12:30")
    + ("a" * 5000, "=1+1", "1\u00a0000", "\x00", "'; DROP", "<script>"),
    "pay": ("$5", "5 EUR", "1.2.3", "nan?", "inf", "-inf", "1e400", "٣", "1_000"),
    "town": ("Paris", "ulm", " Ulm", "Ulm ", "\u200bUlm", "x" * 100_000, "\ud7ff", "7"),
    "grade": ("4", "0", "-1", "1.5", "A", "9" * 30, "1e1", "x"),
    "owner": ("maybe", "2", "-1", "yes?", "0.5", "x"),
    "day": ("0000-01-01", "2020-13-01", "2020-02-30", "99999-01-01", "yesterday")
    + ("-1", "2020-01-01T25:00", "1/2/3", "20200101", "2020-W01", "1e9", "9" * 20),
}


def table_contents() -> Iterator[tuple[str, bytes, bool]]:
    "Name, content, and whether the content may be fine, of tables as files."
    text = csv_text()
    raw = text.encode()
    head, _, body = text.partition("\n")
    rows = body.splitlines(keepends=True)
    yield "nothing", b"", False
    for name, content in {
        "a newline": "\n",
        "many newlines": "\n" * 1000,
        "commas": ",,,,,\n",
        "only names": head + "\n",
        "only names, no newline": head,
        "no names": body,
        "a lone quote": '"',
        "an unclosed quote": head + '\n"' + body,
        "an unclosed quote in names": '"' + text,
        "a name twice": text.replace("pay", "age", 1),
        "a name missing": text.replace("pay", "", 1),
        "a name with a space": text.replace("pay", " pay", 1),
        "a name in capitals": text.replace("pay", "PAY", 1),
        "another delimiter inside": text.replace(",", ";", 5),
        "short rows": head + "\n" + "1,2\n" * 50,
        "long rows": head + "\n" + "1,2,3,4,5,6,7,8\n" * 50,
        "one short row": head
        + "\n"
        + "".join(rows[:50])
        + "1,2\n"
        + "".join(rows[50:]),
        "one long row": head + "\n" + "".join(rows[:50]) + "1,2,3,4,5,6,7,8,9\n",
        "blank lines between": head + "\n\n" + "\n".join(rows),
        "comments": "# a comment\n" + text,
        "a row of names again": text + head + "\n",
        "JSON": json.dumps(GOOD_SCHEMA),
        "HTML": "<!DOCTYPE html><html><table><tr><td>age</td></tr></table></html>",
        "prose": "Dear reader,\nthis is no table.\n",
        "one column": "age\n" + "5\n" * 50,
        "a column less": csv_text(good_table().drop(columns="town")),
        "null bytes": text.replace("Ulm", "Ul\0m"),
        "only null bytes": "\0" * 10_000,
        "carriage returns": text.replace("\n", "\r"),
        "a cell of 30 MB": head
        + "\n5,"
        + "9" * 30_000_000
        + ",Ulm,1,True,2020-01-01\n",
        "a name of 30 MB": "x" * 30_000_000 + "," + text,
        "a line of 30 MB": "x," * 15_000_000 + "\n",
        "100,000 columns": ",".join(f"c{i}" for i in range(100_000)) + "\n",
    }.items():
        yield name, content.encode(), name in MAY_PASS
    one = head + "\n" + rows[0]
    yield "one row", one.encode(), True
    for name, content in {
        "Windows line ends": text.replace("\n", "\r\n").encode(),
        "a byte order mark": b"\xef\xbb\xbf" + raw,
        "semicolons": csv_text(sep=";").encode(),
        "tabs": csv_text(sep="\t").encode(),
        "spaces after commas": text.replace(",", ", ").encode(),
        "a comma at each end": text.replace("\n", ",\n").encode(),
        "no newline at the end": raw.rstrip(),
        "a column more": csv_text(good_table().assign(more=1)).encode(),
        "other order": csv_text(
            good_table()[["day", *good_table().columns[:-1]]]
        ).encode(),
        "everything quoted": csv_text(quoting=1).encode(),
        "gzip": gzip.compress(raw),
    }.items():
        yield name, content, True
    for encoding in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "cp437"):
        # one of them begins with a mark that says how it is written
        yield encoding, text.encode(encoding), encoding == "utf-16"
    yield "latin-1 names", text.replace("age", "âge").encode("latin-1"), False
    yield "bad UTF-8", raw.replace(b"Ulm", b"Ul\xff"), False
    for name, content in {
        "random bytes": np.random.default_rng(1).bytes(10_000),
        "gzip of nothing": gzip.compress(b""),
        "gzip of gzip": gzip.compress(gzip.compress(raw)),
        "cut gzip": gzip.compress(raw)[:-20],
        "gzip head alone": b"\x1f\x8b",
        "gzip bomb": gzip.compress(bytes(300_000_000), 9),
        "gzip bomb of letters": gzip.compress(b"a" * 300_000_000, 9),
        "zip": zip_bytes(**{"good.csv": raw}),
        "zip bomb": zip_bytes(a=bytes(200_000_000)),
        "a spreadsheet": zip_bytes(**{"xl/workbook.xml": b"<x/>"}),
        "PDF": b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n",
        "PNG": b"\x89PNG\r\n\x1a\n" + bytes(100),
        "ELF": b"\x7fELF" + bytes(500),
        "SQLite": b"SQLite format 3\0" + bytes(500),
        "pickle": b"\x80\x04\x95" + bytes(50),
        "Parquet head alone": b"PAR1",
        "two Parquet heads": b"PAR1PAR1",
        "cut Parquet": parquet_bytes(good_table())[:-100],
        "Parquet with holes": parquet_bytes(good_table())[:500] + bytes(2000) + b"PAR1",
        "gzip of Parquet": gzip.compress(parquet_bytes(good_table())),
    }.items():
        yield name, content, False
    for column, cells in STRANGE_CELLS.items():
        for cell in cells:
            yield f"{column} {cell[:12]!r}", with_cell(column, cell), True


def parquet_kinds() -> Iterator[tuple[str, bytes]]:
    "Name and content of Parquet files with strange columns."
    good = pa.Table.from_pandas(good_table(), preserve_index=False)
    n = len(good)
    arrays = {
        "lists": pa.array([[1, 2]] * n),
        "structs": pa.array([{"a": 1}] * n),
        "binary": pa.array([b"\xff"] * n),
        "nulls": pa.nulls(n),
        "maps": pa.array([[("a", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        "durations": pa.array([1] * n, pa.duration("s")),
        "times": pa.array([1] * n, pa.time32("s")),
        "text": pa.array(["x"] * n),
        "infinities": pa.array([float("inf")] * n),
        "NaN": pa.array([float("nan")] * n),
        "uint64": pa.array([2**64 - 1] * n, pa.uint64()),
    }
    for (name, array), column in itertools.product(
        arrays.items(), ("age", "town", "day")
    ):
        place = good.column_names.index(column)
        yield (
            f"{column} as {name}",
            parquet_bytes(good.set_column(place, column, array)),
        )
    yield "no rows", parquet_bytes(good.slice(0, 0))
    yield "no columns", parquet_bytes(good.select([]))
    yield "a column less", parquet_bytes(good.drop_columns(["age"]))
    twice = pa.Table.from_arrays(
        [*good.columns, good["age"]], [*good.column_names, "age"]
    )
    yield "a name twice", parquet_bytes(twice)


def file_kinds() -> Iterator[Kind]:
    "Tables that cannot be read, for each command that reads one."
    for (name, content, fine), command in itertools.product(
        table_contents(), ("synth", "schema", "evaluate")
    ):
        words = {
            "synth": ["synth", "bad.csv", *SYNTH[2:]],
            "schema": ["schema", "bad.csv", "-o", "d.json"],
            "evaluate": ["evaluate", "bad.csv", "good.csv", "--schema", "good.json"],
        }[command]
        # in a private release every value has a code, and any text can be drafted
        fine = fine or command != "evaluate"
        yield Kind("tables", f"{command}: {name}", words, {"bad.csv": content}, fine)
    for name, content in parquet_kinds():
        words = ["synth", "bad.parquet", *SYNTH[2:]]
        yield Kind("tables", f"Parquet: {name}", words, {"bad.parquet": content}, True)
    for place in ("", "no.csv", "folder", "loopx", "no/*.csv", "*.none", "file", LONG):
        for command in ("synth", "schema", "evaluate", "plan"):
            rest = {"synth": SYNTH[2:], "schema": ["-o", "d.json"]}.get(command, [])
            if command in ("evaluate", "plan"):
                rest = ["good.csv"] * (command == "evaluate") + [
                    "--schema",
                    "good.json",
                ]
            yield Kind("tables", f"{command} {place[:20]!r}", [command, place, *rest])
    for address in (
        "s3://bucket/t.csv",
        "https://example.org/t.csv",
        "select 1",
        "gs://x",
    ):
        yield Kind("tables", f"address {address}", ["synth", address, *SYNTH[2:]])


# ------------------------------------------------------------------------------ schemas
STRANGE: dict[str, Any] = {
    "null": None,
    "minus one": -1,
    "zero": 0,
    "huge": 10**400,
    "a fraction": 0.5,
    "infinity": float("inf"),
    "NaN": float("nan"),
    "text": "x",
    "no text": "",
    "true": True,
    "a list": [],
    "lists": [[1]],
    "an object": {"a": 1},
    "long text": "y" * 100_000,
}


def schema_kinds() -> Iterator[Kind]:
    "Schemas with one wrong fact."

    def kind(name: str, content: Any) -> Kind:
        if not isinstance(content, (str, bytes)):
            content = json.dumps(content)
        raw = content if isinstance(content, bytes) else content.encode()
        words = ["plan", "--rows", "200", "--schema", "bad.json"]
        return Kind("schemas", name, words, {"bad.json": raw}, True)

    for i, column in enumerate(GOOD_SCHEMA["columns"]):
        for key in [*column, "source", "missing", "nonsense"]:
            for name, value in STRANGE.items():
                bad = copy.deepcopy(GOOD_SCHEMA)
                bad["columns"][i][key] = value
                yield kind(f"{column['kind']} {key}: {name}", bad)
            bad = copy.deepcopy(GOOD_SCHEMA)
            bad["columns"][i].pop(key, None)
            if key in column:
                yield kind(f"{column['kind']} without {key}", bad)
    for key, (name, value) in itertools.product(GOOD_SCHEMA, STRANGE.items()):
        yield kind(f"{key}: {name}", {**GOOD_SCHEMA, key: value})
    columns = GOOD_SCHEMA["columns"]
    for name, facts in {
        "low above high": dict(low=5, high=1),
        "low is high": dict(low=5, high=5),
        "a billion bins": dict(bins=10**9),
        "ten million bins": dict(bins=10**7),
        "no bins": dict(bins=0),
        "bounds too far apart": dict(low=-1e308, high=1e308),
        "edges not sorted": dict(bins=[0, 5, 3, 110]),
        "edges twice": dict(bins=[0, 5, 5, 110]),
        "edges as text": dict(bins=["a", "b"]),
    }.items():
        yield kind(
            name, {"version": 1, "columns": [{**columns[0], **facts}, columns[2]]}
        )
    for name, levels in {
        "300,000 levels": [f"l{i}" for i in range(300_000)],
        "a level twice": ["a", "a"],
        "no level": [],
        "nested levels": [["a"], ["b"]],
        "mixed levels": ["a", 1],
        "a null level": ["a", None],
        "a NaN level": [1.0, float("nan")],
        "a level of 30 MB": ["z" * 30_000_000, "b"],
    }.items():
        other = {"kind": "categorical", "name": "town", "levels": levels}
        yield kind(name, {"version": 1, "columns": [columns[0], other]})
    for name, low, high in (
        ("year 0", "0000-01-01", "2000-01-01"),
        ("year 99999", "2000-01-01", "99999-01-01"),
        ("no month 13", "2000-13-01", "2001-01-01"),
        ("dates reversed", "2001-01-01", "2000-01-01"),
        ("a date as a number", 5, 7),
    ):
        facts = dict(kind="datetime", name="day", low=low, high=high, bins=5)
        yield kind(name, {"version": 1, "columns": [columns[0], facts]})
    text = json.dumps(GOOD_SCHEMA)
    for name, content in {
        "nothing": "",
        "a space": " ",
        "cut": text[: len(text) // 2],
        "a comma too many": text.replace("}]", "},]"),
        "a key twice": text.replace('"version": 1', '"version": 1, "version": 1'),
        "100,000 lists": "[" * 100_000,
        "100,000 objects": '{"a":' * 100_000,
        "deep and closed": "[" * 100_000 + "]" * 100_000,
        "a number": "5",
        "null": "null",
        "text": '"x"',
        "UTF-16": text.encode("utf-16"),
        "latin-1": text.replace("\\u00fc", "ü").encode("latin-1"),
        "binary": b"\xff\xfe\x00",
        "YAML": "version: 1\ncolumns:\n - name: a\n",
        "1,000 columns of one name": json.dumps(
            {"version": 1, "columns": [columns[4]] * 1000}
        ),
    }.items():
        yield kind(name, content)


# ------------------------------------------------------------------------------- models
def forge(
    model: bytes, change: Any = None, arrays: Any = None, **members: bytes
) -> bytes:
    "A model with changed facts or arrays and a digest that fits."
    with zipfile.ZipFile(io.BytesIO(model)) as archive:
        facts = json.loads(archive.read("model.json"))
        packed = archive.read("arrays.npz")
    if change:
        facts = change(facts) or facts
    if arrays:
        with np.load(io.BytesIO(packed)) as found:
            held = dict(found)
        held = arrays(held) or held
        sink = io.BytesIO()
        np.savez_compressed(sink, **held)
        packed = sink.getvalue()
    text = json.dumps(facts).encode()
    parts = {"model.json": text, "arrays.npz": packed, **members}
    joined = parts["model.json"] + parts["arrays.npz"]
    digest = hashlib.sha256(joined).hexdigest().encode()
    return zip_bytes(**{**parts, "digest": members.get("digest", digest)})


def encrypted(content: bytes) -> bytes:
    "A zip file whose members claim to be encrypted."
    raw = bytearray(content)
    for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        start = raw.find(mark)
        while start >= 0:
            raw[start + place] |= 1
            start = raw.find(mark, start + 4)
    return bytes(raw)


def model_kinds(model: bytes) -> Iterator[Kind]:
    "Forged and damaged models, sampled and reported."

    def kinds(name: str, content: bytes) -> Iterator[Kind]:
        for command, output in (("sample", "x.csv"), ("report", "x.html")):
            words = [command, "bad.privpgd", "-o", output]
            files = {"bad.privpgd": content}
            yield Kind("models", f"{command}: {name}", words, files, True)

    def setter(*path: Any, value: Any = None) -> Any:
        def change(facts: dict) -> None:
            for key in path[:-1]:
                facts = facts[key]
            facts[path[-1]] = value

        return change

    with zipfile.ZipFile(io.BytesIO(model)) as archive:
        facts = json.loads(archive.read("model.json"))
    few = {k: STRANGE[k] for k in ("null", "minus one", "text", "lists", "an object")}
    for key, (name, value) in itertools.product(facts, few.items()):
        yield from kinds(f"{key}: {name}", forge(model, setter(key, value=value)))
    for key, (name, value) in itertools.product(facts["settings"], few.items()):
        change = setter("settings", key, value=value)
        yield from kinds(f"settings {key}: {name}", forge(model, change))
    for key in facts["measurements"][0]:
        for name, value in few.items():
            change = setter("measurements", 0, key, value=value)
            yield from kinds(f"measurement {key}: {name}", forge(model, change))
    for key in facts["privacy"]:
        for name, value in few.items():
            change = setter("privacy", key, value=value)
            yield from kinds(f"privacy {key}: {name}", forge(model, change))
    for name in ("codes", "particles", "counts0", "table0"):
        for what, edit in {
            "missing": lambda a, name=name: {k: v for k, v in a.items() if k != name},
            "empty": lambda a, name=name: {**a, name: a[name][:0]},
            "one axis more": lambda a, name=name: {**a, name: a[name][None]},
            "NaN": lambda a, name=name: {**a, name: a[name] * float("nan")},
            "texts": lambda a, name=name: {**a, name: a[name].astype(str)},
            "negative": lambda a, name=name: {**a, name: -1 - abs(a[name])},
            "a number": lambda a, name=name: {**a, name: np.array(5)},
        }.items():
            yield from kinds(f"{name} {what}", forge(model, arrays=edit))
    for name, content in {
        "nothing": b"",
        "cut": model[: len(model) // 2],
        "random": np.random.default_rng(2).bytes(5000),
        "a flipped byte": model[:900] + bytes([model[900] ^ 255]) + model[901:],
        "encrypted": encrypted(model),
        "an empty zip": zip_bytes(),
        "no digest": forge(model, digest=b""),
        "deep JSON": forge(model, **{"model.json": b"[" * 100_000}),
        "JSON list": forge(model, **{"model.json": b"[]"}),
        "zip bomb": zip_bytes(**{"model.json": bytes(300_000_000)}),
        "bomb of arrays": forge(
            model, arrays=lambda a: {**a, "x": np.zeros(4 * 10**7)}
        ),
        "pickled arrays": forge(
            model, arrays=lambda a: {**a, "codes": np.array([{}], dtype=object)}
        ),
        "a later format": forge(model, setter("format", value=99)),
        "no settings": forge(
            model, lambda f: {k: v for k, v in f.items() if k != "settings"}
        ),
        "an unknown setting": forge(model, setter("settings", "magic", value=1)),
    }.items():
        yield from kinds(name, content)
    for place in ("no.privpgd", "folder", "good.csv", "loopx", ""):
        for command, output in (("sample", "x.csv"), ("report", "x.html")):
            words = [command, place, "-o", output]
            yield Kind("models", f"{command} {place!r}", words)


def ledger_kinds(ledger: bytes) -> Iterator[Kind]:
    "Ledgers that were changed."
    for name, content in {
        "cut": ledger[:20],
        "changed": ledger.replace(b"1", b"2"),
        "nothing": b"",
        "random": os.urandom(200),
        "deep JSON": b"[" * 100_000 + b"\n",
        "a line more": ledger + b'{"entries": []}\n',
        "twice": ledger + ledger,
    }.items():
        for words in (["account", "bad.ledger"], [*SYNTH, "--ledger", "bad.ledger"]):
            yield Kind("ledgers", f"{words[0]}: {name}", words, {"bad.ledger": content})


def all_kinds(folder: Path) -> list[Kind]:
    "All kinds of bad input."
    model = (folder / "good.privpgd").read_bytes()
    ledger = (folder / "good.ledger").read_bytes()
    return [
        *argument_kinds(),
        *file_kinds(),
        *schema_kinds(),
        *model_kinds(model),
        *ledger_kinds(ledger),
    ]
