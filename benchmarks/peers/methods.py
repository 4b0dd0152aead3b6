"""Run one method on one table of codes, with the Python of its own environment.

    python methods.py FOLDER

FOLDER has job.json (method, dataset, shape, epsilon, delta, seed, rows) and codes.npy;
synth.npy and facts.json are written beside them, and redrawn.npy by libraries that
draw rows with mbi 1.1. Every method gets the number of levels
of each column as a public fact, and no processing of its own. Settings are the defaults
of each library.
"""

import json
import sys
import time
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np

warnings.simplefilter("ignore")


def draw_rows(model, rows=None, method="round"):
    """Independent rows of a graphical model of mbi 1.1, column after column.

    mbi 1.1.0 draws rows that do not have the marginals of their model; 2.0 mends it, but
    neither opendp 0.16 nor smartnoise-synth 1.0.8 can be installed with it. This takes
    the place of `MarkovRandomField.synthetic_data`."""
    import mbi

    rng, rows = np.random.default_rng(0), int(rows or model.total)
    cliques = [set(clique) for clique in model.cliques]
    tree, order = mbi.junction_tree.make_junction_tree(model.domain, cliques)
    nodes = list(tree.nodes)
    potentials = model.potentials.expand(nodes)
    tables = mbi.marginal_oracles.message_passing_stable(potentials, model.total)
    drawn = {}
    for name in reversed(order):
        near = [tuple(c for c in n if c in drawn) for n in nodes if name in n]
        known = max(near, key=len)
        table = np.asarray(tables.project((*known, name)).values, dtype=float)
        shape = table.shape[:-1]
        edges = np.cumsum(np.maximum(table.reshape(-1, table.shape[-1]), 0), axis=1)
        at = np.zeros(rows, dtype=int)
        if known:
            at = np.ravel_multi_index([drawn[c] for c in known], shape)
        edges = edges[at]
        level = (edges <= (rng.random(rows) * edges[:, -1])[:, None]).sum(axis=1)
        drawn[name] = np.minimum(level, table.shape[-1] - 1)
    return mbi.Dataset({name: drawn[name] for name in model.domain.attrs}, model.domain)


def run_dpmm(codes, job, name):
    "A pipeline of dpmm without its binning, in one process."
    import pandas as pd
    from dpmm import pipelines

    kind = getattr(pipelines, name)
    names = [f"c{j}" for j in range(codes.shape[1])]
    options = dict(disable_processing=True, n_jobs=1)
    model = kind(epsilon=job["epsilon"], delta=job["delta"], **options)
    domain = dict(zip(names, job["shape"]))
    frame = pd.DataFrame(codes, columns=names)
    model.fit(frame, domain=domain, random_state=job["seed"])
    return model.generate(n_records=job["rows"])[names].to_numpy()


def run_smartnoise(codes, job, name):
    "A synthesizer of smartnoise-synth; the levels of its columns are given to it."
    import pandas as pd
    from snsynth import Synthesizer, TableTransformer
    from snsynth.transform import LabelTransformer

    columns = []
    for size in job["shape"]:
        column = LabelTransformer(nullable=False)
        column.fit(list(range(size)))  # the public levels, not the rows
        columns.append(column)
    np.random.seed(job["seed"])
    names = [f"c{j}" for j in range(codes.shape[1])]
    frame = pd.DataFrame(codes, columns=names)
    model = Synthesizer.create(name, epsilon=job["epsilon"], delta=job["delta"])
    model.fit(frame, transformer=TableTransformer(columns))
    return drawn_twice(lambda: model.sample(job["rows"])[names].to_numpy())


def drawn_twice(draw):
    "Rows as the library draws them, and by `draw_rows`."
    import mbi

    first = draw()
    mbi.MarkovRandomField.synthetic_data = draw_rows
    return first, draw()


