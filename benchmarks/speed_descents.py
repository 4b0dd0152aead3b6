"""Loss against time of descents and of the default; used by speed.py.

All runs get the same tables, and are judged by one loss that none of them minimises:
the mean over the tables of the squared sliced 2-Wasserstein distance on 6 fixed
directions, with exact sorts against the table's own quantiles. The time for judging is
subtracted.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

import numpy as np

import privpgd.transport.particles as particles_module
from privpgd.app.pipeline import default_workload
from privpgd.app.synthesizer import PrivPGD
from privpgd.evaluation.datasets import load_dataset
from privpgd.evaluation.metrics import evaluate
from privpgd.joint.mixture import fit_mixture
from privpgd.joint.refinement import refine
from privpgd.joint.shrinkage import mixture_tables
from privpgd.methods.privpgd import PRESETS
from privpgd.private.account import Budget
from privpgd.private.measure import measure
from privpgd.table.schema import Schema
from privpgd.transport.embedding import Embedding
from privpgd.transport.histograms import quantile_table
from privpgd.transport.particles import descend
from privpgd.transport.wasserstein import directions

# ------------------------------------------------------------------- loss against time


def cloud_loss(
    particles: np.ndarray,  # (m, D)
    tables: dict,  # clique -> probability table
    embedding: Embedding,
    n_directions: int = 6,
) -> float:
    "Mean squared sliced 2-Wasserstein distance between particles and tables."
    out = []
    z = np.asarray(particles, np.float32)
    for clique, table in tables.items():
        points = embedding.points(clique)
        dim = points.shape[1]
        theta = np.ones((1, 1))
        if dim > 1:
            theta = directions(n_directions, dim, 7, "even")
        own = z[:, embedding.slice(clique)]
        places = np.sort(theta.astype(np.float32) @ own.T, axis=1)
        target = quantile_table(points, table, theta, size=len(z))
        out.append(((places - target) ** 2).mean())
    return float(np.mean(out))


def judged_epochs(last: int) -> set:
    "Epochs at which a run is judged: all at first, then ever fewer."
    steps = {int(round(e)) for e in 1.4 ** np.arange(0, 60)}
    return steps & set(range(last + 1)) | {last}


def timed_descent(
    tables: dict,  # clique -> probability table
    schema: Schema,
    particles: int,
    limit: float = np.inf,  # seconds
    below: float = -np.inf,  # loss at which it stops
    epochs: int = 1000,
    **options,  # of `descend`
) -> list:  # (epoch, seconds, loss)
    "A descent that is judged from time to time, until its time or loss is reached."
    embedding = options.get("embedding") or Embedding(schema)
    judged = judged_epochs(epochs)
    curve: list[tuple] = []
    lost = 0.0  # seconds spent on judging
    began = time.perf_counter()

    def look(epoch, z):
        nonlocal lost
        now = time.perf_counter() - began - lost
        if epoch in judged or now > limit:
            curve.append((epoch, now, cloud_loss(z, tables, embedding)))
        lost = time.perf_counter() - began - now
        return now > limit or (len(curve) > 0 and curve[-1][2] <= below)

    descend(
        tables,
        schema,
        particles,
        epochs=epochs,
        seed=0,
        verbose=False,
        callback=look,
        **{"device": "cpu"} | options,
    )
    return curve


def default_curve(
    noisy: list,  # of Measurement
    schema: Schema,
    particles: int,
) -> tuple:  # tables, first particles, [(sweep, seconds, loss)]
    "Loss of the default's draws, and after each sweep; its clock includes the mixture."
    embedding = Embedding(schema)
    began = time.perf_counter()
    mixture = fit_mixture(noisy, schema, seed=0)
    tables = mixture_tables(mixture, noisy, schema)
    codes = mixture.draw(particles, seed=0, independent=0.5)
    made = time.perf_counter() - began
    how: Any = PRESETS["default"].refinement
    annealed = how["anneal_sweeps"]
    curve = [(0, made, cloud_loss(embedding.embed(codes), tables, embedding))]
    # from the start for every length, so that judging costs no time
    for s in range(1, annealed + how["sweeps"] + 1):
        sweeps = dict(anneal_sweeps=min(s, annealed), sweeps=max(s - annealed, 0))
        began = time.perf_counter()
        new = refine(codes, tables, schema, **{**how, **sweeps}, seed=0)
        took = time.perf_counter() - began
        loss = cloud_loss(embedding.embed(new), tables, embedding)
        curve.append((s, made + took, loss))
    return tables, embedding.embed(codes), curve


def loss_curves(
    dataset: str,
    particles: int = 100_000,
    epochs: int = 1000,
    torch_limit: float = 20.0,  # seconds for the paper's code path
    epsilon: float = 2.5,
) -> tuple:  # record, schema, tables, draws
    "Loss against time of the paper's code path and schedule, and of the default."
    data = load_dataset(dataset)
    schema = data.schema
    budget = Budget(epsilon=epsilon, delta=1e-5)
    noisy, _ = measure(data.train, schema, default_workload(schema), budget, seed=0)
    tables, draws, default = default_curve(noisy, schema, particles)
    pairs = {c: t for c, t in tables.items() if len(c) == 2}
    schedule: dict[str, Any] = dict(epochs=epochs, gradient="exact")
    short: dict[str, Any] = dict(gradient="histogram", optimizer="transport")
    curves = {
        "default": default,
        "paper's code path": timed_descent(
            pairs, schema, particles, torch_limit, device="torch", **schedule
        ),
        "paper's schedule, compiled": timed_descent(
            pairs, schema, particles, **schedule
        ),
        "histogram and transport": timed_descent(
            pairs, schema, particles, epochs=min(epochs, 100), **short
        ),
    }
    record = dict(
        part="loss",
        dataset=dataset,
        particles=particles,
        marginals=len(pairs),
        epochs=epochs,
        epsilon=epsilon,
        curves=curves,
    )
    return record, schema, pairs, draws


# -------------------------------------------------------------------------- schedules
# How many epochs, which batches, which step size, how fine a table of quantiles, from
# where? The paper's final loss is the goal; each setting runs until it is below.


def setting(start: str, quantiles: int, batch_size: int, lr: float, **more) -> dict:
    "One schedule of the histogram descent; by transport steps unless told otherwise."
    return dict(
        start=start,
        quantiles=quantiles,
        optimizer="transport",
        batch_size=batch_size,
        lr=lr,
    ) | dict(more)


SCHEDULES = [
    setting("uniform", 2048, 5, 1.5),
    setting("uniform", 8192, 5, 1.5),
    setting("uniform", 8192, 1, 1.0),
    setting("uniform", 8192, 10_000, 1.5),
    setting("uniform", 8192, 5, 0.1, optimizer="sparse-adam", decay=0.75, step=5),
    setting("draws", 2048, 5, 1.5),
    setting("draws", 8192, 5, 1.5),
    setting("draws", 8192, 5, 1.0),
    setting("draws", 8192, 1, 0.5),
    setting("draws", 8192, 5, 1.5, decay=0.7, step=10),
]


@contextlib.contextmanager
def use_quantiles(size: int):
    "Quantile tables of `size` entries in the histogram descent."
    before = particles_module.bank_size

    def bank_size(n_tables, n_directions, limit=0):
        return 4 if n_tables < 100 else 1, size

    particles_module.bank_size = bank_size
    try:
        yield
    finally:
        particles_module.bank_size = before


def time_schedule(
    chosen: dict,  # one of SCHEDULES
    schema: Schema,
    tables: dict,  # clique -> probability table
    draws: np.ndarray,  # (m, D) particles of the mixture
    goal: float,  # loss
    epochs: int = 100,
    limit: float = 15.0,  # seconds
) -> dict:  # the record, without the dataset
    "Epochs and seconds until the loss of a schedule is below the goal."
    options = {k: v for k, v in chosen.items() if k != "quantiles"}
    if chosen["start"] == "draws":
        options["start"] = draws
    m = len(draws)
    with use_quantiles(chosen["quantiles"]):
        curve = timed_descent(
            tables, schema, m, limit, goal, epochs, gradient="histogram", **options
        )
    epoch, seconds, loss = curve[-1]
    return dict(
        part="schedule",
        particles=m,
        marginals=len(tables),
        setting=chosen,
        goal=goal,
        reached=loss <= goal,
        epochs=epoch,
        seconds=seconds,
        loss=loss,
        best=min(c[2] for c in curve),
        curve=curve,
    )


def run_loss(datasets: tuple, particles: int = 100_000, epochs: int = 1000, **limits):
    "Curves, then schedules against the goal that the curves give, for each dataset."
    for name in datasets:
        record, schema, tables, draws = loss_curves(name, particles, epochs, **limits)
        yield record
        goal = record["curves"]["paper's schedule, compiled"][-1][2]
        for chosen in SCHEDULES:
            found = time_schedule(chosen, schema, tables, draws, goal)
            yield found | dict(dataset=name)


# --------------------------------------------------------- the paper's schedule, whole


def paper_schedule(
    dataset: str,
    epsilon: float = 2.5,
    particles: int = 100_000,
    epochs: int | None = None,  # the paper's 1,000 if None
) -> dict:  # the record
    'Errors of `preset="paper"`, with the losses of every tenth epoch.'
    data = load_dataset(dataset)
    began = time.perf_counter()
    used = time.process_time()
    model = PrivPGD(
        epsilon,
        1e-5,
        preset="paper",
        n_particles=particles,
        epochs=epochs,
        seed=0,
        verbose=False,
    ).fit(data.train, data.schema)
    synth = model.sample()
    seconds = time.perf_counter() - began
    processor = time.process_time() - used
    errors = evaluate(data.train, synth, data.schema, seed=0)
    values = errors.set_index("metric")["value"]
    return dict(
        part="paper",
        dataset=dataset,
        epsilon=epsilon,
        particles=particles,
        marginals=len(model.tables_),
        seconds=seconds,
        processor_seconds=processor,
        **{k: float(values[k]) for k in ("sw1", "l1", "covariance", "counting")},
        history=[(h["epoch"], h["loss"]) for h in model.history_[::10]],
    )
