"""Mechanisms for the distribution of single columns, at the same budget: the tree of
forks, a flat histogram with a threshold, PrivTree, the square-root factorization of
prefix sums; an oracle that knows everything but the counts of a few bins; the tree with
the exact counts of its bins; and, not private at all, exact counts and another sample.

    python -m benchmarks.fine_mechanisms --out nbs/experiments/results/…

Nothing is spent on pairs, and no rows are made: a distribution is compared with the
column. The folder of the environment variable PRIVPGD_DATA must hold the two tables of
`benchmarks.real_columns`. With `--facts` it writes what the columns are, without noise.
"""

import argparse
import json
import pathlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.signal import fftconvolve
from sklearn.isotonic import isotonic_regression

from benchmarks.real_columns import Table, column_errors
from privpgd import Budget
from privpgd.private.binning import cut_bins, number_of_bins
from privpgd.private.fine import add_noise, denoise
from privpgd.private.spending import call_sigmas, open_ledger
from privpgd.table.grids import Forks, Grid, make_forks

SHARE = 0.3  # of the budget for single columns, as a table with many columns has it
PAIRS = dict(bank_marketing=136, lending_club=1431)
LIMITS = {2.5: (0.05, 0.10), 1.0: (0.1, 0.15), 0.2: (0.3, 0.4)}  # means, deviations


@dataclass
class Truth:
    "A column of numbers: its values, and their counts on its grid."

    grid: Grid
    forks: Forks
    values: np.ndarray  # known values, sorted, in units
    counts: np.ndarray  # of the finest cells
    missing: int  # number of missing values

    @property
    def rows(self):
        return len(self.values) + self.missing


def read_columns(name):
    "The numeric columns of a table, on the grids that follow from its bounds."
    table = Table(name)
    schema = table.schema("open bins")
    columns = []
    for column in table.bounds:
        facts = schema[column]
        known = table.train[column].dropna().to_numpy(float)
        values = np.sort(np.rint(known * 10 ** (facts.decimals or 0)).astype(np.int64))
        grid = facts.grid
        counts = np.bincount(grid.find_cells(values), minlength=len(grid))
        missing = len(table.train) - len(values)
        columns.append(Truth(grid, make_forks(grid), values, counts, missing))
    return columns


def compare(truth, mass):
    "KS, errors of mean and standard deviation in deviations, and the worst spike."
    real, grid = truth.values, truth.grid
    alive = mass > 0
    first, last = grid.first[alive].astype(float), grid.last[alive].astype(float)
    share = mass[alive] / mass.sum()
    width = last - first + 1
    at = np.unique(np.concatenate([real, last, first - 1]))
    cell = np.searchsorted(first, at, "right") - 1
    place = np.maximum(cell, 0)
    reached = np.clip((at - first[place] + 1) / width[place], 0, 1) * share[place]
    below = np.where(cell < 0, 0, np.cumsum(share)[place] - share[place] + reached)
    ks = np.abs(np.searchsorted(real, at, "right") / len(real) - below).max()
    middle = (first + last) / 2
    mean = share @ middle
    spread = np.sqrt(share @ ((middle - mean) ** 2 + (width**2 - 1) / 12))
    values, rows = np.unique(real, return_counts=True)
    frequent = rows > 0.02 * len(real)
    where = np.searchsorted(first, values[frequent], "right") - 1
    held = (where >= 0) & (last[where] >= values[frequent])
    found = np.where(held, share[where] / width[where], 0)
    spike = np.abs(found - rows[frequent] / len(real)).max(initial=0)
    scale = real.std() or 1.0
    std = abs(spread / scale - 1) if real.std() else None
    return ks, abs(mean - real.mean()) / scale, std, spike


def noisy_total(truth, sigma, rng):
    "The number of known values, from a noisy count of the missing ones."
    return max(truth.rows - max(truth.missing + rng.normal(0, sigma), 0), 1.0)


