"""Coverage of intervals: how often do they hold the truth?

Every trial draws rows from a population whose truth is known, fits a model with the
defaults, and asks for statistics in five ways: from the rows without privacy ("rows"),
from the copy as if it were data ("naive"), from five samples of the copy by Rubin's
rule ("rubin"), from `model.replicates` by the same rule ("replicates"), and with
`model.estimate` ("ours"). Each answer is one line of JSON, of which `--collect` keeps
how far it missed the truth, in half widths of its interval. The outer loop runs over
trials, so a run that is stopped has the same trials in every cell with as many rows,
up to one, and the same command goes on with it. Of large tables, which take longer,
only every k-th trial may be run. Lines that were kept before stay, but for statistics
that were counted anew; with `--first`, new trials are added to theirs.

    python benchmarks/interval_coverage.py --populations made_up --rows 2000 20000 \\
        --every 1 2 --epsilons 1.0 --trials 40 --out trials
    python benchmarks/interval_coverage.py --collect trials --out .
"""

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pandas as pd

from privpgd import Boolean, Categorical, Numeric, Ordinal, PrivPGD, Schema
from privpgd.core.checks import InputError
from privpgd.evaluation.combining import combine
from privpgd.evaluation.datasets import load_dataset

MADE_UP = Schema(
    [
        Boolean("sex"),
        Categorical("region", list("NESW")),
        Numeric("age", 18, 90, integer=True),
        Ordinal("edu", list(range(6))),
        Numeric("hours", 1, 80, integer=True),
        Numeric("income", 0, 300_000, integer=True),
        Boolean("ill"),
    ]
)


def made_up(n, rng):
    "Persons with an income and an illness that depend on the other columns."
    sex = rng.random(n) < 0.5
    region = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    age = np.clip(np.rint(18 + rng.gamma(4, 7, n)), 18, 90)
    edu = 2.2 + 0.4 * (region == 0) - 0.012 * (age - 45) + rng.normal(0, 1.1, n)
    edu = np.clip(np.rint(edu), 0, 5)
    worked = np.where(rng.random(n) < 0.35, 40, 38 + 5 * sex + rng.normal(0, 9, n))
    hours = np.clip(np.rint(worked), 1, 80)
    log_income = 9.6 + 0.13 * edu + 0.008 * (age - 45) + 0.012 * (hours - 40)
    income = np.exp(log_income + 0.15 * sex + rng.normal(0, 0.5, n))
    income = np.clip(np.rint(income), 0, 300_000)
    odds = -0.4 + 0.03 * (age - 45) - 0.25 * (edu - 2) + 0.4 * sex
    odds = odds - 0.00001 * (income - 20_000)
    return pd.DataFrame(
        {
            "sex": sex,
            "region": np.array(list("NESW"))[region],
            "age": age.astype(int),
            "edu": edu.astype(int),
            "hours": hours.astype(int),
            "income": income.astype(int),
            "ill": rng.random(n) < 1 / (1 + np.exp(-odds)),
        }
    )


class Statistic(NamedTuple):
    "A function of a table, and its standard errors as a program prints them."

    value: Callable
    error: Callable


def mean(values):
    "A mean, and its standard error, of a function of a table."

    def error(t):
        x = np.asarray(values(t), float)
        return x.std(ddof=1) / np.sqrt(len(x))

    return Statistic(lambda t: np.asarray(values(t), float).mean(), error)


def difference(values, group):
    "A difference of means of two groups, and its standard error."

    def parts(t):
        x, chosen = np.asarray(values(t), float), np.asarray(group(t), bool)
        return x[chosen], x[~chosen]

    def value(t):
        a, b = parts(t)
        return a.mean() - b.mean()

    def error(t):
        return np.sqrt(sum(x.var(ddof=1) / len(x) for x in parts(t)))

    return Statistic(value, error)


def quantile(values, p):
    "A quantile, and its standard error from the spacing of quantiles nearby."

    def error(t):
        x = np.asarray(values(t), float)
        width = np.sqrt(p * (1 - p) / len(x))
        low, high = np.quantile(x, np.clip([p - width, p + width], 0, 1))
        return (high - low) / 2

    return Statistic(lambda t: np.quantile(np.asarray(values(t), float), p), error)


def _with_ones(x):
    return np.c_[np.ones(len(x)), x]


