"""Does a seeded run give the same rows and the same account as before?

Every preset, selector, penalty, bound, rule, public fact and generator runs once on a
small table. A digest of the codes and of the ledger is compared with `.ci/net.json`.
`python .ci/net.py --record` writes that file anew, which needs a reason in the commit.
Digests depend on the last bits of sums, so they are compared only where the processor
and the versions of the libraries are those of the record; elsewhere the errors are.
"""

import argparse
import hashlib
import json
import os
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # threads add in another order

import numpy as np
import pandas as pd

from privpgd import (
    Boolean,
    Budget,
    Categorical,
    Datetime,
    Numeric,
    Ordinal,
    Penalty,
    PrivPGD,
    PublicColumns,
    PublicMarginal,
    Rule,
    Schema,
    at_least,
    avoid,
    descend,
    equal,
    evaluate,
    match,
    measure,
    measure_statistic,
    project,
    refine,
    synthesize,
)
from privpgd.constrain.statistics import Correlation, Mean, Rate, Share

RECORD = Path(__file__).with_name("net.json")
TOLERANCE = 0.03  # of an error (a distance in total variation), on another processor


def make_table(n: int = 3000) -> pd.DataFrame:
    "A table with every kind of column, missing values and dependence."
    rng = np.random.default_rng(7)
    age = rng.integers(18, 90, n)
    income = np.round(np.exp(rng.normal(9 + age / 90, 0.6)), 2).clip(0, 60_000)
    income = np.where(rng.random(n) < 0.1, np.nan, income)
    work = np.array(["none", "part", "full"])[(age < 65) * rng.integers(0, 3, n)]
    kin = np.minimum(rng.poisson(1.5, n), 5)
    day = np.datetime64("2020-01-01") + rng.integers(0, 700, n).astype("timedelta64[D]")
    sick = rng.random(n) < 0.1 + 0.3 * (age > 60)
    return pd.DataFrame(
        dict(age=age, income=income, work=work, kin=kin, day=day, sick=sick)
    )


SCHEMA = Schema(
    [
        Numeric("age", 18, 90, bins=8, integer=True),
        Numeric("income", 0, 60_000, bins=8, missing=True),
        Categorical("work", ["none", "part", "full"]),
        Ordinal("kin", [0, 1, 2, 3, 4, 5]),
        Datetime("day", "2020-01-01", "2022-01-01", bins=6),
        Boolean("sick"),
    ]
)
TABLE = make_table()


def plain(value):
    "A value without anything that changes from run to run."
    if isinstance(value, dict):
        drawn = ("seconds", "release")  # times, and random names of entries
        kept = {k: v for k, v in value.items() if not any(d in str(k) for d in drawn)}
        return {k: plain(v) for k, v in kept.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    return value


def digest(*parts) -> str:
    "A short hash of arrays, frames and plain values."
    out = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            out.update(str(part.shape).encode() + np.ascontiguousarray(part).tobytes())
        elif isinstance(part, pd.DataFrame):
            out.update(part.to_csv(index=False).encode())
        else:
            out.update(json.dumps(plain(part), sort_keys=True, default=str).encode())
    return out.hexdigest()[:16]


def ledger_part(ledger) -> list:
    "Entries and totals of an account."
    facts = json.loads(ledger.to_json())
    return [facts["entries"], repr(ledger.epsilon), repr(ledger.delta)]


def error_of(frame: pd.DataFrame) -> float:
    "Mean total variation of the pairs."
    values = evaluate(TABLE, frame, SCHEMA).set_index("metric")["value"]
    return float(values["tv"])


def fitted(**options) -> dict:
    "Digest and error of a fitted model."
    model = PrivPGD(2.0, 1e-6, n_particles=4000, seed=3, verbose=False, **options)
    model.fit(TABLE, SCHEMA)
    frame = model.sample(seed=1)
    tables = [np.asarray(t) for t in model.tables_.values()]
    whole = digest(model.codes_.astype(np.int64), frame, ledger_part(model.privacy_))
    return dict(digest=whole, tables=digest(*tables), error=error_of(frame))


def made(generator: str, select=None, **options) -> dict:
    "Digest and error of `synthesize`."
    frame, ledger = synthesize(
        TABLE,
        SCHEMA,
        generator=generator,
        select=select,
        epsilon=2.0,
        delta=1e-6,
        n_rows=1500,
        seed=5,
        **options,
    )
    return dict(digest=digest(frame, ledger_part(ledger)), error=error_of(frame))


def parts() -> dict:
    "Digest of measure, project, descend and refine."
    measurements, ledger = measure(TABLE, SCHEMA, 2, Budget(1.0, 1e-6), seed=2)
    counts = [m.counts for m in measurements]
    found = [digest(*counts, ledger_part(ledger))]
    tables = project(measurements, SCHEMA)
    found.append(digest(*tables.values()))
    cloud = descend(tables, SCHEMA, 2000, epochs=5, seed=1, verbose=False)
    found.append(digest(cloud))
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, 2000) for k in SCHEMA.shape], axis=1)
    codes = refine(codes, tables, SCHEMA, seed=1, sweeps=2)
    found.append(digest(codes.astype(np.int64)))
    return dict(digest=digest(found), error=error_of(SCHEMA.decode(codes, seed=0)))


def learned() -> dict:
    "Digest of a learned schema."
    kinds = {"age": "integer", "income": "numeric", "kin": "categorical-integer"}
    kinds |= {"work": "categorical", "day": "datetime", "sick": "boolean"}
    frame = TABLE[list(kinds)]
    schema, ledger = Schema.learn(frame, kinds, Budget(2.0, 1e-6), seed=4)
    facts = plain(json.loads(schema.to_json()))
    return dict(digest=digest(facts, ledger_part(ledger)), error=0.0)


