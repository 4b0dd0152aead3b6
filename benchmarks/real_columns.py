"""Real columns: two tables as published, by bins that follow from the data, by equal
widths, by hand-written edges, and with no schema at all.

    python -m benchmarks.real_columns --out nbs/experiments/results/columns/real_columns.jsonl
    python -m benchmarks.real_columns --ablation --out nbs/experiments/results/…

The folder of the environment variable PRIVPGD_DATA must hold raw/bank_marketing.csv.gz
and raw/lending_club.csv.gz. Lines that are in the file already are not run again.
"""

import argparse
import json
import multiprocessing
import os
import pathlib
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

import privpgd.private.binning as binning
import privpgd.private.fine as fine
import privpgd.private.learn as learn
import privpgd.private.scales as scales
from privpgd import Categorical, Numeric, PrivPGD, Schema

# of epsilon and of delta, for the levels of text
LEVELS_SHARES = {"no schema 0.1": 0.1}
BANK = dict(  # bounds as a person would know them
    age=(0, 120),
    balance=(-200_000, 200_000),
    day=(1, 31),
    duration=(0, 10_000),
    campaign=(0, 200),
    pdays=(-1, 2_000),
    previous=(0, 500),
)
BANK_EDGES = dict(
    age=[0, 25, 30, 35, 40, 45, 50, 55, 60, 70, 120],
    balance=[-200_000, -500, 0, 1, 200, 500, 1000, 2000, 4000, 10_000, 200_000],
    day=31,
    duration=[0, 60, 100, 140, 180, 240, 320, 450, 700, 1200, 10_000],
    campaign=[0, 2, 3, 4, 6, 10, 200],
    pdays=[-1, 0, 90, 180, 270, 365, 2000],
    previous=[0, 1, 2, 3, 5, 10, 500],
)
ROUND = [0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000, 10_000, 20_000, 50_000]
ROUND += [100_000, 200_000, 500_000, 1_000_000, 10_000_000]


def lending_bounds(name):
    "Bounds of a column of the loans as a person would know them."
    if name == "earliest_credit_line":
        return 1900, 2030
    if name in ("account_never_delinq_percent", "interest_rate"):
        return 0, 100
    if name in ("term", "emp_length"):
        return 0, 120
    counts = ("num_", "months_", "debt_to_income", "delinq", "tax_liens", "public_")
    if name.startswith(counts) or "accounts" in name or "lines" in name:
        return 0, 1000
    if name == "inquiries_last_12m":
        return 0, 1000
    return 0, 10_000_000


