"""All pairs or a selection? Tables with few rows and much noise, measured both ways.

    OMP_NUM_THREADS=1 python benchmarks/selection.py

writes one line of JSON for each table, epsilon and way: all pairs (the default), the
spanning tree of MST, and all pairs with 0.3 of the budget for single columns.
`one`, `two` and `three` are mean L1 distances of the copy from the table of which the
rows are a sample, over all columns, 200 pairs and 100 tables of three columns; `noise`
is the expected L1 norm of the noise of the median pair, in parts of the rows. The
folder of the environment variable PRIVPGD_DATA must hold the real tables.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from privpgd import Budget, Numeric, PrivPGD, Schema, load_dataset
from privpgd.app.resources import median_pair
from privpgd.private.calibration import calibrate
from privpgd.private.measure import with_oneways

RESULTS = Path("nbs/experiments/results/third_order/selection.jsonl")
TABLES = {  # name -> rows that are measured
    "adult": 3_000,
    "acs_income_us": 3_000,
    "made up, 40 columns of 8": 5_000,
}
DELTA = 1e-6
WAYS = ("all pairs", "mst", "share 0.3")


def made_up(columns: int, bins: int) -> tuple[pd.DataFrame, Schema]:
    "A made-up table with dependent columns, and its schema."
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(100_000, 3)) @ rng.normal(size=(3, columns))
    u = 1 / (1 + np.exp(-(hidden + rng.normal(size=hidden.shape)) / 2))
    names = [f"c{j}" for j in range(columns)]
    schema = Schema([Numeric(c, 0, 1, bins=bins) for c in names])
    return pd.DataFrame(u, columns=names), schema


def load_table(name: str) -> tuple[pd.DataFrame, Schema]:
    "A table by its name."
    if name.startswith("made up"):
        return made_up(*(int(word) for word in name.split() if word.isdigit()))
    data = load_dataset(name)
    return data.train, data.schema


def table_error(real: np.ndarray, copy: np.ndarray, shape: tuple, order: int) -> float:
    "Mean L1 distance of at most 200 tables of single columns or pairs, 100 of three."
    every = list(combinations(range(len(shape)), order))
    picked = np.random.default_rng(1).permutation(len(every))
    cliques = [list(every[i]) for i in picked[: 100 if order == 3 else 200]]
    total = 0.0
    for clique in cliques:
        sizes = [int(shape[j]) for j in clique]
        one, two = (
            np.bincount(
                np.ravel_multi_index(codes[:, clique].T, sizes),
                minlength=math.prod(sizes),
            )
            / len(codes)
            for codes in (real, copy)
        )
        total += float(np.abs(one - two).sum())
    return total / len(cliques)


def pair_noise(shape: tuple, n: int, epsilon: float) -> float:
    "Expected L1 norm of the noise of the median pair, in parts of the rows."
    alone = float(calibrate(Budget(epsilon=epsilon, delta=DELTA), [1.0])[0])
    sigma = alone * math.sqrt(math.comb(len(shape), 2) / 0.9)
    return math.sqrt(2 / math.pi) * sigma * median_pair(list(shape)) / n


def run(name: str, epsilon: float, way: str, seed: int) -> dict:
    "One line."
    table, schema = load_table(name)
    n = TABLES[name]
    rows = table.sample(n, random_state=seed).reset_index(drop=True)
    select = {"all pairs": None, "mst": "mst"}.get(way, way)
    if way.startswith("share"):
        select = with_oneways(schema, 2, float(way.split()[1]))
    options = dict(n_particles=10_000, seed=seed, order=None if select else 2)
    began = time.process_time()
    model = PrivPGD(epsilon, DELTA, select=select, verbose=False, **options)
    model.fit(rows, schema)
    seconds = round(time.process_time() - began, 1)
    copy, real, shape = np.asarray(model.codes_), schema.encode(table), schema.shape
    line = dict(table=name, rows=n, epsilon=epsilon, way=way, seed=seed)
    line["noise"] = round(pair_noise(shape, n, epsilon), 2)
    for order, word in enumerate(("one", "two", "three"), 1):
        line[word] = round(table_error(real, copy, shape, order), 4)
    return line | dict(seconds=seconds)


def main() -> None:
    "Run what is missing, and append a line for each run."
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--tables", default=";".join(TABLES), help="with ; between")
    parser.add_argument("--ways", default=";".join(WAYS), help="with ; between")
    parser.add_argument("--epsilons", default="0.1,0.3,1.0")
    parser.add_argument("--seeds", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found = args.out.read_text().splitlines() if args.out.exists() else []
    keys = ("table", "epsilon", "way", "seed")
    done = {tuple(json.loads(line)[k] for k in keys) for line in found}
    for seed in range(args.seeds):
        for name in args.tables.split(";"):
            for epsilon in map(float, args.epsilons.split(",")):
                for way in args.ways.split(";"):
                    if (name, epsilon, way, seed) in done:
                        continue
                    line = json.dumps(run(name, epsilon, way, seed))
                    print(line, flush=True)
                    with args.out.open("a") as file:
                        file.write(line + "\n")


if __name__ == "__main__":
    main()
