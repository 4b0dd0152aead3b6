"""Tables, verdicts and pictures from the records of speed.py."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

# what tells one measurement from another
KEYS = [
    "part",
    "dataset",
    "threads",
    "process",
    "axis",
    "rows",
    "columns",
    "particles",
    "setting",
    "table",
    "balanced",
    "blas",
]


def read_speed(path) -> list:  # records
    "Records of a file: of each measurement the last one, and every machine line."
    last = {}
    for number, line in enumerate(Path(path).read_text().splitlines()):
        record = json.loads(line)
        key = tuple(str(record.get(k)) for k in KEYS)
        last[number if record["part"] == "machine" else key] = record
    return list(last.values())


def ratios(
    record: dict,  # with seconds by name
    baseline: str,  # one of the names
) -> dict:  # name -> how many times faster than the baseline
    "Seconds of the baseline over the seconds of each."
    base = record["seconds"][baseline]
    return {name: base / s for name, s in record["seconds"].items()}


# ------------------------------------------------------------------------------ growth
# If t = c x^a, then log t is a line with slope a, and least squares gives it.

AXES = {
    "particles": "particles m",
    "marginals": "2-way marginals",
    "rows": "rows n",
}


def exponent(x, y) -> float:
    "Slope of log y over log x by least squares."
    x, y = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    return float(np.polyfit(x, y, 1)[0])


def growth_points(records: list, axis: str) -> list:
    "Records of growth along one axis, in order."
    points = [r for r in records if r["part"] == "growth" and r.get("axis") == axis]
    return sorted(points, key=lambda r: r[axis])


def growth_fits(records: list) -> dict:  # axis -> dict phase -> exponent
    "Exponents of every phase that takes more than a hundredth of a second."
    out = {}
    for axis in AXES:
        points = growth_points(records, axis)
        if len(points) < 2:
            continue
        fits = {}
        for phase in points[-1]["seconds"]:
            seconds = [r["seconds"].get(phase, 0) for r in points]
            if min(seconds) > 0 and max(seconds) > 0.01:
                fits[phase] = exponent([r[axis] for r in points], seconds)
        out[axis] = fits
    return out


# ---------------------------------------------------- what was asked for and reached
# Each requirement of speed, quality and memory becomes one line with a number, a target
# and a verdict. Growth is judged twice: by the line through the whole range, and between
# the two largest sizes, where constant parts weigh least.


def verdict(
    what: str,  # the requirement
    value: float,  # measured
    target: float,
    least: bool = True,  # the target is a lower bound
    unit: str = "",
) -> dict:
    "One requirement."

    def number(v):
        return f"{v:,.0f}{unit}" if abs(v) >= 100 else f"{v:.4g}{unit}"

    good = value >= target if least else value <= target
    return dict(
        requirement=what,
        measured=number(value),
        target=f"at {'least' if least else 'most'} {number(target)}",
        verdict="reached" if good else "NOT reached",
    )


def check_gradients(records: list) -> list:
    "Histogram gradients against the sort in torch."
    out = []
    for r in (r for r in records if r["part"] == "gradient"):
        for name, target in (("numba", 50), ("torch", 8)):
            what = (
                f"gradient, {name} histogram against torch sort, {r['threads']} "
                "thread(s)"
            )
            ratio = ratios(r, "torch sort")[f"{name} histogram"]
            out.append(verdict(what, ratio, target, unit="×"))
    return out


def check_walk(records: list) -> list:
    "The walk from data frame to data frame, against the paper's time and errors."
    out = []
    paper = {r["dataset"]: r for r in records if r["part"] == "paper"}
    for r in (r for r in records if r["part"] == "end to end" and "paper" in r):
        name = r["dataset"]
        what = f"{name}, end to end against the paper's code path (estimated)"
        ratio = r["paper"]["total"] / r["seconds"]["total"]
        out.append(verdict(what, ratio, 500, unit="×"))
        for key, label, limit in (("sw1", "SW₁", 0.00015), ("l1", "L1", 0.008)):
            if name in paper:
                what = f"{name}, {label} against the paper's schedule"
                out.append(verdict(what, r[key], paper[name][key], least=False))
            if name == "acs_income_us":
                out.append(verdict(f"{name}, {label}", r[key], limit, least=False))
        if name == "acs_income_us":
            seconds = r["seconds"]["total"]
            out.append(verdict(f"{name}, end to end", seconds, 30, False, " s"))
    for r in (r for r in records if r["part"] == "loss"):
        what = (
            f"{r['dataset']}, loss of the default against that of the paper's "
            f"{r['epochs']} epochs"
        )
        ours = r["curves"]["default"][-1][2]
        goal = r["curves"]["paper's schedule, compiled"][-1][2]
        out.append(verdict(what, ours, goal, least=False))
    return out


def growing(record: dict, axis: str) -> dict:  # what -> seconds
    "Times whose growth is judged; with more rows only counting may take longer."
    seconds = record["seconds"]
    if axis == "rows":
        return {"everything after counting": seconds["total"] - seconds["measure"]}
    names = dict(total="everything", refine="refinement", epoch="an epoch of descent")
    return {what: seconds[phase] for phase, what in names.items() if phase in seconds}


def check_start(records: list) -> list:
    "The second start against the first."
    seconds = {
        (r["dataset"], r["process"]): r["since_launch"]
        for r in records
        if r["part"] == "start"
    }
    out = []
    for name in dict.fromkeys(d for d, _ in seconds):
        what = f"{name}, second process over the first (compiled code is cached)"
        ratio = seconds[name, "second"] / seconds[name, "first"]
        out.append(verdict(what, ratio, 0.8, least=False))
    return out


def check_growth(records: list) -> list:
    "Exponents of growth along each axis."
    out = []
    for axis, target in (("particles", 1.15), ("marginals", 1.15), ("rows", 0.15)):
        points = growth_points(records, axis)
        ranges = {
            "over the whole range": points,
            "between the two largest": points[-2:],
        }
        for what in growing(points[-1], axis) if len(points) > 1 else ():
            for where, some in ranges.items():
                seconds = [growing(r, axis)[what] for r in some]
                slope = exponent([r[axis] for r in some], seconds)
                label = f"growth of {what} with {axis}, exponent {where}"
                out.append(verdict(label, slope, target, least=False))
    return out


def check_million(records: list) -> list:
    "Memory and refinement of a million particles."
    out = []
    for r in (r for r in records if r["part"] == "million"):
        m, d = r["particles"], r["columns"]
        what = f"{m:,} particles in {d} columns, peak memory"
        peak = max(r["peak_mb"], r["peak_mb_descent"]) / 1024
        out.append(verdict(what, peak, 8, False, " GiB"))
        for g in records if "seconds" in r else ():
            fewer = g["part"] == "growth" and g.get("particles", m) < m
            if not fewer or g.get("columns") != d or "refine" not in g["seconds"]:
                continue
            slope = exponent(
                [g["particles"], m], [g["seconds"]["refine"], r["seconds"]["refine"]]
            )
            what = (
                f"growth of refinement in {d} columns from {g['particles']:,} to {m:,} "
                "particles, exponent"
            )
            out.append(verdict(what, slope, 1.15, least=False))
    return out


def checks(records: list) -> list:  # dicts with requirement, measured, target, verdict
    "What was asked for, what was measured, and whether it was reached."
    kinds = (check_gradients, check_walk, check_start, check_growth, check_million)
    return [row for check in kinds for row in check(records)]


# ---------------------------------------------------------------------------- pictures

LABELS = {
    "measure": "count and noise",
    "tables": "tables and draws",
    "refine": "refinement",
    "decode": "decoding",
    "epoch": "an epoch of descent",
}


def plot_growth(records: list):  # the axes
    "Seconds and memory against particles, marginals and rows; exponents in the legend."
    import matplotlib.pyplot as plt

    from privpgd.core.figures import CYCLE, GREY, canvas

    fits = growth_fits(records)
    colours = dict(zip(("total", *LABELS), CYCLE))
    _, axes = plt.subplots(
        2,
        len(fits),
        figsize=(3.6 * len(fits), 5.8),
        dpi=80,
        squeeze=False,
        height_ratios=[2, 1],
        sharex="col",
        layout="constrained",
    )
    for (axis, slopes), (top, low) in zip(fits.items(), axes.T):
        points = growth_points(records, axis)
        x = [r[axis] for r in points]
        for phase, slope in slopes.items():
            top.plot(
                x,
                [r["seconds"][phase] for r in points],
                "o-",
                ms=3,
                lw=2 if phase == "total" else 1,
                color=colours[phase],
                label=f"{LABELS.get(phase, phase)}: {slope:.2f}",
            )
        low.plot(x, [r["peak_mb"] / 1024 for r in points], "o-", ms=3, color=GREY)
        top.set(xscale="log", yscale="log")
        low.set(xlabel=AXES[axis], ylim=(0, None))
        top.legend(
            fontsize=7,
            frameon=False,
            title="phase: exponent",
            title_fontsize=7,
            loc="lower center",
            bbox_to_anchor=(0.5, 1),
            ncols=2,
        )
        for ax in (top, low):
            canvas(ax)
    axes[0, 0].set_ylabel("seconds")
    axes[1, 0].set_ylabel("peak memory, GiB")
    return axes


def extend(
    curve: list,  # (epoch, seconds, loss) of a run that was stopped
    reference: list,  # the same schedule, to the end
) -> list:  # (epoch, seconds, loss) of the epochs that are missing
    "The rest of a stopped run: losses of its schedule, at its own seconds per epoch."
    last, seconds, _ = curve[-1]
    return [(e, e * seconds / last, loss) for e, _, loss in reference if e > last]


def plot_losses(record: dict, ax=None):  # the axes
    "Loss against time; the part of the paper's code path that was not run is dotted."
    from privpgd.core.figures import CYCLE, canvas

    title = f"{record['dataset']}, {record['marginals']} marginals"
    ax = canvas(ax, title=title)
    curves = record["curves"]
    names = (
        "default",
        "paper's code path",
        "paper's schedule, compiled",
        "histogram and transport",
    )
    colours = dict(zip(names, CYCLE))
    for name, curve in curves.items():
        _, seconds, losses = zip(*curve)
        style = "o-" if name == "default" else "-"
        ax.plot(seconds, losses, style, ms=3, color=colours[name], label=name)
    stopped = curves["paper's code path"]
    rest = [stopped[-1], *extend(stopped, curves["paper's schedule, compiled"])]
    _, seconds, losses = zip(*rest)
    ax.plot(seconds, losses, ":", color=colours["paper's code path"])
    ax.set(xscale="log", yscale="log", xlabel="seconds", ylabel="loss")
    return ax
