"""What learning the columns adds to the time of a fit: a million rows and 50 columns of
numbers, about which nothing but bounds of ±10⁹ is known.

    python -m benchmarks.real_columns_time

Seconds are those of the processor, because other work on the machine slows the clock.
"""

import argparse
import json
import pathlib
import time
import warnings

import numpy as np
import pandas as pd

import privpgd.app.pipeline as pipeline
from privpgd import Numeric, PrivPGD, Schema

OUT = "nbs/experiments/results/columns/real_columns_time.jsonl"


def make_rows(n, d):
    "Columns of money, counts and measurements that depend on one another."
    rng = np.random.default_rng(0)
    common = rng.normal(size=n)
    columns = {}
    for i in range(d):
        x = 0.6 * common + 0.8 * rng.normal(size=n)
        values = (np.exp(6 + x), rng.poisson(np.exp(x)), 1000 * x)[i % 3]
        columns[f"c{i}"] = np.rint(values).astype(np.int64)
    return pd.DataFrame(columns)


def run(n, d, epsilon):
    "One line: seconds of the stage that learns the columns, and of the others."
    frame = make_rows(n, d)
    schema = Schema([Numeric(c, -(10**9), 10**9, integer=True) for c in frame])
    stage, learning = pipeline.learn_scales, []

    def timed(*args, **more):
        start = time.process_time()
        learned = stage(*args, **more)
        learning.append(time.process_time() - start)
        return learned

    pipeline.learn_scales = timed
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PrivPGD(epsilon, 1e-9, seed=0, verbose=False)
        model.fit(frame, schema)
    whole = time.process_time() - start
    pipeline.learn_scales = stage
    bins = float(np.mean(model.schema_.shape))
    learned = sum(learning)
    return dict(
        rows=n,
        columns=d,
        epsilon=epsilon,
        bins=round(bins, 1),
        learning=round(learned, 1),
        others=round(whole - learned, 1),
    )


def main():
    "Append a line."
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default=OUT)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--epsilon", type=float, default=1.0)
    args = parser.parse_args()
    line = run(args.rows, args.columns, args.epsilon)
    print(line)
    with pathlib.Path(args.out).open("a") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