def run_opendp(codes, job, name):
    "A contingency table of opendp; its budget is a rho, by its own conversion."
    import opendp.prelude as dp
    import polars as pl

    dp.enable_features("contrib", "floating-point")
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def promise(scale):
        noise = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale))
        return dp.c.make_fix_delta(noise, delta=job["delta"])

    budget = job["epsilon"], job["delta"]
    scale = dp.binary_search_param(promise, d_in=1.0, d_out=budget)
    rho = dp.m.make_gaussian(*space, scale).map(1.0)
    names = [f"c{j}" for j in range(codes.shape[1])]
    frame = pl.DataFrame({n: codes[:, j] for j, n in enumerate(names)}).lazy()
    context = dp.Context.compositor(
        data=frame,
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(rho=rho),
    )
    keys = {n: list(range(k)) for n, k in zip(names, job["shape"])}
    # it splits the budget, and the rounded sum of the parts may exceed the whole
    query = context.query(rho=rho * (1 - 1e-9)).select(*names)
    algorithm = getattr(dp.mbi, name)()
    table = query.contingency_table(keys=keys, algorithm=algorithm).release()

    def draw():
        out = table.synthesize(rows=job["rows"])
        job["missing"] = int(out.null_count().to_numpy().sum())
        return np.stack([known_levels(out[n], job["seed"]) for n in names], axis=1)

    return drawn_twice(draw)


def known_levels(column, seed):
    "A column without the level that opendp adds for unknown values: drawn anew."
    known = column.drop_nulls().to_numpy()
    drawn = np.random.default_rng(seed).choice(known, len(column))
    return np.where(column.is_null().to_numpy(), drawn, column.fill_null(0).to_numpy())


def run_privpgd(codes, job, preset):
    "Our default, or the paper's preset, with the schema of the benchmark."
    from privpgd import PrivPGD, load_dataset

    data = load_dataset(job["dataset"])
    model = PrivPGD(
        job["epsilon"],
        job["delta"],
        preset=preset,
        neighbors="add-remove",
        n_particles=job["rows"],
        seed=job["seed"],
        verbose=False,
    )
    model.fit(data.train, data.schema)
    job["spent"] = model.privacy_.epsilon
    return model.codes_


def run_generator(codes, job, name):
    "Our measurements of all pairs, and an estimator of the package mbi."
    from privpgd import load_dataset, synthesize

    data = load_dataset(job["dataset"])
    frame, ledger = synthesize(
        data.train,
        data.schema,
        generator=name,
        epsilon=job["epsilon"],
        delta=job["delta"],
        neighbors="add-remove",
        n_rows=job["rows"],
        seed=job["seed"],
    )
    job["spent"] = ledger.epsilon
    return data.schema.encode(frame)


METHODS = {  # name: environment, package, function, its argument
    "privpgd": ("", "privpgd", run_privpgd, "default"),
    "privpgd-paper": ("", "privpgd", run_privpgd, "paper"),
    "mbi-mop": ("", "mbi", run_generator, "mop"),
    "dpmm-mst": ("dpmm", "dpmm", run_dpmm, "MSTPipeline"),
    "dpmm-privbayes": ("dpmm", "dpmm", run_dpmm, "PrivBayesPipeline"),
    "dpmm-aim": ("dpmm", "dpmm", run_dpmm, "AIMPipeline"),
    "smartnoise-mst": ("smartnoise", "smartnoise-synth", run_smartnoise, "mst"),
    "smartnoise-aim": ("smartnoise", "smartnoise-synth", run_smartnoise, "aim"),
    "opendp-mst": ("opendp", "opendp", run_opendp, "MST"),
    "opendp-aim": ("opendp", "opendp", run_opendp, "AIM"),
}


def main(folder):
    "Do what the folder asks."
    job = json.loads((folder / "job.json").read_text())
    codes = np.load(folder / "codes.npy")
    _, package, function, argument = METHODS[job["method"]]
    wall, processor = time.perf_counter(), time.process_time()
    found = function(codes, job, argument)
    copies = found if isinstance(found, tuple) else (found,)
    facts = dict(
        version=version(package),
        seconds=round(time.process_time() - processor, 1),
        wall=round(time.perf_counter() - wall, 1),
    )
    facts |= {k: job[k] for k in ("missing", "spent") if k in job}
    for name, copy in zip(("synth", "redrawn"), copies):
        np.save(folder / f"{name}.npy", np.asarray(copy).astype(np.int32))
    (folder / "facts.json").write_text(json.dumps(facts))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
