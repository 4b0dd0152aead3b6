"""Copies of two tables and of a stress test, measured by rulers that are not ours.

    python -m benchmarks.other_rulers --copies COPIES
    python -m venv sdm && sdm/bin/pip install sdmetrics==0.32.0
    sdm/bin/python benchmarks/peers/score_sdmetrics.py COPIES nbs/experiments/results/rulers/sdmetrics.jsonl

and the peers as published, each in the environment that peers/environments.py has made:

    python -m benchmarks.other_rulers --copies COPIES --environments FOLDER --methods dpmm-mst

COPIES gets the rows, as CSV files. Lines that are in the file already are not run again.
The folder of the environment variable PRIVPGD_DATA must hold the tables.
"""

import argparse
import functools
import itertools
import json
import pathlib
import time
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import train_test_split

from benchmarks.peers import methods as peers
from benchmarks.peers.run import environment_of
from benchmarks.peers.run import run as run_peer
from privpgd import Categorical, Schema, evaluate, load_dataset
from privpgd.app.jobs import METHODS, versions
from privpgd.evaluation.results import append_line

RESULTS = pathlib.Path("nbs/experiments/results/rulers")
TABLES = ("adult", "diabetes130us", "stress")
ORDER = ("real", "privpgd", "open bins", "pgm+mst", "mop", "pgm+aim", "privpgd-paper")
BINS, QUERIES, WIDTH = 100, 1000, 3  # of the benchmark of SIGMOD 2025
ROWS = 100_000  # of every copy
TUNING_ROWS = 30_000
PEER_SECONDS = 600  # of processor time
PEERS = [name for name, made in peers.METHODS.items() if made[0]]  # own environment
RAW = ("mean", "std", "q50", "q95", "ks", "w1_std")  # of each column
RAW_PAIRS = ("spearman", "cramers_v")


# ---- the errors of the benchmark of SIGMOD 2025 -------------------------------------
def hundred_bins(left, right, numeric):
    "Both tables as codes; numbers cut over the range of both."
    out = [], []
    for name in left:
        pair = left[name], right[name]
        if name in numeric:
            both = pd.concat(pair).astype(float)
            low, width = both.min(), max(both.max() - both.min(), 1e-12)
            codes = [
                np.round((BINS - 1) * (c.astype(float) - low) / width) for c in pair
            ]
            codes = [c.fillna(-1).astype(int).to_numpy() for c in codes]
        else:
            codes = pd.factorize(pd.concat(pair).astype(str))[0]
            codes = codes[: len(left)], codes[len(left) :]
        for side, c in zip(out, codes):
            side.append(c - min(x.min() for x in codes))
    return [np.stack(side, 1) for side in out]


def distances(real, copy, width):
    "Mean total variation distance of all tables of so many columns."
    size = np.maximum(real.max(0), copy.max(0)) + 1
    found = []
    for group in itertools.combinations(range(real.shape[1]), width):
        cells = [
            np.ravel_multi_index(c[:, group].T, size[list(group)]) for c in (real, copy)
        ]
        k = int(np.prod(size[list(group)]))
        p, q = (np.bincount(c, minlength=k) / len(c) for c in cells)
        found.append(np.abs(p - q).sum() / 2)
    return float(np.mean(found))


def range_error(real, copy, numeric, seed=0):
    "Mean error of random queries; as in their code, after each condition of a query."
    rng = np.random.default_rng(seed)
    names = list(real)
    sides = {}
    for name in names:
        kind = float if name in numeric else str
        sides[name] = [t[name].astype(kind).to_numpy() for t in (real, copy)]
    errors = []
    for _ in range(QUERIES):
        hits = [np.ones(len(t), bool) for t in (real, copy)]
        for j in rng.choice(len(names), WIDTH, replace=False):
            x, y = sides[names[j]]
            if names[j] in numeric:
                low, high = np.sort(rng.uniform(np.nanmin(x), np.nanmax(x), 2))
                found = [(v >= low) & (v <= high) for v in (x, y)]
            else:
                level = rng.choice(np.unique(x))
                found = [v == level for v in (x, y)]
            hits = [h & f for h, f in zip(hits, found)]
            errors.append(abs(hits[0].mean() - hits[1].mean()))
    return float(np.mean(errors))


