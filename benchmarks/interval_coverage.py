"""Coverage of intervals: how often do they hold the truth?

Every trial draws rows from a population whose truth is known, fits a model with the
defaults, and asks for statistics in three ways: from the copy as if it were data
("naive"), with `model.estimate` ("ours"), and from the rows without privacy ("rows").
Each answer is one line of JSON.

    python benchmarks/interval_coverage.py --populations made_up --rows 2000 20000 \\
        --epsilons 1.0 --trials 40 --out coverage.jsonl
"""

import argparse
import json
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd

from privpgd import Boolean, Categorical, Numeric, Ordinal, PrivPGD, Schema
from privpgd.core.checks import InputError
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


def mean(values):
    "A mean and its standard error."
    x = np.asarray(values, float)
    return x.mean(), x.std(ddof=1) / np.sqrt(len(x))


def difference(values, group):
    "A difference of means and its standard error."
    x, chosen = np.asarray(values, float), np.asarray(group, bool)
    (a, sa), (b, sb) = mean(x[chosen]), mean(x[~chosen])
    return a - b, np.hypot(sa, sb)


def quantile(values, p):
    "A quantile and its standard error, from the spacing of quantiles nearby."
    x = np.sort(np.asarray(values, float))
    width = np.sqrt(p * (1 - p) / len(x))
    low, high = np.quantile(x, np.clip([p - width, p + width], 0, 1))
    return np.quantile(x, p), (high - low) / 2


def least_squares(x, y):
    "Slopes and their standard errors, which allow unequal variances."
    x = np.c_[np.ones(len(x)), x]
    fit = np.linalg.lstsq(x, y, rcond=None)[0]
    inner = np.linalg.inv(x.T @ x)
    scores = x * (y - x @ fit)[:, None]
    return fit[1:], np.sqrt(np.diag(inner @ (scores.T @ scores) @ inner))[1:]


def logistic(x, y):
    "Slopes of a logistic regression and their standard errors, by Newton's method."
    x = np.c_[np.ones(len(x)), x]
    fit = np.zeros(x.shape[1])
    for _ in range(25):
        chance = 1 / (1 + np.exp(-np.clip(x @ fit, -30, 30)))
        inner = (x * (chance * (1 - chance))[:, None]).T @ x
        step = np.linalg.solve(inner + 1e-9 * np.eye(len(fit)), x.T @ (y - chance))
        fit = fit + step
        if np.abs(step).max() < 1e-8:
            break
    return fit[1:], np.sqrt(np.diag(np.linalg.inv(inner + 1e-9 * np.eye(len(fit)))))[1:]


def numbers(t, *names):
    "Columns as a matrix of numbers."
    return np.stack([t[name].to_numpy(dtype=float) for name in names], 1)


def _made_up_linear(t):
    x = numbers(t, "age", "edu", "hours", "sex")
    return least_squares(x, numbers(t, "income")[:, 0] / 1000)


def _made_up_logit(t):
    x = numbers(t, "age", "edu", "sex", "income") / [10, 1, 1, 20_000]
    return logistic(x, numbers(t, "ill")[:, 0])


MADE_UP_STATISTICS = {
    "mean age": lambda t: mean(t["age"]),
    "mean income": lambda t: mean(t["income"]),
    "share ill": lambda t: mean(t["ill"]),
    "share educated women": lambda t: mean((t["edu"] >= 3) & t["sex"].astype(bool)),
    "difference of income by sex": lambda t: difference(t["income"], t["sex"]),
    "difference of ill by edu": lambda t: difference(t["ill"], t["edu"] >= 3),
    "median income": lambda t: quantile(t["income"], 0.5),
    "0.9 quantile of income": lambda t: quantile(t["income"], 0.9),
    "0.9 quantile of age": lambda t: quantile(t["age"], 0.9),
    "linear regression": _made_up_linear,
    "logistic regression": _made_up_logit,
}


ADULT = Schema(
    [
        Numeric("age", 17, 90, integer=True),
        Numeric("education_num", 1, 16, integer=True),
        Categorical("marital_status", ["Married-civ-spouse", "other"], other="other"),
        Categorical("sex", ["Female", "Male"]),
        Numeric("hours_per_week", 1, 99, integer=True),
        Numeric("capital_loss", 0, 5000, integer=True),
        Categorical("income", ["<=50K", ">50K"]),
    ]
)


def _adult_design(t):
    columns = numbers(t, "age", "education_num", "hours_per_week") / [10, 1, 10]
    flags = [t["sex"] == "Male", t["marital_status"] == "Married-civ-spouse"]
    return np.c_[columns, np.stack([np.asarray(f, float) for f in flags], 1)]


def _adult_logit(t):
    return logistic(_adult_design(t), np.asarray(t["income"] == ">50K", float))


def _adult_linear(t):
    design = np.delete(_adult_design(t), 2, 1)
    return least_squares(design, numbers(t, "hours_per_week")[:, 0])