class Table:
    "A published table: its rows, split in two, its target and its columns."

    def __init__(self, name):
        folder = pathlib.Path(os.environ["PRIVPGD_DATA"]) / "raw"
        self.name = name
        if name == "bank_marketing":
            rows = pd.read_csv(folder / "bank_marketing.csv.gz", sep=";")
            self.bounds = BANK
            self.target = lambda frame: frame["y"] == "yes"
            left_out = {"y"}
        else:
            rows = pd.read_csv(folder / "lending_club.csv.gz").drop(columns="emp_title")
            numeric = [c for c in rows if rows[c].dtype.kind in "if"]
            self.bounds = {c: lending_bounds(c) for c in numeric}
            self.target = lambda frame: frame["grade"].isin(["A", "B"])
            left_out = {"grade", "sub_grade", "interest_rate"}
        self.rows = rows
        self.test = rows.sample(frac=0.2, random_state=0)
        self.train = rows.drop(self.test.index)
        self.features = [c for c in rows if c not in left_out]

    def decimals(self, name):
        "The number of decimals with which the column is published."
        x = self.rows[name].dropna()
        return next(d for d in range(5) if np.allclose(x * 10**d, (x * 10**d).round()))

    def bins(self, name, method):
        "Bins of a column by one of the methods."
        if method == "open bins":
            return None
        if method == "equal width":
            return 32
        if self.name == "bank_marketing":
            return BANK_EDGES[name]
        low, high = self.bounds[name]
        if name == "earliest_credit_line":
            return [low, 1970, 1980, 1985, 1990, 1995, 2000, 2005, 2010, high]
        return [low, *(x for x in ROUND if low < x < high), high]

    def schema(self, method):
        "The public facts, with bins by one of the methods; None for no schema."
        if method.startswith("no schema"):
            return None
        columns = []
        for name in self.rows:
            values = self.rows[name]
            missing = bool(values.isna().any())
            if name in self.bounds:
                decimals = self.decimals(name)
                column = Numeric(
                    name,
                    *self.bounds[name],
                    bins=self.bins(name, method),
                    integer=decimals == 0,
                    missing=missing,
                    decimals=decimals or None,
                )
            else:
                column = Categorical(name, sorted(values.dropna().unique()), missing)
            columns.append(column)
        return Schema(columns)

    def auc(self, frame):
        "AUC on test rows of gradient boosting trained on a frame."

        def matrix(rows):
            parts = []
            for name in self.features:
                if name in self.bounds:
                    parts.append(
                        pd.to_numeric(rows[name]).to_numpy("float64", na_value=np.nan)
                    )
                else:
                    levels = sorted(self.rows[name].dropna().unique())
                    known = rows[name].where(rows[name].isin(levels))
                    codes = pd.Categorical(known, categories=levels).codes
                    parts.append(codes.astype(float))
            return np.stack(parts, axis=1)

        labels = self.target(frame)
        if labels.nunique() < 2:
            return 0.5
        model = HistGradientBoostingClassifier(random_state=0)
        model.fit(matrix(frame), labels)
        scores = model.predict_proba(matrix(self.test))[:, 1]
        return roc_auc_score(self.target(self.test), scores)


def column_errors(real, copy):
    "KS, errors of mean and standard deviation, and the worst spike of one column."
    a, b = (np.sort(x.dropna().to_numpy(float)) for x in (real, copy))
    if len(b) < 2:
        return dict(ks=1.0, mean=None, std=None, spike=1.0)
    at = np.unique(np.concatenate([a, b]))
    below = (np.searchsorted(x, at, "right") / len(x) for x in (a, b))
    first, second = below
    spikes = real.dropna().value_counts(normalize=True)
    apart = [abs((b == v).mean() - p) for v, p in spikes[spikes > 0.02].items()]
    scale = a.std() or 1.0
    return dict(
        ks=float(np.abs(first - second).max()),
        mean=float(abs(a.mean() - b.mean()) / scale),
        std=float(b.std() / scale - 1) if a.std() else None,
        spike=float(max(apart, default=0.0)),
    )


def run(table, method, epsilon, seed, particles=100_000):
    "One line of results."
    start = time.perf_counter()
    usual = learn.LEVELS_SHARE
    learn.LEVELS_SHARE = LEVELS_SHARES.get(method, usual)
    model = PrivPGD(epsilon, 1e-5, seed=seed, verbose=False, n_particles=particles)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copy = model.fit(table.train, table.schema(method)).sample()
    learn.LEVELS_SHARE = usual
    seconds = time.perf_counter() - start
    errors = {c: column_errors(table.train[c], copy[c]) for c in table.bounds}
    return dict(
        table=table.name,
        method=method,
        epsilon=epsilon,
        seed=seed,
        particles=particles,
        seconds=round(seconds, 1),
        spent=round(model.privacy_.epsilon, 4),
        auc=round(float(table.auc(copy)), 4),
        bins={c: int(model.schema_[c].size) for c in table.bounds},
        columns={
            c: {k: None if v is None else round(v, 5) for k, v in e.items()}
            for c, e in errors.items()
        },
    )


def _flat_threshold(noisy, total, forks=None):
    "A plain denoiser: finest counts above three standard deviations, rescaled."
    counts = noisy.counts[-1].astype(float)
    kept = np.where(counts > 3 * noisy.sigma, counts, 0.0)
    kept[np.argmax(counts)] = max(counts.max(), 1.0)
    return kept * (max(total - noisy.missing_count, 1.0) / kept.sum())


