"""Engines and growth: what a table costs to read, and how a fit grows."""

import contextlib
import hashlib
import importlib.util
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from plan import peak_bytes, reset_peak

ENGINES = (
    *("pandas", "polars", "pyarrow", "CSV", "CSV folder", "gzip", "Parquet"),
    *("DuckDB", "SQLite", "Dask"),
)
DRIVERS = {
    "PostgreSQL, psycopg": "psycopg",
    "PostgreSQL, ADBC": "adbc_driver_postgresql",
}


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


def drivers() -> list[str]:
    "The drivers that are installed, where there is a PostgreSQL server to start."
    found = [name for name, it in DRIVERS.items() if importlib.util.find_spec(it)]
    return found if shutil.which("initdb") and "PostgreSQL, psycopg" in found else []


@contextlib.contextmanager
def postgres() -> Iterator[str]:
    "A PostgreSQL server of its own, without a network; its folder."
    place = Path(tempfile.mkdtemp(prefix="pg"))
    programs = Path(str(shutil.which("initdb"))).resolve().parent
    options: dict = dict(check=True, cwd=place, stdout=subprocess.DEVNULL)
    if os.geteuid() == 0:  # the server refuses to run as root
        shutil.chown(place, "nobody")
        options |= dict(user="nobody")
    data = ["-D", str(place / "data")]
    sockets = f"-c listen_addresses= -k {place}"
    make = [programs / "initdb", *data, "-A", "trust", "-U", "all"]
    subprocess.run([*make, "-E", "UTF8", "--locale=C"], **options)
    control = [programs / "pg_ctl", *data, "-w"]
    log = str(place / "log")
    subprocess.run([*control, "-l", log, "-o", sockets, "start"], **options)
    try:
        yield str(place)
    finally:
        subprocess.run([*control, "-m", "immediate", "stop"], **options)
        shutil.rmtree(place)


def connect(server: str, engine: str = "PostgreSQL, psycopg") -> Any:
    "A connection to the server."
    if engine == "PostgreSQL, ADBC":
        from adbc_driver_postgresql import dbapi

        return dbapi.connect(f"postgresql:///postgres?host={server}&user=all")
    import psycopg

    return psycopg.connect(host=server, user="all", dbname="postgres")


def fill(server: str, rows: int) -> None:
    "Write the table to the server."
    kinds = "age int, pay double precision, town text, grade int, owner boolean"
    with connect(server) as connection, connection.cursor() as cursor:
        cursor.execute(f"create table t{rows} ({kinds})")
        with cursor.copy(f"copy t{rows} from stdin") as copy:
            for row in wide_table(rows).astype(object).itertuples(index=False):
                copy.write_row(row)


def open_table(engine: str, folder: Path) -> Any:
    "The table as one engine has it."
    if engine in DRIVERS:
        server, _, table = str(folder).rpartition("/")
        return connect(server, engine), f"select * from {table}"
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


def write_rows(rows: int) -> dict:
    "The memory of rows that are sampled and written to the standard output."
    from privpgd import PrivPGD
    from privpgd.app.tables import write_sample

    model = PrivPGD(1.0, 1e-6, n_particles=500, epochs=0, order=2, verbose=False)
    model.fit(wide_table(500), wide_schema())
    write_sample(model, 1000, os.devnull)
    reset_peak()
    before = peak_bytes()
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        write_sample(model, rows, "-", seed=0)
    return dict(rows=rows, more_memory_mb=(peak_bytes() - before) // 2**20)


def count_once(engine: str, folder: Path) -> dict:
    "Count all pairs of columns; the counts as a digest, the cost as numbers."
    from privpgd import count

    schema, pairs = wide_schema(), 2
    count(wide_table(50), schema, pairs)  # compiled code is loaded
    if engine == "DuckDB":
        import duckdb

        duckdb.connect().execute("select 1").fetchall()
    reset_peak()
    before, started = peak_bytes(), time.process_time()
    found = count(open_table(engine, folder), schema, pairs)
    seconds = time.process_time() - started
    rows = int(next(iter(found.values())).sum())
    digest = hashlib.sha256(b"".join(found[c].tobytes() for c in sorted(found)))
    return dict(
        rows=rows,
        rows_a_second=round(rows / max(seconds, 1e-9)),
        more_memory_mb=(peak_bytes() - before) // 2**20,
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
    lines = [
        dict(what="engine", engine=name, **in_child("engine_facts", name, str(place)))
        for name in ENGINES
    ]
    for n in (rows, 4 * rows):
        facts = in_child("write_rows", n)
        lines.append(dict(what="stream", way="to the standard output", **facts))
    return lines + (try_postgres(rows) if drivers() else [])


def try_postgres(rows: int) -> list[dict]:
    "A line for each driver, and lines for the memory of a long and a short table."
    lines = []
    with postgres() as server:
        for n in (rows, 4 * rows):
            fill(server, n)
            for name in drivers():
                facts = in_child("engine_facts", name, f"{server}/t{n}")
                if n == rows:
                    lines.append(dict(what="engine", engine=name, **facts))
                kept = {k: facts[k] for k in ("rows", "more_memory_mb")}
                lines.append(dict(what="stream", way=f"from {name}", **kept))
    return lines


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
