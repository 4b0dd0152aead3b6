"""Tests of the speed measurements on sizes that take seconds.

python benchmarks/test_speed.py
"""

import tempfile
import time
import warnings
from pathlib import Path

import numba
import numpy as np
import torch
from speed import (
    cell_centres,
    gradient_case,
    growth_point,
    in_new_process,
    noisy_table,
    paper_estimate,
    run,
    simulate,
    take_turns,
    time_gradients,
    time_projection,
    use_threads,
    walk,
)
from speed_descents import (
    SCHEDULES,
    loss_curves,
    paper_schedule,
    time_schedule,
    timed_descent,
)
from speed_report import (
    AXES,
    checks,
    exponent,
    extend,
    growth_fits,
    plot_growth,
    plot_losses,
    ratios,
    read_speed,
)

from privpgd.app.synthesizer import PrivPGD
from privpgd.evaluation.datasets import load_dataset
from privpgd.transport.projection import project_paper


def close(a, b, eps):
    np.testing.assert_allclose(a, b, rtol=0, atol=eps)


def test_turns():
    order = []
    waits = take_turns(
        {
            "short": lambda: (order.append("s"), time.sleep(0.002)),
            "long": lambda: (order.append("l"), time.sleep(0.02)),
        },
        repeats=3,
    )
    assert "".join(order) == "ssll" * 3
    assert waits["short"] < waits["long"]
    with use_threads(1):
        assert (torch.get_num_threads(), numba.get_num_threads()) == (1, 1)


def test_gradients():
    "What is timed is the same thing; histograms are random inside of a bin."
    case = gradient_case(3000)
    del case["quantile table"]
    losses = {name: gradient()[0] for name, gradient in case.items()}
    for name, loss in losses.items():
        close(loss, losses["torch sort"], 1e-3 if "histogram" in name else 1e-4)
    assert [r["threads"] for r in time_gradients(1000, repeats=1, threads=(1,))] == [1]


def test_projection():
    small = noisy_table(8)
    assert small.min() < 0
    paths = [
        project_paper(small, cell_centres(8), iterations=30, gradient=g)
        for g in ("torch", "numba")
    ]
    close(*paths, 1e-3)  # single and double precision
    record = time_projection(small, timed=10, repeats=2)
    assert record["seconds"]["numba"] < record["seconds"]["torch"]


def test_walk():
    "The walk makes the rows of PrivPGD; the estimate adds up; a process has a peak."
    moons = load_dataset("toy_moons")
    _, made, phases = walk(moons.train, moons.schema, particles=500)
    model = PrivPGD(2.5, 1e-5, n_particles=500, seed=0, verbose=False)
    whole = model.fit(moons.train, moons.schema)
    np.testing.assert_array_equal(made.codes, whole.codes_)
    steps = sum(phases[p] for p in ("measure", "tables", "refine", "decode"))
    close(steps, phases["total"], 1e-6)
    guess = paper_estimate(made.tables, moons.schema, particles=2000, timed=2)
    close(guess["total"], 1000 * guess["gradients"] + guess["projection"], 1e-6)
    assert guess["total"] > 1
    apart = in_new_process("end_to_end", threads=1, dataset="toy_moons", particles=500)
    assert apart["peak_mb"] > 50 and 0 < apart["sw1"] < apart["l1"]
    try:
        in_new_process("end_to_start")
    except ValueError as error:
        assert "end_to_start" in str(error)
    else:
        raise AssertionError("a function that does not exist was called")


def test_growth():
    frame, schema = simulate(500, 3, 8)
    assert (frame.shape, schema.shape) == ((500, 3), (8, 8, 8))
    assert abs(np.corrcoef(frame.T)[0, 1]) > 0.05
    point = growth_point(500, 3, 400, 8)
    assert (point["marginals"], point["particles"]) == (3, 400)
    assert point["seconds"]["epoch"] > 0
    assert point["peak_mb_descent"] >= point["peak_mb"]


def test_descents():
    "Losses fall; a descent stops at its goal; the picture can be drawn."
    moons = load_dataset("toy_moons")
    record, schema, pairs, draws = loss_curves(
        "toy_moons", 500, epochs=40, torch_limit=0.5
    )
    for name, curve in record["curves"].items():
        share = 1.0 if name == "default" else 0.2
        assert curve[-1][2] < share * max(curve[0][2], 1e-4), (name, curve)
    paper = record["curves"]["paper's schedule, compiled"]
    half = timed_descent(pairs, schema, 500, below=0.5 * paper[0][2], epochs=40)
    assert half[-1][0] < 40
    goal = 1.2 * paper[-1][2]
    tried = time_schedule(SCHEDULES[1], schema, pairs, draws, goal, 60, limit=1.0)
    assert tried["reached"] == (tried["loss"] <= goal)
    letter = paper_schedule("toy_moons", particles=200, epochs=11)
    epochs = [e for e, _ in letter["history"]]
    assert (letter["marginals"], epochs) == (3, [1, 11])
    assert len(moons.schema.names) == 3
    plot_losses(record)