def least_squares(design, target):
    "Slopes of a linear regression, and errors that allow unequal variances."

    def fit(t):
        x, y = _with_ones(design(t)), target(t)
        inner = x.T @ x
        spread = np.diag(inner) * inner[0, 0] - inner[0] ** 2
        if (spread[1:] <= 1e-9 * inner[0, 1:] ** 2).any():  # hidden by the noise
            return x, y, np.full(x.shape[1], np.nan)
        return x, y, np.linalg.solve(inner, x.T @ y)

    def error(t):
        x, y, found = fit(t)
        inner = np.linalg.pinv(x.T @ x)
        scores = x * (y - x @ found)[:, None]
        return np.sqrt(np.diag(inner @ (scores.T @ scores) @ inner))[1:]

    return Statistic(lambda t: fit(t)[2][1:], error)


def logistic(design, target):
    "Slopes of a logistic regression by Newton's method, and their errors."

    start = {}  # the last answer, from which the next search sets out

    def search(x, y, found):
        for _ in range(25):
            chance = 1 / (1 + np.exp(-np.clip(x @ found, -30, 30)))
            inner = (x.T * (chance * (1 - chance))) @ x
            inner[np.diag_indices_from(inner)] += 1e-9
            step = np.linalg.solve(inner, x.T @ (y - chance))
            found = found + step
            size = np.abs(step).max()
            if size < 1e-4:  # the next step would be its square
                return found, inner
            if size > 1e3:
                break
        return None

    def fit(t):
        x, y = _with_ones(design(t)), target(t)
        zeros = np.zeros(x.shape[1])
        answer = search(x, y, start.get("found", zeros)) or search(x, y, zeros)
        if answer is None:
            return np.full(x.shape[1], np.nan), np.eye(x.shape[1])
        start["found"] = answer[0]
        return answer

    def error(t):
        return np.sqrt(np.diag(np.linalg.inv(fit(t)[1])))[1:]

    return Statistic(lambda t: fit(t)[0][1:], error)


def numbers(t, *names):
    "Columns as a matrix of numbers."
    return np.stack([t[name].to_numpy(dtype=float) for name in names], 1)


def one(name):
    "A column as an array of numbers."
    return lambda t: t[name].to_numpy(dtype=float)


MADE_UP_STATISTICS = {
    "mean age": mean(one("age")),
    "mean income": mean(one("income")),
    "share ill": mean(one("ill")),
    "share educated women": mean(lambda t: (t["edu"] >= 3) & t["sex"].astype(bool)),
    "difference of income by sex": difference(one("income"), one("sex")),
    "difference of ill by edu": difference(one("ill"), lambda t: t["edu"] >= 3),
    "median income": quantile(one("income"), 0.5),
    "0.9 quantile of income": quantile(one("income"), 0.9),
    "0.9 quantile of age": quantile(one("age"), 0.9),
    "linear regression": least_squares(
        lambda t: numbers(t, "age", "edu", "hours", "sex"),
        lambda t: one("income")(t) / 1000,
    ),
    "logistic regression": logistic(
        lambda t: numbers(t, "age", "edu", "sex", "income") / [10, 1, 1, 20_000],
        one("ill"),
    ),
}


ADULT = Schema(
    [
        Numeric("age", 17, 90, integer=True),
        Numeric("education_num", 1, 16, integer=True),
        Boolean("married"),
        Boolean("male"),
        Numeric("hours_per_week", 1, 99, integer=True),
        Numeric("capital_loss", 0, 5000, integer=True),
        Boolean("rich"),
    ]
)


def _adult_design(t):
    columns = numbers(t, "age", "education_num", "hours_per_week", "male", "married")
    return columns / [10, 1, 10, 1, 1]


def _is(name, level):
    return lambda t: np.asarray(t[name] == level, float)


ADULT_STATISTICS = {
    "mean age": mean(one("age")),
    "mean capital loss": mean(one("capital_loss")),
    "share rich": mean(one("rich")),
    "difference of hours by sex": difference(one("hours_per_week"), one("male")),
    "difference of rich by sex": difference(one("rich"), one("male")),
    "median age": quantile(one("age"), 0.5),
    "0.9 quantile of hours": quantile(one("hours_per_week"), 0.9),
    "linear regression": least_squares(
        lambda t: np.delete(_adult_design(t), 2, 1), one("hours_per_week")
    ),
    "logistic regression": logistic(_adult_design, one("rich")),
}


ACS = Schema(
    [
        Numeric("AGEP", 17, 99, integer=True),
        Numeric("SCHL", 1, 24, integer=True),
        Ordinal("MAR", [1, 2, 3, 4, 5]),
        Numeric("WKHP", 1, 99, integer=True),
        Ordinal("SEX", [1, 2]),
        Ordinal("PINCP", [0, 1]),
    ]
)