def tree(truth, sigma, rng):
    "The mechanism of the package: every level of the grid, forks denoised."
    counts = truth.counts
    if truth.missing:
        counts = np.append(counts, truth.missing)
    noise = sigma * np.sqrt(len(truth.grid.levels))
    noisy = add_noise(truth.grid, counts, noise, rng)
    return denoise(noisy, truth.rows, truth.forks)


def threshold(truth, sigma, rng):
    "The finest cells alone, those above three standard deviations, rescaled."
    noisy = truth.counts + rng.normal(0, sigma, len(truth.counts))
    kept = np.where(noisy > 3 * sigma, noisy, 0.0)
    kept[np.argmax(noisy)] = max(noisy.max(), 1.0)
    return kept * noisy_total(truth, sigma, rng) / kept.sum()


def privtree(truth, sigma, rng):
    """PrivTree on the same tree of forks, and its leaves counted.

    Half of the budget each. A pure e is e²/2-zCDP, a replaced row counts twice, and the
    Gaussian noise sigma of a histogram is 1/sigma²-zCDP: so e = 1/(2 sigma) for the
    tree, whose Laplace noise is 3/e for forks, and sqrt(2) sigma for the leaves."""
    forks = truth.forks
    scale = 3 * 2 * sigma
    decay = scale * np.log(2)
    exact = forks.add_up(truth.counts)
    mass = np.zeros(len(truth.grid))
    waiting = [(0, 0)]
    while waiting:
        node, depth = waiting.pop()
        biased = max(exact[node] - depth * decay, -decay)
        if forks.left[node] >= 0 and biased + rng.laplace(0, scale) > 0:
            left = int(forks.left[node])
            waiting += [(left, depth + 1), (left + 1, depth + 1)]
            continue
        cells = slice(forks.start[node], forks.stop[node])
        count = exact[node] + rng.normal(0, np.sqrt(2) * sigma)
        prior = truth.grid.prior[cells]
        mass[cells] = max(count, 0) * prior / prior.sum()
    return mass if mass.sum() > 0 else truth.grid.prior


def square_root(truth, sigma, rng):
    """Prefix sums by the square-root factorization, made monotone.

    The matrix of prefix sums is R², R has the binomial coefficients of (1 - x)^(-1/2);
    R x is measured with noise sigma times the norm of its first column."""
    m = len(truth.counts)
    steps = np.arange(1, m)
    column = np.append(1.0, np.cumprod((2 * steps - 1) / (2 * steps)))
    noise = rng.normal(0, sigma * np.linalg.norm(column), m)
    prefix = np.cumsum(truth.counts) + fftconvolve(noise, column)[:m]
    total = noisy_total(truth, sigma, rng)
    prefix = isotonic_regression(prefix, y_min=0, y_max=total)
    prefix[-1] = total
    return np.diff(np.append(0.0, prefix))


MECHANISMS = {
    "tree of forks": tree,
    "threshold": threshold,
    "PrivTree": privtree,
    "square root": square_root,
}


def oracle(bins):
    """Equal-mass bins read from the data, and how values lie inside each of them: only
    the counts of the bins are private."""

    def mechanism(truth, sigma, rng):
        width = truth.grid.last - truth.grid.first + 1
        starts = np.array(cut_bins(truth.counts, width, bins, 1.0))
        exact = np.add.reduceat(truth.counts, starts)
        total = noisy_total(truth, sigma, rng)
        noisy = exact + rng.normal(0, sigma, len(starts))
        used = np.ones(len(starts), bool)
        while True:  # least squares with the known total and no negative count
            moved = noisy + (total - noisy[used].sum()) / used.sum()
            if (moved[used] >= 0).all():
                break
            used &= moved > 0
        fitted = np.where(used, moved, 0)
        widths = np.diff([*starts, len(width)])
        return truth.counts * np.repeat(fitted / np.maximum(exact, 1), widths)

    return mechanism


