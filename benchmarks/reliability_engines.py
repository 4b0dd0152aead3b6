"""Engines and growth: what a table costs to read, and how a fit grows."""

import hashlib
import json
import os
import resource
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

ENGINES = (
    *("pandas", "polars", "pyarrow", "CSV", "CSV folder", "gzip", "Parquet"),
    *("DuckDB", "SQLite", "Dask"),
)


def wide_table(rows: int) -> pd.DataFrame:
    "Whole numbers, reals, text and truth values; the same rows for the same number."
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, rows),
            "pay": rng.lognormal(3, 1, rows).round(2),
            "town": rng.choice(["Ulm", "Bern", "Zürich"], rows),
            "grade": rng.integers(1, 4, rows),
            "owner": rng.random(rows) < 0.5,
        }
    )


def wide_schema() -> Any:
    "The public facts of the table."
    from privpgd import Boolean, Categorical, Numeric, Ordinal, Schema

    return Schema(
        [
            Numeric("age", 0, 110, bins=11, integer=True),
            Numeric("pay", 0, 500, bins=10, decimals=2),
            Categorical("town", ["Ulm", "Bern", "Zürich"]),
            Ordinal("grade", [1, 2, 3]),
            Boolean("owner"),
        ]
    )


def write_all(folder: Path, rows: int) -> None:
    "The same table in every form."
    table = wide_table(rows)
    table.to_csv(folder / "t.csv", index=False)
    table.to_csv(folder / "t.csv.gz", index=False)
    table.to_parquet(folder / "t.parquet", row_group_size=50_000)
    (folder / "parts").mkdir()
    for i, start in enumerate(range(0, rows, -(-rows // 4))):
        part = table.iloc[start : start + -(-rows // 4)]
        part.to_csv(folder / "parts" / f"{i}.csv", index=False)
    with sqlite3.connect(folder / "t.db") as database:
        table.to_sql("t", database, index=False)


def open_table(engine: str, folder: Path) -> Any:
    "The table as one engine has it."
    parquet = str(folder / "t.parquet")
    if engine in ("CSV", "CSV folder", "gzip", "Parquet"):
        place = {"CSV": "t.csv", "gzip": "t.csv.gz", "Parquet": "t.parquet"}
        return str(folder / place.get(engine, "parts"))
    if engine == "pandas":
        return pd.read_parquet(parquet)
    if engine == "polars":
        import polars

        return polars.read_parquet(parquet)
    if engine == "pyarrow":
        import pyarrow.parquet

        return pyarrow.parquet.read_table(parquet)
    if engine == "DuckDB":
        import duckdb

        return duckdb.connect(), f"select * from '{parquet}'"
    if engine == "SQLite":
        return sqlite3.connect(folder / "t.db"), "select * from t"
    import dask.dataframe

    return dask.dataframe.read_parquet(parquet, split_row_groups=True)


def count_once(engine: str, folder: Path) -> dict:
    "Count all pairs of columns; the counts as a digest, the cost as numbers."
    from privpgd import count

    schema, pairs = wide_schema(), 2
    count(wide_table(50), schema, pairs)  # compiled code is loaded
    if engine == "DuckDB":
        import duckdb

        duckdb.connect().execute("select 1").fetchall()
    before = resource.getrusage(resource.RUSAGE_SELF)
    started = time.process_time()
    found = count(open_table(engine, folder), schema, pairs)
    seconds = time.process_time() - started
    after = resource.getrusage(resource.RUSAGE_SELF)
    rows = int(next(iter(found.values())).sum())
    digest = hashlib.sha256(b"".join(found[c].tobytes() for c in sorted(found)))
    return dict(
        rows=rows,
        rows_a_second=round(rows / max(seconds, 1e-9)),
        more_memory_mb=round((after.ru_maxrss - before.ru_maxrss) / 1024),
        digest=digest.hexdigest()[:12],
    )


def in_child(function: str, *words: Any) -> dict:
    "The facts that a function of this module gives in a process of its own."
    code = (
        "import json, sys; from pathlib import Path; import reliability_engines as e; "
        f"print(json.dumps(e.{function}(*json.loads(sys.argv[1]))))"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, json.dumps(words)],
        capture_output=True,
        text=True,
        env=env,
    )
    if done.returncode:
        return dict(error=done.stderr.strip().splitlines()[-1][:200])
    return json.loads(done.stdout.splitlines()[-1])


def engine_facts(engine: str, folder: str) -> dict:
    "`count_once`, with plain arguments."
    return count_once(engine, Path(folder))


def try_engines(folder: Path, rows: int) -> list[dict]:
    "A line for each engine."
    place = folder / "engines"
    place.mkdir()
    write_all(place, rows)
    return [
        dict(what="engine", engine=name, **in_child("engine_facts", name, str(place)))
        for name in ENGINES
    ]


def fit_cost(rows: int, columns: int, particles: int) -> dict:
    "Processor seconds of one small fit, and the peak memory of its process."
    from privpgd import Numeric, PrivPGD, Schema

    def fit(n: int, d: int, m: int) -> float:
        rng = np.random.default_rng(0)
        codes = rng.integers(0, 8, (n, d))
        table = pd.DataFrame(codes, columns=[f"c{j}" for j in range(d)])
        schema = Schema([Numeric(c, 0, 8, bins=8) for c in table])
        model = PrivPGD(1.0, 1e-6, n_particles=m, seed=0, verbose=False, order=2)
        started = time.process_time()
        model.fit(table, schema)
        return time.process_time() - started

    fit(200, 3, 200)  # compiled code is loaded
    seconds = fit(rows, columns, particles)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return dict(seconds=round(seconds, 3), peak_mb=peak)


BASE = dict(rows=20_000, columns=8, particles=10_000)
SCALES = dict(
    rows=(20_000, 80_000, 320_000, 1_280_000),
    columns=(8, 16, 32, 64),
    particles=(10_000, 40_000, 160_000),
)


def growth() -> list[dict]:
    "A line for each fit; one size grows, the others stay."
    lines = []
    for along, sizes in SCALES.items():
        for size in sizes:
            job = {**BASE, along: size}
            facts = in_child("fit_cost", *job.values())
            lines.append(dict(what="growth", along=along, **job, **facts))
    return lines
