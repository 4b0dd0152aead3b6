"""Third order where it pays: the default against order=2 on five tables, and the xor of
two and of three columns among ten.

    python -m benchmarks.third_order --seeds 5
    python -m benchmarks.third_order --ablation --seeds 1 --epsilons 2.5
    python -m benchmarks.third_order --misfit --seeds 1 --epsilons 2.5
    python -m benchmarks.third_order --bounds --seeds 1 --epsilons 2.5

The folder of the environment variable PRIVPGD_DATA must hold the tables. Lines that are
in the file already are not run again.
"""

import argparse
import contextlib
import functools
import itertools
import json
import math
import pathlib
import time
import warnings
from dataclasses import replace
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier as Classifier
from sklearn.ensemble import HistGradientBoostingRegressor as Regressor
from sklearn.metrics import roc_auc_score

import privpgd.app.pipeline as pipeline
import privpgd.joint.merged as merged
import privpgd.private.higher_order as higher_order
from privpgd import Budget, Categorical, PrivPGD, Schema, evaluate, load_dataset
from privpgd.core.merging import merge_columns
from privpgd.core.records import Measurement, estimate_total
from privpgd.joint.refinement import refine
from privpgd.methods.privpgd import generate
from privpgd.private.calibration import calibrate
from privpgd.private.counting import count_codes

RESULTS = pathlib.Path("nbs/experiments/results/third_order")
TABLES = ("diabetes130us", "adult", "acs_income_ca", "green_taxi", "acs_income_us")
METHODS = {"default": {}, "order 2": dict(order=2)}
ROWS = 100_000  # of the real table, for the classifier of reference


def prediction_score(train, test, at, task):
    "AUC, or R², on test rows of gradient boosting trained on codes."
    x, y = np.delete(train, at, 1), train[:, at]
    rows, truth = np.delete(test, at, 1), test[:, at]
    kind = Classifier if task == "classification" else Regressor
    model = kind(random_state=0, early_stopping=False).fit(x, y)
    if task == "classification":
        return float(roc_auc_score(truth, model.predict_proba(rows)[:, 1]))
    return float(1 - np.mean((model.predict(rows) - truth) ** 2) / np.var(truth))