def known_bins(pair_noise):
    """The tree, and the exact counts of the bins that follow from it: what is wrong
    *inside* the bins on which pairs are measured."""

    def mechanism(truth, sigma, rng):
        mass = tree(truth, sigma, rng)
        width = truth.grid.last - truth.grid.first + 1
        starts = cut_bins(mass, width, number_of_bins(truth.rows, pair_noise * sigma))
        exact = np.add.reduceat(truth.counts, starts)
        found = np.maximum(np.add.reduceat(mass, starts), 1e-9)
        widths = np.diff([*starts, len(width)])
        return mass * np.repeat(exact / found, widths)

    return mechanism


def no_noise(truth, sigma, rng):
    "The exact counts of the finest cells: what the grid alone does."
    return truth.counts.astype(float)


def another_sample(truth, rng):
    "Errors of as many rows, drawn anew from the rows."
    drawn = pd.Series(rng.choice(truth.values, len(truth.values)))
    found = column_errors(pd.Series(truth.values), drawn)
    std = None if found["std"] is None else abs(found["std"])
    return found["ks"], found["mean"], std, found["spike"]


def describe(table):
    "What the columns of a table are, and whose work their standard deviations are."
    rows = Table(table)
    schema = rows.schema("open bins")
    for name, truth in zip(rows.bounds, read_columns(table)):
        values = truth.values.astype(float)
        far = np.argsort(abs(values - values.mean()))
        units = 10.0 ** (schema[name].decimals or 0)
        line = dict(table=table, column=name, known=len(values), missing=truth.missing)
        line |= dict(largest=values.max() / units, median=np.median(values) / units)
        line |= dict(
            std=values.std() / units, std_less_10=values[far[:-10]].std() / units
        )
        yield {
            k: v if isinstance(v, str) else round(float(v), 4) for k, v in line.items()
        }


def run(columns, epsilon, mechanism, share, seed):
    "Errors of all columns of a table, in the mean."
    account = open_ledger(Budget(epsilon=epsilon, delta=1e-5), None, "replace")
    whole = float(call_sigmas(None, account, [1.0])[0])
    sigma = whole * np.sqrt(len(columns) / share)
    rng = np.random.default_rng(seed)
    if mechanism is another_sample:
        found = [another_sample(column, rng) for column in columns]
    else:
        found = [compare(column, mechanism(column, sigma, rng)) for column in columns]
    ks, means, stds, spikes = zip(*found)
    mean, std = LIMITS[epsilon]
    return dict(
        ks=round(float(np.mean(ks)), 5),
        spike=round(float(max(spikes)), 5),
        means_kept=round(float(np.mean(np.array(means) <= mean)), 4),
        stds_kept=round(float(np.mean([s <= std for s in stds if s is not None])), 4),
    )


def main():
    "One line for each table, epsilon, mechanism and seed."
    parser = argparse.ArgumentParser(description=__doc__)
    out = "nbs/experiments/results/columns/fine_mechanisms.jsonl"
    parser.add_argument("--out", default=out)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--facts", action="store_true")
    args = parser.parse_args()
    if args.facts:
        lines = [line for table in PAIRS for line in describe(table)]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        pathlib.Path(args.out).with_name("facts.jsonl").write_text(text)
        return
    ways = {name: (way, SHARE) for name, way in MECHANISMS.items()}
    for share in (SHARE, 1.0):
        for bins in (4, 16):
            ways[f"oracle, {bins} bins, share {share}"] = oracle(bins), share
    with pathlib.Path(args.out).open("w") as file:
        for table in PAIRS:
            columns = read_columns(table)
            parts = len(columns) / SHARE, PAIRS[table] / (1 - SHARE)
            ways["tree, bins known"] = known_bins(np.sqrt(parts[1] / parts[0])), SHARE
            ways |= {
                "no noise": (no_noise, 1.0),
                "another sample": (another_sample, 1.0),
            }
            for epsilon in LIMITS:
                for name, (way, share) in ways.items():
                    for seed in range(args.seeds):
                        line = dict(table=table, epsilon=epsilon, mechanism=name)
                        line |= dict(seed=seed, share=share)
                        line |= run(columns, epsilon, way, share, seed)
                        file.write(json.dumps(line) + "\n")
                        file.flush()


if __name__ == "__main__":
    main()
