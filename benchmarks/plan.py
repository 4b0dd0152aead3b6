"""Compares what a plan says of time and memory with what happens.

    OMP_NUM_THREADS=1 python benchmarks/plan.py --out nbs/experiments/results/speed/plan.jsonl

fits made-up tables of 5 to 200 columns, 2 to 10,000 levels, 10,000 to ten million rows,
10,000 to a million particles, with and without a selector, each in a process of its
own, and writes one line of JSON for each. Seconds are those of the processor, summed
over all threads, as a plan has them; bytes are the growth of the peak after a first
small fit. `slowdown` is seconds over planned seconds of ten columns in the same
process, the mean of one fit before and one after: a busy machine makes all processor
times longer. `--quick` takes the small cases, `--only NAME` one of them, and `--replan`
plans the cases of a file once more, and keeps what was measured.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import math
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privpgd import Numeric, PrivPGD, Schema
from privpgd.app.plan import plan

# name -> columns, levels of each, rows, particles (None: as many as usual), selector
CASES: dict[str, tuple] = {
    "5 columns": (5, 32, 10_000, 10_000, None),
    "10 columns": (10, 32, 100_000, 100_000, None),
    "20 columns": (20, 32, 100_000, 100_000, None),
    "40 columns": (40, 32, 100_000, 20_000, None),
    "100 columns": (100, 32, 100_000, 100_000, None),
    "100 columns, 8 levels": (100, 8, 100_000, 20_000, None),
    "200 columns, 4 levels": (200, 4, 20_000, 10_000, None),
    "40 columns, 2 levels": (40, 2, 100_000, 100_000, None),
    "10 columns, a million rows": (10, 16, 1_000_000, 10_000, None),
    "5 columns, ten million rows": (5, 32, 10_000_000, 10_000, None),
    "20 columns, ten million rows": (20, 16, 10_000_000, 10_000, None),
    "10 columns, a million particles": (10, 16, 10_000, 1_000_000, None),
    "3 columns, 500 levels": (3, 500, 10_000, 10_000, None),
    "one column of 2,000 levels": (6, (2000, 10), 10_000, 10_000, None),
    "one column of 10,000 levels": (6, (10_000, 10), 10_000, 10_000, None),
    "10 columns, third order": (10, 8, 200_000, 50_000, None),
    "10 columns, third order, usual copy": (10, 8, 200_000, None, None),
    "20 columns, 2 levels, third order": (20, 2, 100_000, 50_000, None),
    "5 columns, ten million rows, third order": (5, 32, 10_000_000, 10_000, None),
    "mst, 10 columns": (10, 32, 20_000, 20_000, "mst"),
    "mst, 50 columns": (50, 32, 20_000, 20_000, "mst"),
    "mst, 100 columns": (100, 32, 20_000, 20_000, "mst"),
    "mst, 200 columns": (200, 32, 20_000, 20_000, "mst"),
    "mwem, 10 columns": (10, 16, 20_000, 20_000, "mwem"),
    "mwem, 20 columns": (20, 16, 20_000, 20_000, "mwem"),
    "mwem, 40 columns": (40, 16, 20_000, 20_000, "mwem"),
    "aim, 10 columns": (10, 16, 20_000, 20_000, "aim"),
    "aim, 20 columns": (20, 16, 20_000, 20_000, "aim"),
    "aim, 40 columns": (40, 16, 20_000, 20_000, "aim"),
}
QUICK = ("5 columns", "mst, 10 columns")


def make_case(d: int, levels: Any, n: int) -> tuple[pd.DataFrame, Schema]:
    "A made-up table with dependent columns, and its schema."
    rng = np.random.default_rng(0)
    u = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d))
    u += rng.normal(size=(n, d))
    u = 1 / (1 + np.exp(-u / 2))
    first, rest = levels if isinstance(levels, tuple) else (levels, levels)
    sizes = [first] + [rest] * (d - 1)
    names = [f"c{j}" for j in range(d)]
    columns = [Numeric(c, 0, 1, bins=k) for c, k in zip(names, sizes)]
    return pd.DataFrame(u, columns=names), Schema(columns)


def reset_peak() -> None:
    "Give free memory back, and let the system forget how much this process has held."
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    "The most memory that this process has held since then."
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(x.split()[1]) for x in lines if x.startswith("VmHWM"))


def time_yardstick() -> float:
    "Seconds over planned seconds of a fit of ten columns."
    n = m = 20_000
    model = PrivPGD(1.0, 1e-9, n_particles=m, order=2, verbose=False)
    frame, schema = make_case(10, 32, n)
    planned = math.fsum(model.plan(frame, schema).seconds.values())
    began = time.process_time()
    model.fit(frame, schema)
    return (time.process_time() - began) / planned


def plan_case(name: str) -> dict:
    "What a plan says of a case."
    d, levels, n, m, select = CASES[name]
    options = dict(select=select, order=None if "third order" in name else 2)
    schema = make_case(d, levels, 2)[1]
    made = plan(schema, n, 1.0, 1e-9, n_particles=m, loaded=True, **options)
    seconds = round(math.fsum(made.seconds.values()), 2)
    return dict(planned_seconds=seconds, planned_bytes=made.bytes)


def run_case(name: str) -> dict:
    "Plan and fit one case in this process, after a small fit that compiles."
    d, levels, n, m, select = CASES[name]
    warnings.simplefilter("ignore")
    third = "third order" in name
    options = dict(select=select, order=None if third else 2, verbose=False)
    PrivPGD(1.0, 1e-9, n_particles=500, **options).fit(*make_case(3, 4, 500))
    if third:
        PrivPGD(1.0, 1e-9, n_particles=500, **options).fit(*make_case(4, 2, 50_000))
    slowdowns = [time_yardstick()]
    frame, schema = make_case(d, levels, n)
    model = PrivPGD(1.0, 1e-9, n_particles=m, **options)
    reset_peak()
    before, began = peak_bytes(), time.process_time()
    wall = time.perf_counter()
    model.fit(frame, schema)
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    grown = peak_bytes() - before
    assert third == (model.higher_ is not None)
    slowdowns.append(time_yardstick())
    return dict(
        case=name,
        columns=d,
        levels=levels,
        rows=n,
        particles=m,
        select=select,
        seconds=round(seconds, 2),
        wall=round(wall, 2),
        slowdown=round(math.fsum(slowdowns) / 2, 2),
        bytes=grown,
        **plan_case(name),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="file of JSON lines, appended to")
    parser.add_argument("--only", action="append", choices=CASES, help="one case")
    parser.add_argument("--quick", action="store_true", help="the small cases")
    parser.add_argument("--here", action="store_true", help="without new processes")
    parser.add_argument("--replan", action="store_true", help="the lines of the file")
    args = parser.parse_args()
    if args.replan:
        lines = map(json.loads, args.out.read_text().splitlines())
        planned = [json.dumps(x | plan_case(x["case"])) for x in lines]
        args.out.write_text("".join(f"{line}\n" for line in planned))
        return
    for name in args.only or (QUICK if args.quick else CASES):
        if args.here:
            line = json.dumps(run_case(name))
        else:
            command = [sys.executable, __file__, "--here", "--only", name]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            line = done.stdout.strip().splitlines()[-1]
        print(line, flush=True)
        if args.out:
            with args.out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