def tuned_scores(codes, test, at):
    "The better of two families, tuned on a part of the copy: macro F1 and AUC."
    rng = np.random.default_rng(0)
    if len(codes) > TUNING_ROWS:
        codes = codes[rng.choice(len(codes), TUNING_ROWS, replace=False)]
    x, y = np.delete(codes, at, 1), codes[:, at]
    if len(np.unique(y)) < 2:
        return dict(f1=0.0, auc=0.5)
    xs, xv, ys, yv = train_test_split(x, y, test_size=0.25, random_state=0, stratify=y)
    boost = functools.partial(HistGradientBoostingClassifier, random_state=0)
    forest = functools.partial(RandomForestClassifier, 100, random_state=0)
    models = [
        boost(learning_rate=a, max_iter=b) for a in (0.05, 0.1) for b in (100, 300)
    ]
    models += [forest(min_samples_leaf=leaf) for leaf in (1, 5, 20)]
    found = [
        (f1_score(yv, m.fit(xs, ys).predict(xv), average="macro"), m) for m in models
    ]
    best = max(found, key=lambda pair: pair[0])[1].fit(x, y)
    rows, truth = np.delete(test, at, 1), test[:, at]
    share = best.predict_proba(rows)[:, 1]
    score = f1_score(truth, best.predict(rows), average="macro")
    return dict(f1=float(score), auc=float(roc_auc_score(truth, share)))


# ---- tables of high order ------------------------------------------------------------
def stress_table(n=20_000, seed=0):
    "Bits whose parity and digits whose sum decide a column, in nine of ten rows."
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, (n, 8))
    digits = rng.integers(0, 6, (n, 2))
    noise = rng.random((n, 3)) < 0.1
    xor2 = bits[:, 0] ^ bits[:, 1] ^ noise[:, 0]
    xor3 = bits[:, 2] ^ bits[:, 3] ^ bits[:, 4] ^ noise[:, 1]
    total = digits.sum(1) % 6
    total = np.where(noise[:, 2], rng.integers(0, 6, n), total)
    codes = np.column_stack([bits, digits, xor2, xor3, total])
    names = [*(f"bit{j}" for j in range(8)), "a", "b", "xor2", "xor3", "sum"]
    frame = pd.DataFrame(codes, columns=names)
    levels = [6 if name in ("a", "b", "sum") else 2 for name in names]
    pairs = zip(names, levels)
    return frame, Schema([Categorical(name, tuple(range(k))) for name, k in pairs])


def stress_scores(copy):
    "How often the rule of each column holds."
    c = {name: copy[name].to_numpy().astype(int) for name in copy}
    return dict(
        xor2=float(np.mean(c["xor2"] == c["bit0"] ^ c["bit1"])),
        xor3=float(np.mean(c["xor3"] == c["bit2"] ^ c["bit3"] ^ c["bit4"])),
        sum=float(np.mean(c["sum"] == (c["a"] + c["b"]) % 6)),
    )


def open_bins(frame, schema, epsilon, delta, seed):
    "The default as a user meets it: bounds alone, bins and values from the noise."
    typed = schema.without_bins()
    return METHODS["privpgd"](frame, typed, epsilon, delta, seed, n_particles=ROWS)


def published(name, environments):
    "A peer as published, on the codes of the schema; add-or-remove neighbours."

    def make(frame, schema, epsilon, delta, seed):
        python, reason = environment_of(name, environments)
        job = dict(dataset="", method=name, epsilon=epsilon, delta=delta, seed=seed)
        kept = SimpleNamespace(
            train=schema.encode(frame),
            schema=schema,
            errors=lambda codes: dict(codes=codes),
        )
        line = {} if reason else run_peer(kept, job, python, PEER_SECONDS)
        if "codes" not in line:
            raise RuntimeError(f"{name}: {reason or line}")
        facts = {key: line[key] for key in ("version", "neighbors", "seconds")}
        return schema.decode(line["codes"], seed=seed), facts

    return make


