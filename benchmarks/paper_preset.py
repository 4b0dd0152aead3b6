"""The paper's method to the letter: with the authors' noise, with other settings, and
with the paper's constraint.

    python -m benchmarks.paper_preset noise --seeds 5
    python -m benchmarks.paper_preset settings --seeds 1
    python -m benchmarks.paper_preset constraint --seeds 1

The folder of the environment variable PRIVPGD_DATA must hold the tables. Lines that are
in the files already are not run again.
"""

import argparse
import json
import pathlib
import time

import numpy as np
import torch

from privpgd import Budget, PrivPGD, avoid, evaluate, load_dataset, measure
from privpgd.app.bench import run_grid
from privpgd.constrain.frames import ColumnMap
from privpgd.constrain.requirements import Requirements
from privpgd.constrain.statistics import Threshold
from privpgd.evaluation.paper import authors_epsilon
from privpgd.evaluation.results import append_line
from privpgd.methods.privpgd import PRESETS
from privpgd.private.statistics import measure_statistic
from privpgd.transport.embedding import Embedding
from privpgd.transport.particles import descend
from privpgd.transport.projection import project

RESULTS = pathlib.Path("nbs/experiments/results/paper")
PARTICLES = 10_000  # a tenth of the paper's; steps and learning rates are the paper's
PAPER_PARTICLES = 100_000  # the authors' weight is divided by this number
FULL = dict(PRESETS["paper"].descent)
BASE = FULL | dict(particles=PARTICLES)
SETTINGS = dict(
    n_directions=(10, 1, 30),
    batch_size=(1, 21),
    mask=(0.0, 0.95),
    lr=(0.01, 0.03, 0.3),
    particles=(1000,),
)  # beside the paper's own values, which are the first line
# a fifth of the paper's steps, with the same fall of the learning rate
SHORT_PROJECTION = dict(iterations=350, step=20)
WEIGHTS = (0, 1, 0.1, 10, 0.01)
ERRORS = ("downstream", "covariance", "counting", "thresholding", "sw1", "l1")


def authors_noise(frame, schema, epsilon, delta, seed):
    "The paper's preset with the noise of the authors' code, and its exact account."
    exact = authors_epsilon(epsilon, delta)
    model = PrivPGD(exact, delta, seed=seed, verbose=False, preset="paper")
    return model.fit(frame, schema).sample(), model.privacy_


def run_noise(out, seeds, epsilons):
    "Full runs with the authors' noise, scored with both readings of the covariance."
    run_grid(
        "diabetes130us",
        {"privpgd-paper-noise": authors_noise},
        epsilons,
        seeds,
        out=out / "noise.jsonl",
        evaluation=dict(extras=True),
    )