def test_run():
    "Records are appended; of each measurement the last one is read."
    out = Path(tempfile.mkdtemp()) / "speed.jsonl"
    tiny = {
        "gradient": lambda: time_gradients(500, repeats=1, threads=(1,)),
        "two": lambda: [dict(part="growth", axis="rows", rows=r) for r in (1, 2)],
    }
    for _ in range(2):
        run(["gradient", "two"], out, tiny)
    records = read_speed(out)
    kinds = ["machine", "gradient", "growth", "growth", "machine"]
    assert [r["part"] for r in records] == kinds
    assert len({r["source"] for r in records}) == 1
    assert len(out.read_text().splitlines()) == 8
    try:
        run(["gradients"])
    except ValueError as error:
        assert "no part" in str(error)
    else:
        raise AssertionError("a part that does not exist was run")


def test_checks():
    seconds = {"torch sort": 1.0, "torch histogram": 0.1, "numba histogram": 0.03}
    records = [
        dict(part="gradient", threads=1, seconds=seconds),
        dict(
            part="end to end",
            dataset="acs_income_us",
            seconds=dict(total=2.0),
            paper=dict(total=2000.0),
            sw1=0.0001,
            l1=0.009,
        ),
        dict(part="paper", dataset="acs_income_us", sw1=0.0002, l1=0.02),
        dict(part="start", dataset="a", process="first", since_launch=10.0),
        dict(part="start", dataset="a", process="second", since_launch=4.0),
        *(
            dict(
                part="growth", axis="rows", rows=n, seconds=dict(total=2 + n, measure=n)
            )
            for n in (10, 100)
        ),
        dict(
            part="million",
            particles=10,
            columns=2,
            peak_mb=1024.0,
            peak_mb_descent=2048.0,
        ),
    ]
    missed = [r["requirement"] for r in checks(records) if "NOT" in r["verdict"]]
    assert len(checks(records)) == 12
    assert missed == [
        "gradient, numba histogram against torch sort, 1 thread(s)",
        "acs_income_us, L1",
    ]
    assert checks([]) == []


def test_exponents():
    close(exponent([1, 10, 100], [3, 30, 300]), 1, 1e-9)
    close(exponent([1, 2, 4, 8], np.array([1, 2, 4, 8.0]) ** 2), 2, 1e-9)
    late = [
        dict(
            part="growth",
            axis="particles",
            particles=m,
            seconds=dict(total=1 + m, refine=m, epoch=e, measure=0.1),
        )
        for m, e in ((1, 1), (10, 10), (100, 200))
    ]
    grown = {row["requirement"]: row for row in checks(late)}
    assert len(grown) == 6
    whole = "growth of {} with particles, exponent over the whole range"
    largest = "growth of {} with particles, exponent between the two largest"
    assert grown[whole.format("refinement")]["measured"] == "1"
    slow = [grown[w.format("an epoch of descent")] for w in (whole, largest)]
    assert [row["measured"] for row in slow] == ["1.151", "1.301"]
    assert {row["verdict"] for row in slow} == {"NOT reached"}
    assert grown[whole.format("everything")]["verdict"] == "reached"


def test_pictures():
    assert ratios(dict(seconds={"a": 2.0, "b": 0.5}), "a") == {"a": 1.0, "b": 4.0}
    made_up = []
    for axis in AXES:
        for x in (1e3, 1e4, 1e5):
            counting = 0.1 + (1e-6 * x if axis == "rows" else 0)
            seconds = dict(measure=counting, tables=1.0, refine=1e-4 * x, total=2.0)
            record = dict(part="growth", axis=axis, seconds=seconds, peak_mb=300 + x)
            made_up.append(record | {axis: x})
    close(growth_fits(made_up)["particles"]["refine"], 1, 1e-6)
    close(growth_fits(made_up)["rows"]["total"], 0, 1e-6)
    assert plot_growth(made_up).shape == (2, 3)
    short = [(1, 2.0, 0.5), (2, 4.0, 0.4)]
    whole = [(1, 0.1, 0.5), (2, 0.2, 0.4), (10, 1.0, 0.1)]
    assert extend(short, whole) == [(10, 20.0, 0.1)]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name, "passed")
