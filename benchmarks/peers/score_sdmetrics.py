"""Score copies with sdmetrics' quality and diagnostic reports.

Run it with the Python of an environment that has sdmetrics 0.32.0:

    python score_sdmetrics.py COPIES OUT

COPIES is the folder that `benchmarks/other_rulers.py` wrote, OUT a file that gets one
line of JSON a copy. sdmetrics reads at most 50,000 rows of each table, drawn uniformly.
"""

import json
import sys
import warnings
from importlib.metadata import version
from pathlib import Path

import pandas as pd
from sdmetrics.reports.single_table import DiagnosticReport, QualityReport

warnings.simplefilter("ignore")
ROWS = 50_000


def read(path, kinds):
    "A table with numbers as numbers and levels as text."
    frame = pd.read_csv(path, dtype=str)
    frame = frame.sample(min(len(frame), ROWS), random_state=0)
    for name, kind in kinds.items():
        if kind == "numerical":
            frame[name] = pd.to_numeric(frame[name])
    return frame.reset_index(drop=True)


def score(real, copy, kinds):
    "The reports' scores, of 1."
    metadata = {"columns": {name: {"sdtype": kind} for name, kind in kinds.items()}}
    line = {}
    for kind, report in (
        ("quality", QualityReport()),
        ("diagnostic", DiagnosticReport()),
    ):
        report.generate(real, copy, metadata, verbose=False)
        line[kind] = report.get_score()
        for name, value in report.get_properties().itertuples(index=False):
            line[name.lower().replace(" ", "_")] = value
    return line


def main(copies, out):
    known = set()
    if out.exists():
        known = {json.loads(line)["copy"] for line in out.read_text().splitlines()}
    for folder in sorted(p.parent for p in copies.glob("*/kinds.json")):
        kinds = json.loads((folder / "kinds.json").read_text())
        real = read(folder / "train.csv.gz", kinds)
        for path in sorted(folder.glob("*_*.csv.gz")):
            name = f"{folder.name}/{path.name}"
            if name in known:
                continue
            line = dict(copy=name, sdmetrics=version("sdmetrics"))
            line |= score(real, read(path, kinds), kinds)
            with out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