# ---- one line a copy -----------------------------------------------------------------
def ruler_scores(data, copy):
    "All rulers of this script on one copy of a table."
    numeric = [c.name for c in data.schema.columns if c.axis.kind == "number"]
    names = list(data.schema.names)
    real, copy = data.test[names], copy[names]
    left, right = hundred_bins(real, copy, numeric)
    codes, test = (data.schema.encode(t) for t in (copy, data.test))
    target = dict(test=data.test, target=data.target, task=data.task)
    raw = evaluate(data.train, copy, data.schema, raw=True, max_rows=20_000, **target)
    line = dict(
        tvd1=distances(left, right, 1),
        tvd2=distances(left, right, 2),
        range=range_error(real, copy, numeric),
        **tuned_scores(codes, test, names.index(data.target)),
    )
    return line | dict(raw=raw_errors(raw))


def raw_errors(found):
    "Errors in the units of the columns: of each column, and means over the pairs."
    groups = found.groupby("metric")
    out = {}
    for name in RAW:
        if name in groups.groups:
            rows = groups.get_group(name)
            out[name] = dict(zip(rows["column"], rows["value"].round(6)))
    for name in RAW_PAIRS:
        if name in groups.groups:
            out[name] = float(groups.get_group(name)["value"].abs().mean())
    return out


def write_copy(frame, data, path):
    "The rows and, once, the real rows and the kinds of the columns."
    path.parent.mkdir(parents=True, exist_ok=True)
    frame.to_csv(path, index=False)
    kinds = {
        c.name: "numerical" if c.axis.kind == "number" else "categorical"
        for c in data.schema.columns
    }
    (path.parent / "kinds.json").write_text(json.dumps(kinds))
    data.train.to_csv(path.parent / "train.csv.gz", index=False)


def maker(method, environments):
    "The function that makes a copy."
    if method in PEERS:
        return published(method, environments)
    if method == "privpgd":  # which would make 200,000 where it measures three columns
        return functools.partial(METHODS[method], n_particles=ROWS)
    return open_bins if method == "open bins" else METHODS[method]


def run(table, method, epsilon, seed, copies, environments=None):
    "One line."
    data = None if table == "stress" else load_dataset(table)
    frame, schema = stress_table() if data is None else (data.train, data.schema)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make = maker(method, environments)
        copy, facts = make(frame, schema, epsilon, 1e-5, seed)
    line = dict(table=table, method=method, epsilon=epsilon, seed=seed)
    line |= dict(seconds=time.process_time() - began, source=versions()["source"])
    line |= dict(rows=len(copy)) | (facts if method in PEERS else {})
    if data is None:
        return line | stress_scores(copy)
    write_copy(copy, data, copies / table / f"{method}_{epsilon:g}_{seed}.csv.gz")
    return line | ruler_scores(data, copy)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--copies", type=pathlib.Path, required=True)
    parser.add_argument("--environments", type=pathlib.Path)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--methods", default=",".join(ORDER))
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    args = parser.parse_args()
    path = args.out / "rulers.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    key = ("table", "method", "epsilon", "seed")
    known = path.read_text().splitlines() if path.exists() else []
    done = {tuple(json.loads(line)[k] for k in key) for line in known}
    tables, methods = args.tables.split(","), args.methods.split(",")
    for seed, method, table in itertools.product(range(args.seeds), methods, tables):
        if method == "open bins" and table == "stress":  # it has no numbers
            continue
        if (table, method, args.epsilon, seed) in done:
            continue
        line = run(table, method, args.epsilon, seed, args.copies, args.environments)
        append_line(path, line)
        print({k: v for k, v in line.items() if k != "raw"}, flush=True)


if __name__ == "__main__":
    main()