def _acs_design(t, *names):
    return np.c_[numbers(t, *names), _is("MAR", 1)(t)]


ACS_STATISTICS = {
    "mean age": mean(one("AGEP")),
    "share rich": mean(one("PINCP")),
    "difference of hours by sex": difference(one("WKHP"), _is("SEX", 1)),
    "difference of rich by sex": difference(one("PINCP"), _is("SEX", 1)),
    "median age": quantile(one("AGEP"), 0.5),
    "0.9 quantile of hours": quantile(one("WKHP"), 0.9),
    "linear regression": least_squares(
        lambda t: _acs_design(t, "AGEP", "SCHL", "SEX"), one("WKHP")
    ),
    "logistic regression": logistic(
        lambda t: _acs_design(t, "AGEP", "SCHL", "WKHP", "SEX") / [10, 1, 10, 1, 1],
        one("PINCP"),
    ),
}


def resampled(name, schema):
    "Rows of a public table, drawn with replacement; the table is the population."
    data = load_dataset(name, download=False)
    whole = pd.concat([data.train, data.test], ignore_index=True)
    if name == "adult":
        whole["married"] = whole["marital_status"] == "Married-civ-spouse"
        whole["male"] = whole["sex"] == "Male"
        whole["rich"] = whole["income"] == ">50K"
    whole = whole[schema.names].copy()
    for column in schema.columns:
        if type(column).__name__ in ("Ordinal", "Numeric"):
            whole[column.name] = whole[column.name].astype(float).astype(int)

    def draw(n, rng):
        if n is None:
            return whole
        return whole.iloc[rng.integers(0, len(whole), n)].reset_index(drop=True)

    return draw


POPULATIONS = {
    "made_up": (MADE_UP, MADE_UP_STATISTICS, lambda: made_up),
    "adult": (ADULT, ADULT_STATISTICS, lambda: resampled("adult", ADULT)),
    "acs_income_us": (ACS, ACS_STATISTICS, lambda: resampled("acs_income_us", ACS)),
}


def truth_of(name, draw, statistics, folder):
    "The statistics of the population, computed once and kept in a file."
    file = folder / f"truth_{name}.json"
    if not file.exists():
        rows = 4_000_000 if name == "made_up" else None
        whole = draw(rows, np.random.default_rng(5))
        found = {what: flat(f.value(whole))[0] for what, f in statistics.items()}
        file.write_text(json.dumps({what: v.tolist() for what, v in found.items()}))
    return json.loads(file.read_text())


TABLES = 5  # samples of the copy in Rubin's rule
REPLICATES = 20  # tables of model.replicates
EVERY = 10  # trials of which one has the tables of both rules


def flat(*values):
    "Values as arrays of one dimension."
    return [np.atleast_1d(np.asarray(value, float)) for value in values]


def by_rubin(statistic, tables, **options):
    "Values and half widths by Rubin's rule, for each part of a statistic."
    values = np.stack([flat(statistic.value(t))[0] for t in tables], 1)
    errors = np.stack([flat(statistic.error(t))[0] for t in tables], 1)
    start = flat(statistic.value(options["base"]))[0] if options else None
    answers = []
    for j, (found, spread) in enumerate(zip(values, errors**2)):
        more = {"base": start[j], "step": options["step"]} if options else {}
        try:
            one = combine(found, spread, **more)
        except InputError:  # a table on which the statistic has no answer
            answers.append([np.nan, np.nan])
            continue
        answers.append([one.value, one.high - one.value])
    return answers


