"""Measures time and memory of privpgd, each against a baseline of the same run.

    OMP_NUM_THREADS=1 python benchmarks/speed.py --out speed.jsonl

writes one line of JSON for each measurement; `--parts gradient,end` runs some of them,
and `--quick` runs all on sizes that take a minute. The page nbs/experiments/speed.ipynb
shows what came out. A time in seconds means little on another machine, so each one is
compared with a baseline that ran in turns with it: the paper's formulas in torch.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pandas as pd
import torch
from speed_descents import paper_schedule, run_loss
from speed_report import checks

from privpgd.app.pipeline import default_workload
from privpgd.evaluation.datasets import load_dataset
from privpgd.evaluation.metrics import evaluate
from privpgd.methods.privpgd import generate
from privpgd.private.account import Budget
from privpgd.private.measure import measure
from privpgd.table.numbers import Numeric
from privpgd.table.schema import Schema
from privpgd.transport.embedding import Embedding
from privpgd.transport.gradients import Workspace, exact_gradient, sort_gradient
from privpgd.transport.histograms import (
    histogram_gradient,
    histogram_gradient_torch,
    quantile_table,
)
from privpgd.transport.marginal_tables import quantize
from privpgd.transport.particles import descend
from privpgd.transport.projection import project_paper
from privpgd.transport.wasserstein import directions

# ---------------------------------------------------------------------------- in turns
# A machine is never quite idle. If A is timed ten times and then B ten times, a busy
# moment hits one of them only. So the candidates take turns. In its turn each runs
# twice, and only the second run counts: the first finds what another candidate has left
# behind (compilation, cold caches, threads that still wait). The fastest turn counts,
# for the baseline too, because other work on the machine can only add time.


def take_turns(
    candidates: dict,  # name -> function without arguments
    repeats: int = 7,  # rounds that count
) -> dict:  # name -> seconds
    "Least time of each candidate; they run in turns, each after a call as warm-up."
    seconds: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repeats):
        for name, run_once in candidates.items():
            run_once()
            began = time.perf_counter()
            run_once()
            seconds[name].append(time.perf_counter() - began)
    return {name: min(s) for name, s in seconds.items()}


@contextlib.contextmanager
def use_threads(
    n: int,  # at most the number of cores
):
    "The same number of threads for torch and for numba."
    settings: Any = numba.config
    before = torch.get_num_threads(), numba.get_num_threads()
    torch.set_num_threads(n)
    numba.set_num_threads(min(n, settings.NUMBA_NUM_THREADS))
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        numba.set_num_threads(before[1])


# ------------------------------------------------------------------------ one gradient
# One 2-way marginal with 32 x 32 cells, m particles, L directions. The baseline is the
# paper's formula in torch: project, sort both clouds, scatter back. The histogram
# kernels find their quantile tables ready, because `descend` makes them once for a
# whole run; the record has their time, too.


def cell_centres(k: int) -> np.ndarray:  # (k * k, 2)
    "Centres of the cells of a k by k table."
    c = (np.arange(k) + 0.5) / k
    return np.stack(np.meshgrid(c, c, indexing="ij"), -1).reshape(-1, 2)


def gradient_case(
    m: int = 100_000,  # particles
    n_directions: int = 10,
    k: int = 32,  # levels of each column
    seed: int = 0,
) -> dict:  # name -> function that returns loss and gradient
    "Four gradients of the same loss, and the quantile table that two of them need."
    rng = np.random.default_rng(seed)
    points = cell_centres(k)
    table = rng.dirichlet(np.ones(k * k))
    theta = directions(n_directions, 2, rng, "even")
    counts = quantize(table, m, rng)
    z = np.asfortranarray(rng.random((m, 2), dtype=np.float32))
    work = Workspace()
    quantiles = quantile_table(points, table, theta)
    x = torch.tensor(z)
    q = torch.tensor(quantiles)
    target = torch.tensor(np.repeat(points, counts, axis=0), dtype=torch.float32)
    return {
        "torch sort": lambda: sort_gradient(x, target, theta),
        "torch histogram": lambda: histogram_gradient_torch(x, q, theta),
        "numba sort": lambda: exact_gradient(z, points, counts, theta, work=work),
        "numba histogram": lambda: histogram_gradient(z, quantiles, theta, work=work),
        "quantile table": lambda: quantile_table(points, table, theta),
    }


def time_gradients(
    m: int = 100_000,  # particles
    n_directions: int = 10,
    repeats: int = 7,
    threads: tuple = (1, 2),
) -> list:  # one record for each number of threads
    "Times of the gradients."
    case = gradient_case(m, n_directions)
    out = []
    for n in threads:
        with use_threads(n):
            seconds = take_turns(case, repeats)
        out.append(
            dict(
                part="gradient",
                particles=m,
                directions=n_directions,
                threads=n,
                repeats=repeats,
                seconds=seconds,
            )
        )
    return out


# ---------------------------------------------------------------------- one projection
# A noisy 32 x 32 table goes to the nearest probability table by the paper's loop:
# softmax logits, 1,750 Adam iterations, 200 fresh directions each. The baseline is
# plain torch autograd. Every iteration costs the same, so 20 of them are timed and
# scaled. The compiled gradient takes the same steps.


def noisy_table(
    k: int = 32,  # levels of each column
    n: int = 50_000,  # rows
    sigma: float = 15.0,  # noise of a count
    seed: int = 0,
) -> np.ndarray:  # (k, k) shares, some negative
    "A correlated table of n simulated rows with noise on its counts."
    rng = np.random.default_rng(seed)
    x = rng.multivariate_normal([0.45, 0.5], [[0.03, 0.02], [0.02, 0.03]], n)
    a, b = np.clip(x, 0, 0.9999).T
    counts = np.histogram2d(a, b, bins=k, range=[[0, 1], [0, 1]])[0]
    return (counts + rng.normal(0, sigma, (k, k))) / n


def real_table(dataset: str, epsilon: float = 2.5) -> tuple:  # noisy shares, name
    "The first 2-way marginal with 32 x 32 cells, with the noise of all pairs."
    data = load_dataset(dataset)
    budget = Budget(epsilon=epsilon, delta=1e-5)
    noisy, _ = measure(data.train, data.schema, 2, budget, seed=0)
    first: Any = next(m for m in noisy if m.counts.shape == (32, 32))
    name = f"{dataset}, ε = {epsilon:g}: {' × '.join(first.clique)}"
    return first.counts / first.total, name


def time_projection(
    signed=None,  # table of noisy shares, square; `noisy_table()` if None
    name: str = "simulated",
    iterations: int = 1750,
    timed: int = 20,  # iterations that are timed
    repeats: int = 5,
) -> dict:  # the record
    "Seconds of the paper's projection in torch and compiled, scaled; one thread."
    signed = noisy_table() if signed is None else signed
    points = cell_centres(len(signed))

    def loop(gradient):
        return lambda: project_paper(
            signed, points, iterations=timed, gradient=gradient
        )

    with use_threads(1):
        turns = take_turns({g: loop(g) for g in ("torch", "numba")}, repeats)
    return dict(
        part="projection",
        table=name,
        cells=signed.size,
        iterations=iterations,
        timed=timed,
        threads=1,
        seconds={who: s * iterations / timed for who, s in turns.items()},
    )


def time_projections(
    datasets: tuple = ("adult", "diabetes130us", "acs_income_us"),
    epsilons: tuple = (2.5, 0.2),
    **options,  # of `time_projection`
):  # records
    "A simulated table, and one of each dataset and budget."
    yield time_projection(**options)
    for dataset, epsilon in itertools.product(datasets, epsilons):
        yield time_projection(*real_table(dataset, epsilon), **options)


# --------------------------------------------------- what the paper's code would take
# To run it to the end takes hours. It does the same things over and over, so its time
# is measured in parts: one torch sort gradient for every marginal, times 1,000 epochs,
# and some iterations of the projection of every marginal, scaled to 1,750. Adam's
# update, masks, counting and rounding are left out, so the estimate is too low.


def paper_estimate(
    tables: dict,  # clique -> probability table
    schema: Schema,
    particles: int = 100_000,
    epochs: int = 1000,
    iterations: int = 1750,
    timed: int = 5,  # iterations that are timed
    seed: int = 0,
) -> dict:  # seconds
    "Estimated time of the paper's code path from a part of its work on every pair."
    embedding = Embedding(schema, line=True)
    rng = np.random.default_rng(seed)
    z = torch.tensor(rng.random((particles, len(schema.names)), dtype=np.float32))
    place = {n: j for j, n in enumerate(schema.names)}
    descent = 0.0
    projection = 0.0
    for clique, table in tables.items():
        if len(clique) != 2:
            continue
        points = embedding.points(clique)
        rows = np.repeat(points, quantize(table, particles, rng).ravel(), axis=0)
        target = torch.tensor(rows, dtype=torch.float32)
        x = z[:, [place[n] for n in clique]].contiguous()
        theta = directions(10, 2, rng)
        if not descent:  # the first time does not count
            sort_gradient(x, target, theta)
            project_paper(table, points, iterations=timed, gradient="torch")
        began = time.perf_counter()
        sort_gradient(x, target, theta)
        descent += time.perf_counter() - began
        began = time.perf_counter()
        project_paper(table, points, iterations=timed, gradient="torch")
        projection += time.perf_counter() - began
    return dict(
        gradients=descent,
        descent=descent * epochs,
        projection=projection * iterations / timed,
        total=descent * epochs + projection * iterations / timed,
    )


# ------------------------------------------------ the whole walk, in its own process
# `walk` is `PrivPGD.fit` and `sample` with a clock at each step. Compiled code is kept
# on disk, so the first start on a machine is slower than all others. A fresh
# interpreter also gives the largest resident memory. The mixture multiplies many small
# matrices, where a second thread costs more than it brings; so numpy's products get one
# thread (OMP_NUM_THREADS=1), and one extra run shows two.


def walk(
    frame,
    schema: Schema,
    epsilon: float = 2.5,
    particles: int = 100_000,
    seed: int = 0,
) -> tuple:  # synthetic table, what was generated, dict phase -> seconds
    "The default, phase by phase."
    at = [time.perf_counter()]
    budget = Budget(epsilon=epsilon, delta=1e-5)
    noisy, _ = measure(frame, schema, default_workload(schema), budget, seed=seed)
    at.append(time.perf_counter())
    typed = schema.with_dtypes(frame)
    made = generate(noisy, typed, n_particles=particles, seed=seed, verbose=False)
    at.append(time.perf_counter())
    synth = typed.decode(made.codes, seed=seed)
    at.append(time.perf_counter())
    refinement = made.history[-1]["seconds"] if made.history else 0.0
    phases = dict(
        measure=at[1] - at[0],
        tables=at[2] - at[1] - refinement,
        refine=refinement,
        decode=at[3] - at[2],
        total=at[3] - at[0],
    )
    return synth, made, phases


def peak_memory() -> float:
    "Largest resident memory of this process, in MiB."
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text()
        return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) / 1024
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (2**20 if sys.platform == "darwin" else 2**10)


def end_to_end(
    dataset: str,
    epsilon: float = 2.5,
    particles: int = 100_000,
    seed: int = 0,
    score: bool = True,  # with the errors
    estimate: bool = False,  # with the estimate for the paper's code path
    launched: float | None = None,  # when the process was launched
) -> dict:  # the record
    "One dataset, from data frame to synthetic data frame, with its errors."
    data = load_dataset(dataset)
    synth, made, phases = walk(data.train, data.schema, epsilon, particles, seed)
    out = dict(
        part="end to end",
        dataset=dataset,
        rows=len(data.train),
        columns=len(data.schema.names),
        marginals=sum(len(c) == 2 for c in made.tables),
        epsilon=epsilon,
        particles=particles,
        seconds=phases,
        peak_mb=peak_memory(),
        since_launch=None if launched is None else time.time() - launched,
    )
    if score:
        errors = evaluate(data.train, synth, data.schema, seed=seed)
        values = errors.set_index("metric")["value"]
        out |= {k: values[k] for k in ("sw1", "l1", "covariance", "counting")}
    if estimate:
        with use_threads(os.cpu_count() or 1):
            out["paper"] = paper_estimate(made.tables, data.schema, particles)
    return out


def in_new_process(
    function: str,  # name of a function of this file that returns a record
    threads: int | None = None,  # threads of the compiled kernels; all cores if None
    blas: int = 1,  # threads of numpy's matrix products
    cache: str | None = None,  # folder for compiled code; the usual one if None
    **arguments,
) -> dict:  # its record
    "Call a function in a fresh interpreter."
    if not callable(globals().get(function)):
        raise ValueError(f"There is no function named {function!r} to call.")
    threads = threads or os.cpu_count()
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(blas),
        "OPENBLAS_NUM_THREADS": str(blas),
        "NUMBA_NUM_THREADS": str(threads),
        **({"NUMBA_CACHE_DIR": cache} if cache else {}),
    }
    order = [sys.executable, "-W", "ignore", __file__]
    order += ["--call", function, json.dumps(arguments)]
    done = subprocess.run(order, capture_output=True, text=True, env=environment)
    if done.returncode:
        words = done.stderr.strip().splitlines() or [str(done.returncode)]
        raise RuntimeError(f"{function} failed in its own process: {words[-1]}")
    return json.loads(done.stdout.splitlines()[-1]) | dict(threads=threads, blas=blas)


def time_start(dataset: str, particles: int = 100_000) -> list:  # two records
    "The same run in a first process, which compiles, and in a second one."
    with tempfile.TemporaryDirectory() as cache:
        runs = [
            in_new_process(
                "end_to_end",
                cache=cache,
                dataset=dataset,
                particles=particles,
                score=False,
                launched=time.time(),
            )
            for _ in range(2)
        ]
    return [
        {**run_, "part": "start", "process": name}
        for name, run_ in zip(("first", "second"), runs)
    ]


# ------------------------------------------------------------------------------ growth
# Simulated tables of d numeric columns that share two hidden factors, 32 levels each.
# One of three numbers grows and the others stay: particles, columns, rows.


def simulate(
    n: int,  # rows
    d: int,  # columns
    levels: int = 32,
    seed: int = 0,
) -> tuple:  # data frame of float32, Schema
    "n rows of d correlated columns in the unit interval."
    rng = np.random.default_rng(seed)
    names = [f"x{j}" for j in range(d)]
    hidden = rng.standard_normal((n, 2), dtype=np.float32)
    columns = {}
    for name in names:
        x = (
            hidden @ rng.normal(0, 0.12, 2).astype(np.float32)
            + rng.normal(0.5, 0.1)
            + 0.1 * rng.standard_normal(n, dtype=np.float32)
        )
        columns[name] = np.clip(x, 0, 1)
    schema = Schema([Numeric(name, 0, 1, bins=levels) for name in names])
    return pd.DataFrame(columns, copy=False), schema


def growth_point(
    rows: int = 100_000,
    columns: int = 10,
    particles: int = 100_000,
    levels: int = 32,
    epochs: int = 2,  # of a descent that is timed
) -> dict:  # the record
    "Phases, peak memory and the time of one epoch of descent, on a simulated table."
    frame, schema = simulate(rows, columns, levels)
    _, made, phases = walk(frame, schema, particles=particles)
    peak = peak_memory()
    if epochs:
        history: list[dict] = []
        descend(
            {c: t for c, t in made.tables.items() if len(c) == 2},
            schema,
            particles,
            epochs=epochs + 1,
            start=made.particles,
            gradient="histogram",
            optimizer="transport",
            seed=0,
            verbose=False,
            history=history,
        )
        phases["epoch"] = (history[-1]["seconds"] - history[0]["seconds"]) / epochs
    return dict(
        part="growth",
        rows=rows,
        columns=columns,
        marginals=columns * (columns - 1) // 2,
        particles=particles,
        levels=levels,
        seconds=phases,
        peak_mb=peak,
        peak_mb_descent=peak_memory() if epochs else None,
    )


def growth_plan(
    quick: bool = False,  # small sizes
) -> list:  # arguments of `growth_point`, with the axis
    "Which simulated tables are measured: particles, then columns, then rows."
    particles = (10_000, 100_000, 1_000_000)
    columns = (5, 10, 20, 40)
    rows = (10_000, 100_000, 1_000_000, 10_000_000)
    if quick:
        particles, columns, rows = particles[:2], columns[:2], rows[:3]
    return [
        *(dict(axis="particles", particles=m) for m in particles),
        *(dict(axis="marginals", columns=d) for d in columns),
        *(dict(axis="rows", rows=n, epochs=0) for n in rows),
    ]


# --------------------------------------------------------------------- all of it
# Every record is written as soon as it is there, so a run that is cut short keeps what
# it has. A line says which sources it was measured with (a digest of the package) and
# how busy the machine was (its load average).


def machine() -> dict:  # the record
    "What the run ran on."
    # not above: every measured process would pay for its import
    from privpgd.app.jobs import versions

    model = ""
    with contextlib.suppress(OSError, IndexError):
        facts = Path("/proc/cpuinfo").read_text()
        model = re.findall(r"model name\s*:\s*(.*)", facts)[0]
    used = versions()
    load = os.getloadavg() if hasattr(os, "getloadavg") else None
    return dict(
        part="machine",
        processor=model or platform.machine(),
        cores=os.cpu_count(),
        system=platform.system(),
        **{k: used[k] for k in ("python", "torch", "numpy", "numba", "source")},
        load=None if load is None else [round(v, 1) for v in load],
        date=time.strftime("%Y-%m-%d"),
    )


def parts(
    # tables for the walk, the losses and the paper's schedule
    datasets: tuple = ("diabetes130us", "acs_income_us"),
    quick: bool = False,  # small sizes, only to see that everything works
) -> dict:  # name -> function that gives records
    "The measurements by name."
    m, epochs = (5000, 20) if quick else (100_000, 1000)
    million = dict(columns=40, particles=1_000_000)
    projection: dict[str, Any] = dict(datasets=("adult", *datasets))
    limits: dict[str, Any] = {}
    if quick:
        million = dict(columns=8, particles=10_000)
        projection = dict(datasets=datasets[:1], epsilons=(2.5,), timed=5, repeats=2)
        limits = dict(torch_limit=2.0)

    def grow(axis, **sizes):
        return in_new_process("growth_point", **sizes) | dict(axis=axis)

    def end():
        for name in datasets:
            yield in_new_process("end_to_end", dataset=name, particles=m, estimate=True)
        for name in datasets[:1]:
            yield in_new_process(
                "end_to_end", blas=2, dataset=name, particles=m, score=False
            )

    def start():
        for name in datasets:
            yield from time_start(name, m)

    return {
        "gradient": time_gradients,
        "projection": lambda: time_projections(**projection),
        "end": end,
        "start": start,
        "growth": lambda: (grow(**plan) for plan in growth_plan(quick)),
        "loss": lambda: run_loss(datasets, m, epochs, **limits),
        "million": lambda: [
            grow("million", **million, epochs=1) | dict(part="million")
        ],
        "paper": lambda: (
            paper_schedule(name, particles=m, epochs=epochs) for name in datasets
        ),
    }


def run(
    names: list,  # parts
    out=None,  # file to append to, or None
    what: dict | None = None,  # from `parts`
) -> list:  # records
    "Run parts and write each record when it is there."
    what = what or parts()
    for name in names:
        if name not in what:
            raise ValueError(
                f"There is no part named {name!r}: choose from {', '.join(what)}."
            )
    here = machine()
    records = []
    for record in itertools.chain([here], *(what[name]() for name in names)):
        if record is not here and hasattr(os, "getloadavg"):
            record = record | {"load": round(os.getloadavg()[0], 1)}
        records.append(record | {"source": here["source"]})
        line = json.dumps(records[-1], default=float)
        print(line if len(line) < 400 else line[:400] + " …", flush=True)
        if out:
            with open(out, "a") as file:
                file.write(line + "\n")
    return records


def main(argv: list | None = None) -> None:
    "The command `python benchmarks/speed.py`."
    parser = argparse.ArgumentParser(
        "python benchmarks/speed.py",
        description="Measure the speed of privpgd against the paper's formulas.",
    )
    parser.add_argument(
        "--parts", help=f"comma-separated, of {', '.join(parts())}; all by default"
    )
    parser.add_argument("--datasets", default="diabetes130us,acs_income_us")
    parser.add_argument("--out", help="file of JSON lines, made anew")
    parser.add_argument("--append", action="store_true", help="add to the file instead")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sizes, only to see that everything works",
    )
    parser.add_argument("--call", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    if given.call:
        function, arguments = given.call
        record = globals()[function](**json.loads(arguments))
        print(json.dumps(record, default=float))
        return
    datasets = tuple(given.datasets.split(","))
    what = parts(datasets, given.quick)
    names = given.parts.split(",") if given.parts else list(what)
    needed = (
        datasets if given.quick or "projection" not in names else (*datasets, "adult")
    )
    for name in needed:
        load_dataset(name)  # a missing table shows at once, not after half an hour
    if given.out and not given.append:
        Path(given.out).write_text("")
    for row in checks(run(names, given.out, what)):
        print(
            f"{row['requirement']}: {row['measured']} (asked for: {row['target']}): "
            f"{row['verdict']}"
        )


if __name__ == "__main__":
    main()