def _set_share(share):
    scales.LEAST_SHARE = scales.MOST_SHARE = share


def _set_bins(rows_per_noise):
    rule = binning.number_of_bins
    scales.number_of_bins = lambda n, sigma: rule(n, sigma, rows_per_noise)


def _set_power(power):
    cut = binning.cut_bins
    binning.cut_bins = lambda mass, width, k: cut(mass, width, k, power)


ABLATIONS = {
    "default": lambda: None,
    "share 0.1": lambda: _set_share(0.1),
    "share 0.3": lambda: _set_share(0.3),
    "share 0.5": lambda: _set_share(0.5),
    "share 0.8": lambda: _set_share(0.8),
    "plain threshold": lambda: setattr(scales, "denoise", _flat_threshold),
    "forks that believe everything": lambda: fine.AGREEMENT.fill(0.0),
    "forks, t = 2 on all levels": lambda: fine.AGREEMENT.fill(2.0),
    "equal mass": lambda: _set_power(1.0),
    "cube root, heavy at half": lambda: setattr(binning, "HEAVY", 0.5),
    "1 row a noise": lambda: _set_bins(1.0),
    "6 rows a noise": lambda: _set_bins(6.0),
    "12 rows a noise": lambda: _set_bins(12.0),
}
ABLATIONS_OF_MANY_COLUMNS = ("default", "share 0.5", "1 row a noise")


def ablate(out, name_of_table, epsilons, seeds, particles):
    "One choice changed at a time, each variant in a process of its own."
    table = Table(name_of_table)
    context = multiprocessing.get_context("fork")
    bank = name_of_table == "bank_marketing"
    for name in ABLATIONS if bank else ABLATIONS_OF_MANY_COLUMNS:

        def work(name=name):
            ABLATIONS[name]()
            for epsilon in epsilons:
                for seed in range(seeds):
                    line = run(table, "open bins", epsilon, seed, particles)
                    line |= dict(variant=name)
                    with out.open("a") as f:
                        f.write(json.dumps(line) + "\n")
                    print(name, epsilon, seed, line["auc"], flush=True)

        process = context.Process(target=work)
        process.start()
        process.join()


def main():
    "Run what is missing, and append a line for each run."
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", default="nbs/experiments/results/columns/real_columns.jsonl"
    )
    parser.add_argument("--tables", default="bank_marketing,lending_club")
    parser.add_argument("--methods", default="open bins,equal width,by hand,no schema")
    parser.add_argument("--epsilons", default="2.5,1.0,0.2")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--particles", type=int, default=100_000)
    parser.add_argument("--ablation", action="store_true")
    args = parser.parse_args()
    out = pathlib.Path(args.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    if args.ablation:
        epsilons = [float(x) for x in args.epsilons.split(",")]
        for name in args.tables.split(","):
            ablate(out, name, epsilons, args.seeds, args.particles)
        return
    lines = out.read_text().splitlines() if out.exists() else []
    keys = ("table", "method", "epsilon", "seed")
    done = {tuple(json.loads(line)[k] for k in keys) for line in lines}
    for name in args.tables.split(","):
        table = Table(name)
        for seed in range(args.seeds):
            for epsilon in map(float, args.epsilons.split(",")):
                for method in args.methods.split(","):
                    if (name, method, epsilon, seed) in done:
                        continue
                    line = run(table, method, epsilon, seed, args.particles)
                    with out.open("a") as f:
                        f.write(json.dumps(line) + "\n")
                    mean = np.mean([e["ks"] for e in line["columns"].values()])
                    print(
                        name,
                        method,
                        epsilon,
                        seed,
                        f"KS {mean:.4f}",
                        line["auc"],
                        flush=True,
                    )


if __name__ == "__main__":
    main()