def one_trial(
    schema, statistics, rows, epsilon, seed, rules, about, base=None, **options
):
    "Lines of one table: every statistic in three ways, or in five with the rules."
    n = len(rows)
    began = time.process_time()
    own = int(np.random.default_rng([13, n, int(1000 * epsilon), seed]).integers(2**31))
    model = PrivPGD(epsilon, 1e-6, seed=own, verbose=False, **options)
    model.fit(rows, schema)
    fitted = time.process_time() - began
    copy = model.sample()
    copies = made = None
    if rules:
        copies = [model.sample(n, seed=own + k) for k in range(TABLES)]
        made = model.replicates(REPLICATES, "rows", rows=n)
    for what, f in statistics.items():
        began = time.process_time()
        try:
            found = model.estimate(f.value, about=about, rows=base)
        except InputError:  # refused: nothing is known
            none = np.full(np.shape(f.value(rows)), np.nan)
            fields = ("value", "std_error", "low", "high", "unmeasured")
            found = SimpleNamespace(**dict.fromkeys(fields, none), method="refused")
        seconds = time.process_time() - began
        real, naive = (flat(f.value(t), f.error(t)) for t in (rows, copy))
        ours = flat(found.value, found.std_error, found.low, found.high)
        unseen = flat(found.unmeasured)[0]
        rubin = copies and by_rubin(f, copies)
        replicated = made and by_rubin(f, made, base=made.base, step=made.step)
        for j in range(len(unseen)):
            yield {
                "statistic": what,
                "part": j,
                "rows": [float(v[j]) for v in real],
                "naive": [float(naive[0][j]), naive[1][j] * np.sqrt(len(copy) / n)],
                "rubin": rubin and rubin[j],
                "replicates": replicated and replicated[j],
                "ours": [float(v[j]) for v in ours],
                "unmeasured": round(float(unseen[j]), 4),
                "method": found.method,
                "particles": len(copy),
                "order": max(len(m.clique) for m in model.measurements_),
                "fit_seconds": round(fitted, 2),
                "seconds": round(seconds, 2),
            }


def time_replicates(n=100_000, seed=0):
    "Processor seconds of a fit and of twenty replicates, for 20 columns."
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 3))
    data, columns = {}, []
    for j in range(20):
        x = hidden @ rng.normal(size=3) + rng.normal(size=n)
        name = f"x{j}"
        if j < 8:
            data[name] = np.clip(np.rint(np.exp(6 + 0.5 * x)), 0, 100_000).astype(int)
            columns.append(Numeric(name, 0, 100_000, integer=True))
        elif j < 14:
            data[name] = np.clip(np.rint(3 + 1.5 * x), 0, 7).astype(int)
            columns.append(Ordinal(name, list(range(8))))
        else:
            data[name] = x > 0
            columns.append(Boolean(name))
    model = PrivPGD(1.0, 1e-6, seed=seed, verbose=False)
    began = time.process_time()
    model.fit(pd.DataFrame(data), Schema(columns))
    fitted = time.process_time()
    made = model.replicates(REPLICATES)
    return {
        "columns": len(columns),
        "rows": n,
        "replicates": len(made),
        "fit_seconds": round(fitted - began, 1),
        "replicates_seconds": round(time.process_time() - fitted, 1),
    }