class Table:
    "A table of the benchmark as codes."

    def __init__(self, name):
        self.name = name
        self.data = load_dataset(name)
        schema = self.data.schema
        self.schema = schema
        self.train, self.test = (
            schema.encode(rows) for rows in (self.data.train, self.data.test)
        )
        self.at = list(schema.names).index(self.data.target)

    def score(self, codes):
        return prediction_score(codes, self.test, self.at, self.data.task)

    def reference(self):
        "A line for the real rows."
        rng = np.random.default_rng(0)
        rows = self.train
        if len(rows) > ROWS:
            rows = rows[rng.choice(len(rows), ROWS, replace=False)]
        return dict(table=self.name, method="real", prediction=self.score(rows))

    def run(self, method, epsilon, seed, **options):
        "One line of results."
        start = time.process_time()
        model = PrivPGD(epsilon, 1e-5, seed=seed, verbose=False, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(self.data.train, self.schema)
        seconds = time.process_time() - start
        line = dict(table=self.name, method=method, epsilon=epsilon, seed=seed)
        line |= self.errors(model.codes_) | dict(seconds=round(seconds, 1))
        return line | facts_of(model)

    def errors(self, codes):
        "All errors of a copy."
        copy = codes.astype(np.int32)
        target = dict(test=self.test, target=self.data.target, task=self.data.task)
        found = evaluate(
            self.train, copy, self.schema, **target, extras=True, max_rows=50_000
        )
        errors = dict(zip(found["metric"], found["value"]))
        kept = ("downstream", "covariance", "counting", "thresholding", "sw1", "l1")
        line = {name: float(f"{errors[name]:.5g}") for name in (*kept, "tv_3way")}
        return line | dict(prediction=round(self.score(copy), 5))


def run_method(table, method, epsilon, seed):
    "One line of the comparison."
    return table.run(method, epsilon, seed, **METHODS[method])


def run_misfit(table, method, epsilon, seed):
    "How far a copy of the pairs is from merged triples, in parts of the rows."
    model = PrivPGD(epsilon, 1e-5, seed=seed, verbose=False, order=2)
    codes = model.fit(table.data.train, table.schema).codes_
    names, shape = table.schema.names, table.schema.shape
    margins = [np.bincount(codes[:, j], minlength=k) for j, k in enumerate(shape)]
    merging = merge_columns(table.schema, margins, higher_order.LEAST_BLOCKS)
    cliques = list(itertools.combinations(names, 3))
    shares = []
    for rows in (table.train, codes):
        tally = higher_order.MergedTally(merging, cliques)
        tally.add(rows)
        shares.append([tally[c] / len(rows) for c in cliques])
    gaps = [float(np.abs(a - b).sum()) for a, b in zip(*shares)]
    line = dict(table=table.name, method=method, epsilon=epsilon, seed=seed)
    ranks = {f"top {k}": round(sorted(gaps)[-k], 4) for k in (1, 10, 30)}
    return line | ranks


@functools.lru_cache(maxsize=1)
def pairs_alone(table, epsilon, seed):
    "A copy of the pairs, and their tables."
    model = PrivPGD(epsilon, 1e-5, seed=seed, verbose=False, order=2)
    model.fit(table.data.train, table.schema)
    return model.codes_, model.tables_


def with_triples(
    table, epsilon, seed, blocks, number=None, factor=1.0, sweeps=3, weight=None
):
    """A copy of noisy pairs, refined towards merged triples.

    All of them without noise; or so many, chosen without noise, with the noise of a
    tenth of the budget times a factor."""
    codes, tables = pairs_alone(table, epsilon, seed)
    names, shape, n = table.schema.names, table.schema.shape, len(table.train)
    margins = [np.bincount(codes[:, j], minlength=k) for j, k in enumerate(shape)]
    merging = merge_columns(table.schema, margins, blocks)
    cliques = list(itertools.combinations(names, 3))
    own, tally = (higher_order.MergedTally(merging, cliques) for _ in range(2))
    own.add(codes)
    tally.add(table.train)
    sigma, rng = 1.0, np.random.default_rng(0)
    if number is not None:
        alone = calibrate(Budget(epsilon=epsilon, delta=1e-5), [1.0])[0]
        sigma = float(alone) * (number / higher_order.MOST_SHARE) ** 0.5 * factor
        score = {
            c: higher_order.misfit_score(tally[c], own[c] / len(codes), n, sigma)
            for c in cliques
        }
        cliques = sorted(cliques, key=lambda c: -score[c])[:number]
        cliques = [c for c in cliques if score[c] > 0]
    measured = []
    for c in cliques:
        noise = 0 if number is None else rng.normal(0, sigma, tally[c].shape)
        measured.append(SimpleNamespace(clique=c, counts=tally[c] + noise, sigma=sigma))
    found = merged.merged_tables(measured, codes, merging, n)
    more = dict(seed=seed, sweeps=sweeps, merged=found)
    with mock.patch.object(merged, "MERGED_WEIGHT", weight or merged.MERGED_WEIGHT):
        return refine(codes, tables, table.schema, **more)


def with_exact_pairs(table, epsilon, seed):
    "A copy of all pairs without noise."
    cliques = list(itertools.combinations(table.schema.names, 2))
    counts = count_codes(table.train, table.schema, cliques)
    exact = [Measurement(c, counts[c], 1e-3, len(table.train)) for c in cliques]
    return generate(exact, table.schema, seed=seed, verbose=False).codes


def sample_of_rows(table, epsilon, seed):
    "As many independent draws from the rows as a copy has rows."
    rng = np.random.default_rng(seed)
    few = len(table.train) < 100_000
    return table.train[rng.choice(len(table.train), 100_000, replace=few)]


BOUNDS = {  # copies that are not private: what would be the best case?
    "sample of the rows": sample_of_rows,
    "exact pairs": with_exact_pairs,
}
for blocks in (4, 8, 16):
    exact = functools.partial(with_triples, blocks=blocks)
    BOUNDS[f"all triples without noise, {blocks} blocks"] = exact
BOUNDS["all triples without noise, 8 blocks, 12 sweeps, weight 1"] = functools.partial(
    with_triples, blocks=8, sweeps=12, weight=1.0
)
SIMULATED = ((48, 5), (18, 5), (18, 6), (18, 7), (18, 8), (10, 8), (10, 12), (30, 8))
SIMULATED += ((40, 3), (23, 3), (23, 4), (11, 4), (11, 5), (3, 5), (3, 8))
for number, blocks in SIMULATED:
    noisy = functools.partial(with_triples, blocks=blocks, number=number)
    BOUNDS[f"{number} triples, {blocks} blocks"] = noisy
for number, blocks in ((23, 4), (18, 7)):  # less noise, by the factor 1 - 1 / blocks
    noisy = functools.partial(
        with_triples, blocks=blocks, number=number, factor=1 - 1 / blocks
    )
    BOUNDS[f"{number} triples, {blocks} blocks, residual noise"] = noisy


def run_bound(table, method, epsilon, seed):
    "One line of a copy that is not private."
    line = dict(table=table.name, method=method, epsilon=epsilon, seed=seed)
    return line | table.errors(BOUNDS[method](table, epsilon, seed))


def facts_of(model):
    "What a model has measured of three and four columns."
    found = model.higher_
    spent = dict(spent=round(model.privacy_.epsilon, 4))
    if found is None:
        return spent | dict(cliques=0, again=0)
    cliques = {m.clique for m in found.measurements}
    return spent | dict(
        cliques=len(cliques), again=len(found.pairs), blocks=max(found.merging.shape)
    )


def xor_table(k, seed, n=20_000, columns=10, error=0.1):
    "Fair coins; the last column is the xor of the first k, with some errors."
    rng = np.random.default_rng([seed, k])
    x = rng.integers(0, 2, (n, columns))
    x[:, -1] = np.bitwise_xor.reduce(x[:, :k], axis=1) ^ (rng.random(n) < error)
    return pd.DataFrame(x, columns=[f"x{j}" for j in range(columns)])


def run_xor(k, method, epsilon, seed, **options):
    "One line: how often the copy obeys the xor."
    rows = xor_table(k, seed)
    schema = Schema([Categorical(c, (0, 1)) for c in rows])
    model = PrivPGD(epsilon, 1e-5, seed=seed, verbose=False, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codes = model.fit(rows, schema).codes_
    true = np.bitwise_xor.reduce(codes[:, :k], axis=1) == codes[:, -1]
    line = dict(table=f"xor of {k}", method=method, epsilon=epsilon, seed=seed)
    return line | dict(true=round(float(true.mean()), 4)) | facts_of(model)


def _oracle_choice(scores, k, *_):
    "The best scores without noise: not private, to see what the choice costs."
    return np.argsort(-np.asarray(scores))[:k].tolist()


def _random_choice(scores, k, *_):
    real = [i for i, s in enumerate(scores) if s != 0.0]
    return np.random.default_rng(0).permutation(real)[:k].tolist()


def _slots_to_triples(frame, schema, copy, measurements, plan, account, *more):
    "As `measure_higher`, but free slots measure the chosen tables, on finer blocks."
    total, merging = estimate_total(measurements), []

    def measure_finer(oracle, chosen, sigma):
        noise = sigma * math.sqrt(len(chosen) / plan.slots)
        noise *= higher_order.MISFIT / 0.04  # it may be a larger part of the rows
        blocks = higher_order.number_of_blocks(schema.shape, total, noise)
        if blocks > max(oracle.merging.shape):
            margins = [
                np.bincount(x, minlength=k) for x, k in zip(copy.T, schema.shape)
            ]
            finer = merge_columns(schema, margins, blocks)
            oracle.prepare_merged(chosen, finer)
        merging.append(oracle.merging)
        slots = itertools.islice(itertools.cycle(chosen), plan.slots)
        return _measure(oracle, list(slots), sigma)

    with (
        mock.patch.object(higher_order.MergedOracle, "measure", measure_finer),
        mock.patch.object(higher_order, "_measure_again", lambda *_: []),
    ):
        found = _measure_higher(frame, schema, copy, measurements, plan, account, *more)
    return replace(found, merging=merging[0]) if merging else found


def _add_in_rounds(frame, job, codes, plan, account, recorder):
    "As the pipeline, but half of the slots are chosen when the other half is fitted."

    def measure(frame, schema, copy, measurements, plan, account, unit, seed):
        half, total = plan.slots // 2, estimate_total(measurements)
        parts = replace(plan, slots=half), replace(plan, slots=plan.slots - half)
        facts = frame, schema, measurements, account, unit, seed
        first = _half_of_the_slots(parts[0], copy, facts)
        if first.measurements:
            found = first.measurements, first.merging, schema, total
            copy = job.generator.fit_merged(*found)
        return _half_of_the_slots(parts[1], copy, facts, first, half)

    with mock.patch.object(pipeline, "measure_higher", measure):
        return _add_higher(frame, job, codes, plan, account, recorder)


def _half_of_the_slots(plan, copy, facts, first=None, half=0):
    "One of two rounds; free slots of both go to pairs in the second."
    frame, schema, measurements, account, unit, seed = facts
    free = half - len(first.measurements) if first else 0
    merge, again = merge_columns, lambda *_: []
    if first is not None:
        merge = lambda *_: first.merging  # noqa: E731
        again = lambda o, c, s, left: _again(o, c, s, left + free)  # noqa: E731
    with (
        mock.patch.object(higher_order, "merge_columns", merge),
        mock.patch.object(higher_order, "_measure_again", again),
    ):
        noise = seed if first is None else seed + 1000
        found = (plan, account, unit, noise)
        found = _measure_higher(frame, schema, copy, measurements, *found)
    if first is None:
        return found
    return replace(found, measurements=[*first.measurements, *found.measurements])


def _triples_alone(merged, fine=()):
    return _targets(merged)


_targets = merged.MergedTables.targets
_measure = higher_order.MergedOracle.measure
_measure_higher = higher_order.measure_higher
_add_higher = pipeline._add_higher_order
_again = higher_order._measure_again
_orders = higher_order.candidate_orders
ABLATIONS = {  # names of the chapters that are replaced, and options of the model
    "default": {},
    "choice without noise": dict(noisy_top=_oracle_choice),
    "random choice": dict(noisy_top=_random_choice),
    "free slots to triples": dict(measure_higher=_slots_to_triples),
    "share 0.05": dict(MOST_SHARE=0.05),
    "share 0.2": dict(MOST_SHARE=0.2),
    "target": dict(target=True),
    "two rounds": dict(_add_higher_order=_add_in_rounds),
    "no sets of four columns": dict(
        candidate_orders=lambda shape, _: _orders(shape, 3)
    ),
    "100,000 particles": dict(n_particles=100_000),
    "200,000 particles": dict(n_particles=200_000),
    "order 2, 200,000 particles": dict(n_particles=200_000, order=2),
    "weight 1": dict(MERGED_WEIGHT=1.0),
    "without merged pairs": dict(targets=_triples_alone),
    "weight 1, without merged pairs": dict(MERGED_WEIGHT=1.0, targets=_triples_alone),
}


def run_ablation(table, name, epsilon, seed):
    "One line with a choice changed."
    options = dict(ABLATIONS[name])
    own = ("n_particles", "order", "target")
    model = {key: options.pop(key) for key in own if key in options}
    if "target" in model:
        model["target"] = table.data.target
    with contextlib.ExitStack() as stack:
        for key, value in options.items():
            homes = (pipeline, higher_order, merged, merged.MergedTables)
            home = next(h for h in homes if hasattr(h, key))
            stack.enter_context(mock.patch.object(home, key, value))
        return table.run(name, epsilon, seed, **model)


def main():
    "Run what is missing, and append a line for each run."
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--epsilons", default="2.5,1.0,0.2")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--ablation", action="store_true")
    parser.add_argument("--misfit", action="store_true")
    parser.add_argument("--bounds", action="store_true")
    parser.add_argument("--methods", help="names with ; between them, instead of all")
    args = parser.parse_args()
    other = args.ablation or args.misfit or args.bounds
    name = "third_order_ablation.jsonl" if other else "third_order.jsonl"
    out = args.out or RESULTS / name
    lines = out.read_text().splitlines() if out.exists() else []
    keys = ("table", "method", "epsilon", "seed")
    done = {tuple(json.loads(line).get(k) for k in keys) for line in lines}

    plain = {}  # runs in which the default has spent nothing on three columns

    def once(key, work):
        if key not in done:
            twin = plain.get((key[0], *key[2:]))
            line = (
                twin | dict(method=key[1]) if key[1] == "order 2" and twin else work()
            )
            if (
                key[1] == "default"
                and not line.get("cliques")
                and not line.get("again")
            ):
                plain[(key[0], *key[2:])] = line  # the same run as with order=2
            done.add(key)
            with out.open("a") as f:
                f.write(json.dumps(line) + "\n")
            print(line, flush=True)

    loaded = {}
    epsilons = list(map(float, args.epsilons.split(",")))
    methods, run = METHODS, run_method
    if args.misfit:
        methods, run = ("misfit",), run_misfit
    elif args.bounds:
        methods, run = BOUNDS, run_bound
    elif args.ablation:
        methods, run = ABLATIONS, run_ablation
    if args.methods:
        methods = args.methods.split(";")
    for seed in range(args.first, args.seeds):
        if not other:
            for k in (2, 3):
                for m, o in METHODS.items():
                    for e in epsilons:
                        work = functools.partial(run_xor, k, m, e, seed, **o)
                        once((f"xor of {k}", m, e, seed), work)
        for t in args.tables.split(","):
            if t not in loaded:
                loaded[t] = Table(t)
            table = loaded[t]
            once((t, "real", None, None), table.reference)
            for e in epsilons:
                for m in methods:
                    work = functools.partial(run, table, m, e, seed)
                    once((t, m, e, seed), work)


if __name__ == "__main__":
    main()