def lines_of(path):
    "The lines of a file that may not exist yet."
    return (
        [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []
    )


def errors_of(data, codes, target=False):
    "The paper's errors of codes."
    test = dict(test=data.test, target=data.target) if target else {}
    codes = np.ascontiguousarray(codes, np.int32)
    found = evaluate(data.train, codes, data.schema, seed=0, **test)
    found = dict(zip(found["metric"], found["value"]))
    return {name: float(found[name]) for name in ERRORS if name in found}


def run_settings(out, seeds, names, epsilon=2.5):
    "One setting changed at a time; the projected tables are shared."
    path = out / "robustness.jsonl"
    data = load_dataset("diabetes130us")
    embedding = Embedding(data.schema, line=True, units=False)
    for seed in range(seeds):
        done = {(x["name"], x["value"]) for x in lines_of(path) if x["seed"] == seed}
        todo = [(k, v) for k in names for v in SETTINGS[k]]
        todo = [job for job in todo if job not in done]
        if not todo:
            continue
        noisy, _ = measure(data.train, data.schema, 2, Budget(epsilon, 1e-5), seed=seed)
        how = dict(method="paper", embedding=embedding, seed=seed, **SHORT_PROJECTION)
        tables = project(noisy, data.schema, **how)
        for name, value in todo:
            options = BASE | {name: value}
            m = options.pop("particles")
            began = time.process_time()
            cloud = descend(
                tables,
                data.schema,
                m,
                embedding=embedding,
                seed=seed,
                verbose=False,
                **options,
            )
            line = dict(name=name, value=value, seed=seed, epsilon=epsilon)
            line |= dict(epochs=BASE["epochs"], base_particles=PARTICLES)
            line |= dict(seconds=time.process_time() - began)
            append_line(path, line | errors_of(data, embedding.nearest(cloud)))
            print(name, value, flush=True)


def run_constraint(out, seeds, particles, name="acs_income_ca"):
    "The paper's protected query with the paper's own method."
    path = out / "constraint.jsonl"
    data = load_dataset(name)
    schema = data.schema
    embedding = Embedding(schema, line=True, units=False)
    theta = np.random.default_rng(7).standard_normal(embedding.dim)
    theta /= np.linalg.norm(theta)
    places = embedding.embed(schema.encode(data.train))
    for seed in range(seeds):
        done = {x["weight"] for x in lines_of(path) if x["seed"] == seed}
        todo = [weight for weight in WEIGHTS if weight not in done]
        if not todo:
            continue
        noisy, _ = measure(data.train, schema, 2, Budget(2.0, 8e-6), seed=seed)
        how = dict(method="paper", embedding=embedding, seed=seed, **SHORT_PROJECTION)
        tables = project(noisy, schema, **how)
        query, target = private_query(data, embedding, tables, theta, particles, seed)
        column_map = ColumnMap(schema, embedding)
        soft = float(query(column_map(torch.as_tensor(places))))
        hard = float((places @ theta > query.offset).mean())
        for weight in todo:
            scaled = weight / PAPER_PARTICLES
            wishes = [avoid(query, target, scaled)] if weight else []
            requirements = Requirements(schema, wishes, (), embedding)
            began = time.process_time()
            cloud = descend(
                tables,
                schema,
                particles,
                embedding=embedding,
                seed=seed,
                verbose=False,
                penalty=requirements.penalty if weight else None,
                **FULL,
            )
            seconds = time.process_time() - began
            codes = embedding.nearest(cloud)
            z = embedding.embed(codes)
            line = dict(dataset=name, seed=seed, weight=weight, particles=particles)
            line |= dict(
                epochs=FULL["epochs"],
                seconds=seconds,
                smooth_query=abs(float(query(column_map(torch.as_tensor(z)))) - soft),
                query=abs(float((z @ theta > query.offset).mean()) - hard),
            )
            append_line(path, line | errors_of(data, codes, target=True))
            print(weight, flush=True)


def private_query(data, embedding, tables, theta, particles, seed):
    "The query at a threshold that is private already, and its noisy answer."
    start = descend(
        tables,
        data.schema,
        particles,
        epochs=0,
        start="independent",
        embedding=embedding,
        seed=seed,
        verbose=False,
    )
    query = Threshold(theta, float(np.quantile(start @ theta, 0.6)))
    budget = Budget(epsilon=0.5, delta=2e-6)
    target, _ = measure_statistic(
        data.train, data.schema, query, budget, seed=seed, line=True
    )
    return query, target.value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("noise", "settings", "constraint"))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epsilons", default="2.5,1.0,0.2")
    parser.add_argument("--particles", type=int, default=PARTICLES)  # of constraint
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--out", type=pathlib.Path, default=RESULTS)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    epsilons = [float(e) for e in args.epsilons.split(",")]
    if args.what == "noise":
        run_noise(args.out, args.seeds, epsilons)
    elif args.what == "settings":
        run_settings(args.out, args.seeds, args.settings.split(","))
    else:
        run_constraint(args.out, args.seeds, args.particles)


if __name__ == "__main__":
    main()