def short(value):
    "Numbers with six digits, so that lines are short."
    if isinstance(value, list):
        return [short(v) for v in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


def trials_in(folder):
    "The trials whose lines a folder has already."
    keys = ("n", "epsilon", "seed", "population")
    found = set()
    for file in folder.glob("*.jsonl"):
        with file.open() as lines:
            found.update(tuple(json.loads(line)[k] for k in keys) for line in lines)
    return found


WAYS = {"rows": 1.96, "naive": 1.96, "rubin": 1.0, "replicates": 1.0}


def in_half_widths(answers, truths, times):
    "Misses of the truth in half widths of the interval, and half widths; nan: none."
    found = [
        (np.nan, np.nan) if a is None or a[0] is None else (a[0] - t, times * a[1])
        for a, t in zip(answers, truths)
    ]
    miss, half = np.array(found, float).T
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(half > 0, miss / half, np.sign(miss) * 99), half


def go_on(old, new):
    "One line of a cell: the trials of an earlier line, and then those of a new one."
    counts = np.array([old["trials"], new["trials"]])
    line = old | {"trials": int(counts.sum())}
    for key in old:
        if key.endswith(" miss"):
            line[key] = old[key] + new[key]
        elif key.endswith((" width", "seconds")):  # means of the medians
            pair = [
                (c, x[key]) for c, x in zip(counts, (old, new)) if x[key] is not None
            ]
            sizes, medians = np.array(pair or [(1, np.nan)]).T
            mean = float(np.average(medians, weights=sizes))
            line[key] = round(mean, 3) if pair else None
    return line


def onto(file, lines, first):
    "The lines of a file with new ones: added trials, or others in the place of old."
    keys = ("population", "n", "epsilon", "statistic", "part")
    old = [json.loads(text) for text in file.open()] if file.exists() else []
    found = {tuple(line[k] for k in keys): line for line in old}
    for line in lines:
        key = tuple(line[k] for k in keys)
        found[key] = go_on(found[key], line) if first and key in found else line
    return [found[key] for key in sorted(found)]


def collect(folder):
    "One line for each statistic of each cell of the grid: what its intervals missed."
    texts = (x for f in sorted(folder.glob("*.jsonl")) for x in f.open())
    found = pd.DataFrame([json.loads(text) for text in texts])
    found = found.sort_values("seed", kind="stable")
    found["ours"] = [
        [(low + high) / 2, (high - low) / 2] for _, _, low, high in found["ours"]
    ]
    keys = ["population", "n", "epsilon", "statistic", "part"]
    for key, part in found.groupby(keys, sort=True):
        line = dict(zip(keys, key)) | {"trials": len(part)}
        for name in ("particles", "order"):
            line[name] = int(part[name].max())
        for name in ("fit_seconds", "seconds"):
            line[name] = round(float(part[name].median()), 2)
        best = in_half_widths(part["rows"], part["truth"], 1.96)[1]
        for way, times in (WAYS | {"ours": 1.0}).items():
            miss, half = in_half_widths(part[way], part["truth"], times)
            asked = [answer is not None for answer in part[way]]
            with np.errstate(divide="ignore", invalid="ignore"):
                width = pd.Series(half / np.where(best > 0, best, np.nan)).median()
            line[f"{way} width"] = None if np.isnan(width) else round(float(width), 3)
            shown = [None if np.isnan(v) else float(f"{v:.3g}") for v in miss[asked]]
            line[f"{way} miss"] = shown
        yield line


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--populations", nargs="+", default=["made_up"])
    parser.add_argument("--rows", nargs="+", type=int, default=[2000])
    parser.add_argument(
        "--every", nargs="+", type=int, default=[], help="every k-th trial, for --rows"
    )
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first trial"
    )
    parser.add_argument("--about", default="population", choices=("population", "rows"))
    parser.add_argument("--statistics", nargs="+", help="only these; all unless given")
    parser.add_argument("--base", type=int, help="rows of the copy that estimates use")
    parser.add_argument("--order", type=int, help="largest number of columns together")
    parser.add_argument(
        "--particles",
        nargs="+",
        type=int,
        default=[],
        help="rows of a copy, for --rows",
    )
    parser.add_argument(
        "--minutes", type=float, default=np.inf, help="of processor time; then stop"
    )
    parser.add_argument(
        "--collect", type=Path, metavar="FOLDER", help="only sum up the lines in it"
    )
    parser.add_argument("--speed", action="store_true", help="only time replicates")
    parser.add_argument("--out", type=Path, required=True, help="a folder")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.speed:
        (asked.out / "speed.json").write_text(json.dumps(time_replicates()) + "\n")
        return
    if asked.collect:
        file = asked.out / f"{asked.collect.name}.jsonl"
        lines = onto(file, collect(asked.collect), asked.first)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
        return
    known = {}
    for name in asked.populations:
        draw = POPULATIONS[name][2]()
        known[name] = draw, truth_of(name, draw, POPULATIONS[name][1], asked.out)
    last = asked.first + asked.trials
    cells = itertools.product(
        range(asked.first, last), asked.rows, asked.epsilons, asked.populations
    )
    done = trials_in(asked.out)
    strides = dict(zip(asked.rows, asked.every))
    sizes = dict(zip(asked.rows, asked.particles))
    for seed, n, epsilon, name in cells:
        number, rest = divmod(seed - asked.first, strides.get(n, 1))
        if rest or (n, epsilon, seed, name) in done:
            continue
        if time.process_time() > 60 * asked.minutes:
            print(f"stopped before trial {seed}, {n} rows, epsilon {epsilon}, {name}")
            return
        schema, statistics, _ = POPULATIONS[name]
        asked_for = asked.statistics or statistics
        statistics = {k: f for k, f in statistics.items() if k in asked_for}
        draw, truth = known[name]
        rows = draw(n, np.random.default_rng([11, n, seed]))
        rules = number % EVERY == 0 and asked.about == "population"
        setting = schema, statistics, rows, epsilon, seed, rules, asked.about
        options = {"order": asked.order, "n_particles": sizes.get(n, 20_000)}
        options["base"] = asked.base
        facts = {"population": name, "n": n, "epsilon": epsilon, "seed": seed}
        text = ""
        for line in one_trial(*setting, **options):
            target = truth[line["statistic"]][line["part"]]
            if asked.about == "rows":
                target = line["rows"][0]
            line = {k: short(v) for k, v in line.items()}
            text += json.dumps(facts | {"truth": target} | line) + "\n"
        with (asked.out / f"{name}.jsonl").open("a") as lines:
            lines.write(text)


if __name__ == "__main__":
    main()