ADULT_STATISTICS = {
    "mean age": lambda t: mean(t["age"]),
    "mean capital loss": lambda t: mean(t["capital_loss"]),
    "share rich": lambda t: mean(t["income"] == ">50K"),
    "difference of hours by sex": lambda t: difference(
        t["hours_per_week"], t["sex"] == "Male"
    ),
    "difference of rich by sex": lambda t: difference(
        t["income"] == ">50K", t["sex"] == "Male"
    ),
    "median age": lambda t: quantile(t["age"], 0.5),
    "0.9 quantile of hours": lambda t: quantile(t["hours_per_week"], 0.9),
    "linear regression": _adult_linear,
    "logistic regression": _adult_logit,
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


def _acs_logit(t):
    x = numbers(t, "AGEP", "SCHL", "WKHP", "SEX") / [10, 1, 10, 1]
    return logistic(
        np.c_[x, np.asarray(t["MAR"] == 1, float)], numbers(t, "PINCP")[:, 0]
    )


def _acs_linear(t):
    x = np.c_[numbers(t, "AGEP", "SCHL", "SEX"), np.asarray(t["MAR"] == 1, float)]
    return least_squares(x, numbers(t, "WKHP")[:, 0])


ACS_STATISTICS = {
    "mean age": lambda t: mean(t["AGEP"]),
    "share rich": lambda t: mean(t["PINCP"]),
    "difference of hours by sex": lambda t: difference(t["WKHP"], t["SEX"] == 1),
    "difference of rich by sex": lambda t: difference(t["PINCP"], t["SEX"] == 1),
    "median age": lambda t: quantile(t["AGEP"], 0.5),
    "0.9 quantile of hours": lambda t: quantile(t["WKHP"], 0.9),
    "linear regression": _acs_linear,
    "logistic regression": _acs_logit,
}


def resampled(name, schema):
    "Rows of a public table, drawn with replacement; the table is the population."
    data = load_dataset(name, download=False)
    whole = pd.concat([data.train, data.test], ignore_index=True)[schema.names]
    for column in schema.columns:
        if type(column).__name__ in ("Ordinal", "Numeric"):
            whole[column.name] = whole[column.name].astype(float).astype(int)
    if name == "adult":
        married = whole["marital_status"] == "Married-civ-spouse"
        whole["marital_status"] = np.where(married, "Married-civ-spouse", "other")

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


def truth_of(name, draw, statistics):
    "The statistics of the population."
    whole = (
        draw(4_000_000, np.random.default_rng(5))
        if name == "made_up"
        else draw(None, None)
    )
    return {what: np.atleast_1d(f(whole)[0]) for what, f in statistics.items()}


def one_trial(schema, statistics, rows, epsilon, seed, order=None):
    "Lines of one table: every statistic in three ways."
    n = len(rows)
    began = time.process_time()
    particles = max(30_000, min(n, 100_000))
    model = PrivPGD(
        epsilon, 1e-6, seed=seed, n_particles=particles, order=order, verbose=False
    )
    model.fit(rows, schema)
    fitted = time.process_time() - began
    copy = model.sample()
    for what, f in statistics.items():
        of_rows, of_copy = f(rows), f(copy)
        began = time.process_time()
        try:
            found = model.estimate(lambda t, f=f: f(t)[0])
        except InputError:  # refused: nothing is known
            none = np.full(np.shape(of_rows[0]), np.nan)
            fields = ("value", "std_error", "low", "high", "unmeasured")
            found = SimpleNamespace(**dict.fromkeys(fields, none), method="refused")
        seconds = time.process_time() - began
        parts = [
            np.atleast_1d(np.asarray(v, float))
            for v in (*of_rows, *of_copy, found.value, found.std_error)
        ]
        ends = [np.atleast_1d(np.asarray(v, float)) for v in (found.low, found.high)]
        unseen = np.atleast_1d(np.asarray(found.unmeasured, float))
        for j in range(len(parts[0])):
            a, sa, b, sb, c, sc = (float(p[j]) for p in parts)
            yield {
                "statistic": what,
                "part": j,
                "rows": [a, sa],
                "naive": [b, sb * np.sqrt(len(copy) / n)],
                "ours": [c, sc, float(ends[0][j]), float(ends[1][j])],
                "unmeasured": float(unseen[j]),
                "method": found.method,
                "fit_seconds": round(fitted, 2),
                "seconds": round(seconds, 2),
            }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--populations", nargs="+", default=["made_up"])
    parser.add_argument("--rows", nargs="+", type=int, default=[2000])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[1.0])
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first trial"
    )
    parser.add_argument("--order", type=int, help="largest number of columns together")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in asked.populations:
        schema, statistics, opened = POPULATIONS[name]
        draw = opened()
        truth = truth_of(name, draw, statistics)
        for n in asked.rows:
            for epsilon in asked.epsilons:
                for seed in range(asked.first, asked.first + asked.trials):
                    rows = draw(n, np.random.default_rng([11, n, seed]))
                    facts = {"population": name, "n": n, "epsilon": epsilon}
                    for line in one_trial(
                        schema, statistics, rows, epsilon, seed, asked.order
                    ):
                        target = float(truth[line["statistic"]][line["part"]])
                        line = facts | {"seed": seed, "truth": target} | line
                        with asked.out.open("a") as lines:
                            lines.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
