"""One table, the same noisy counts, several random starts of the mixture: its objective
and the errors of the copy that the default makes of it.

    python -m benchmarks.mixture_starts --tables diamonds --seeds 2 --starts 4

The folder of the environment variable PRIVPGD_DATA must hold the tables. Lines that are
in the file already are not run again.
"""

import argparse
import itertools
import json
import pathlib
import time

import numpy as np

from privpgd import Budget, evaluate, load_dataset, measure
from privpgd.app.jobs import versions
from privpgd.app.pipeline import default_workload
from privpgd.evaluation.paper import PAPER_METRICS
from privpgd.evaluation.results import append_line
from privpgd.joint.mixture import fit_mixture
from privpgd.joint.refinement import refine
from privpgd.joint.shrinkage import mixture_tables
from privpgd.methods.privpgd import PRESETS

PATH = pathlib.Path("nbs/experiments/results/starts/starts.jsonl")
ROWS = 100_000


def run(data, noisy, seed, start):
    "The objective of one start, and the errors of its copy."
    schema, history = data.schema, []
    began = time.process_time()
    mixture = fit_mixture(noisy, schema, seed=start, history=history)
    fitted = time.process_time() - began
    tables = mixture_tables(mixture, noisy, schema)
    draws = mixture.draw(ROWS, seed=seed, independent=0.5)
    codes = refine(draws, tables, schema, seed=seed, **PRESETS["default"].refinement)
    target = dict(test=data.test, target=data.target, task=data.task)
    codes = np.ascontiguousarray(codes, np.int32)
    found = evaluate(data.train, codes, schema, seed=seed, **target)
    found = dict(zip(found["metric"], found["value"]))
    line = dict(objective=history[-1], seconds=fitted, source=versions()["source"])
    return line | {name: float(found[name]) for name in PAPER_METRICS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", default="diamonds,diabetes130us,adult")
    parser.add_argument("--epsilon", type=float, default=0.2)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--starts", type=int, default=4)
    args = parser.parse_args()
    PATH.parent.mkdir(parents=True, exist_ok=True)
    known = PATH.read_text().splitlines() if PATH.exists() else []
    key = ("dataset", "epsilon", "seed", "start")
    done = {tuple(json.loads(line)[k] for k in key) for line in known}
    for name, seed in itertools.product(args.tables.split(","), range(args.seeds)):
        jobs = [(name, args.epsilon, seed, start) for start in range(args.starts)]
        if not (jobs := [job for job in jobs if job not in done]):
            continue
        data = load_dataset(name)
        workload = default_workload(data.schema)
        budget = Budget(args.epsilon, 1e-5)
        noisy, _ = measure(data.train, data.schema, workload, budget, seed=seed)
        for job in jobs:
            line = dict(zip(key, job)) | run(data, noisy, seed, job[-1])
            append_line(PATH, line)
            print(line, flush=True)


if __name__ == "__main__":
    main()