def statistic() -> dict:
    "Digest of a measured statistic."
    rate = Rate({"income": (20_000, None)}, {"sick": True})
    target, ledger = measure_statistic(TABLE, SCHEMA, rate, Budget(1.0, 1e-6), seed=1)
    return dict(digest=digest(repr(target.value), ledger_part(ledger)), error=0.0)


def few_poor(frame):
    "Share of rows with a small income, smooth."
    return ((15_000 - frame["income"]) / 2000).sigmoid().mean()


def cases() -> dict:
    "Name of a case and how to run it."
    retired = Rule(
        ["age", "work"], lambda age, work: (age < 65) | (work == "none"), "retired"
    )
    order = Rule(
        ["kin", "sick"], lambda kin, sick: (kin > 0) | (sick != 1), "alone is well"
    )
    income = Mean("income")
    young = Share({"age": (None, 40)})
    pairs = [("age", "income"), ("work", "sick"), ("kin", "day")]
    gap = equal(
        Rate({"sick": True}, {"work": "none"}), Rate({"sick": True}, {"work": "full"})
    )
    sizes = PublicMarginal("kin", [10, 20, 20, 20, 20, 10], "census")
    design = PublicColumns(TABLE[["work", "sick"]])
    external = PublicColumns(TABLE[["work"]].iloc[:1000], external=True)
    together = dict(constraints=(retired, sizes), penalties=(at_least(young, 0.5),))
    return {
        "default": lambda: fitted(),
        "add-remove": lambda: fitted(neighbors="add-remove"),
        "paper": lambda: fitted(preset="paper", epochs=20),
        "descent": lambda: fitted(epochs=3),
        "select 1": lambda: fitted(select=1),
        "select 3": lambda: fitted(select=3),
        "select list": lambda: fitted(select=pairs),
        "select dict": lambda: fitted(select={("age", "income"): 2, ("work",): 1}),
        "select mst": lambda: fitted(select="mst"),
        "select aim": lambda: fitted(select="aim"),
        "select mwem": lambda: fitted(select="mwem"),
        "penalty": lambda: fitted(penalties=(Penalty(few_poor, weight=0.01),)),
        "penalty limit": lambda: fitted(penalties=(Penalty(few_poor, limit=0.3),)),
        "penalty paper": lambda: fitted(
            preset="paper", epochs=10, penalties=(Penalty(few_poor, weight=0.01),)
        ),
        "bound share": lambda: fitted(penalties=(at_least(young, 0.6),)),
        "bound mean": lambda: fitted(penalties=(match(income, 18_000),)),
        "bound correlation": lambda: fitted(
            penalties=(match(Correlation("age", "kin"), 0.2),)
        ),
        "bound equal": lambda: fitted(penalties=(gap,)),
        "avoid": lambda: fitted(penalties=(avoid(young, 0.3, weight=1e-5),)),
        "rules": lambda: fitted(constraints=(retired, order)),
        "rules paper": lambda: fitted(preset="paper", epochs=5, constraints=(retired,)),
        "public marginal": lambda: fitted(constraints=(sizes,)),
        "public columns": lambda: fitted(constraints=(design, order)),
        "public columns external": lambda: fitted(constraints=(external,)),
        "everything": lambda: fitted(**together),
        "parts": parts,
        "learn": learned,
        "statistic": statistic,
        **{
            (
                f"generator {name} {select or ''}"
            ).strip(): lambda g=name, s=select, o=options: made(g, s, **o)
            for name, select, options in (
                ("independent", None, {}),
                ("privpgd", None, {}),
                ("pgm", "mst", {}),
                ("pgm", "aim", dict(select_options=dict(rounds=8))),
                ("mop", None, {}),
                ("gsd", None, {}),
                ("rap", None, {}),
                ("gem", None, {}),
            )
        },
    }


def stamp() -> dict:
    "What the last bits of a sum depend on."
    from llvmlite.binding import get_host_cpu_name

    names = ("numpy", "scipy", "torch", "numba", "pandas", "scikit-learn", "jax")
    return dict(processor=get_host_cpu_name()) | {n: version(n) for n in names}


def compare(name: str, now: dict, then: dict | None, exact: bool) -> str:
    "What differs, in a few words; nothing if all is as it was."
    if then is None:
        return f"{name}: not in the record"
    if exact:
        kinds = [k for k in ("tables", "digest") if now.get(k) != then.get(k)]
        return f"{name}: other {' and '.join(kinds)}" if kinds else ""
    if abs(now["error"] - then["error"]) > TOLERANCE:
        return f"{name}: error {now['error']:.4f} instead of {then['error']:.4f}"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", action="store_true", help="write the record anew")
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--times", action="store_true", help="print seconds per case")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    known = json.loads(RECORD.read_text()) if RECORD.exists() else dict(cases={})
    exact = known.get("stamp") == stamp()
    if arguments.record and arguments.only and not exact:
        sys.exit("the record is of another processor or version: record all of it")
    found, differences = {}, []
    for name, run in cases().items():
        if arguments.only not in name:
            continue
        began = time.perf_counter()
        found[name] = run()
        if arguments.times:
            print(f"{time.perf_counter() - began:6.1f} s  {name}", flush=True)
        differences.append(compare(name, found[name], known["cases"].get(name), exact))
    if arguments.record:
        record = dict(stamp=stamp(), cases=known["cases"] | found)
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        print(f"recorded {len(found)} cases")
        return
    differences = [d for d in differences if d]
    if differences:
        sys.exit("these runs differ from the record: " + "; ".join(differences))
    kind = "rows and accounts" if exact else "errors (another processor or version)"
    print(f"{len(found)} seeded runs have the same {kind} as the record")


if __name__ == "__main__":
    main()
