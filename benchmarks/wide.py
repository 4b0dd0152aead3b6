"""Fits a wide table with the code of several checkouts, in turns.

    OMP_NUM_THREADS=1 python benchmarks/wide.py --trees .,OLD --columns 100 \\
        --out nbs/experiments/results/speed/wide.jsonl

Each checkout gets the same made-up table in a process of its own, after a small fit
that compiles. A line of JSON has processor and wall seconds of the
fit, the load average before and after, and the mean L1 distance from the rows of 300
pairs and of 300 tables of three columns, the latter over an eighth of the levels.
Seconds of the processor are summed over all threads; `main` are those of the main
thread, which waits while other threads work. So on two cores that do nothing else the
fit takes about `main` and half of the rest. A busy machine makes all of them longer, so
the ratio of two lines of one run is what to look at. Noise has a seed, so that both
fits get the same; `--exact` draws it as a release does, which takes longer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from itertools import combinations
from pathlib import Path

TABLES = 300  # pairs, and tables of three columns, that are compared


def table_error(real, copy, bins: int, size: int, blocks: int) -> float:
    "Mean L1 distance of some tables of so many columns, on blocks of levels."
    import numpy as np

    rng = np.random.default_rng(1)
    every = list(combinations(range(real.shape[1]), size))
    picked = rng.permutation(len(every))[:TABLES]
    total = 0.0
    for i in picked:
        shares = []
        for codes in (real, copy):
            cell = np.zeros(len(codes), int)
            for j in every[i]:
                cell = cell * blocks + codes[:, j] * blocks // bins
            shares.append(np.bincount(cell, minlength=blocks**size) / len(codes))
        total += float(np.abs(shares[0] - shares[1]).sum())
    return total / len(picked)


def run_here(args: argparse.Namespace) -> dict:
    "Fit the made-up table with the code that this process imports."
    import numpy as np
    import pandas as pd

    from privpgd import Numeric, PrivPGD, Schema

    warnings.simplefilter("ignore")

    def fit(d, n, m):
        rng = np.random.default_rng(0)
        hidden = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d))
        u = 1 / (1 + np.exp(-(hidden + rng.normal(size=(n, d))) / 2))
        names = [f"c{j}" for j in range(d)]
        frame = pd.DataFrame(u, columns=names)
        schema = Schema([Numeric(c, 0, 1, bins=args.bins) for c in names])
        seed = None if args.exact else 0
        options = dict(n_particles=m, seed=seed, verbose=False)
        model = PrivPGD(args.epsilon, 1e-6, **options)
        load, clocks = (
            os.getloadavg()[0],
            (time.time, time.process_time, time.thread_time),
        )
        began = [clock() for clock in clocks]
        model.fit(frame, schema)
        taken = [round(clock() - start, 1) for clock, start in zip(clocks, began)]
        loads = [round(x, 1) for x in (load, os.getloadavg()[0])]
        return schema.encode(frame), model, taken, loads

    fit(44, 2_000, 2_000)
    real, model, taken, loads = fit(args.columns, args.rows, args.particles)
    copy = np.asarray(model.codes_)
    facts = ("columns", "bins", "rows", "particles", "epsilon", "exact")
    return {name: getattr(args, name) for name in facts} | dict(
        measured=len(model.measurements_),
        wall=taken[0],
        seconds=taken[1],
        main=taken[2],
        load=loads,
        pairs=round(table_error(real, copy, args.bins, 2, args.bins), 5),
        triples=round(table_error(real, copy, args.bins, 3, args.bins // 4), 5),
    )


def run_in(tree: Path, args: argparse.Namespace) -> dict:
    "A line from a process that imports the package of this checkout."
    command = [sys.executable, str(Path(__file__).resolve()), "--here"]
    for name in ("columns", "bins", "rows", "particles", "epsilon"):
        command += [f"--{name}", str(getattr(args, name))]
    command += ["--exact"] * args.exact
    env = os.environ | {"PYTHONPATH": str(tree.resolve())}
    done = subprocess.run(
        command,
        env=env,
        cwd=tree,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    line = json.loads(done.stdout.strip().splitlines()[-1])
    git = ["git", "-C", str(tree), "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    return dict(commit=commit) | line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trees", default=".", help="checkouts, with commas")
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--bins", type=int, default=32)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--particles", type=int, default=100_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--out", type=Path, help="file of JSON lines, appended to")
    parser.add_argument("--exact", action="store_true", help="noise without a seed")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.here:
        print(json.dumps(run_here(args)))
        return
    for tree in map(Path, args.trees.split(",")):
        line = json.dumps(run_in(tree, args))
        print(line, flush=True)
        if args.out:
            with args.out.open("a", encoding="utf-8") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
