"""Score copies of NIST's excerpts with sdnist itself.

Run it with the Python of an environment that has sdnist and nothing of ours:

    python score_nist.py DATA COPIES OUT

DATA is the folder of the excerpts and their dictionary, COPIES the folder that
`privpgd bench --suite nist` wrote, OUT a file that gets one line of JSON a copy.
sdnist's own functions clean, cut and score; only its file layout is passed by.
"""

import json
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import sdnist.report  # noqa: F401  first, or its modules import each other in a circle
from sdnist.metrics.inconsistency import Inconsistencies
from sdnist.metrics.kmarginal import KMarginal
from sdnist.metrics.pearson_correlation import PearsonCorrelationDifference
from sdnist.metrics.propensity import PropensityMSE
from sdnist.metrics.unique_exact_matches import unique_exact_matches
from sdnist.report.dataset.binning import (
    add_bin_for_NA,
    percentile_rank_synthetic,
    percentile_rank_target,
)
from sdnist.report.dataset.transform import transform
from sdnist.report.dataset.validate import validate

warnings.simplefilter("ignore")
NUMBERS = ["AGEP", "POVPIP"]
UNCORRELATED = ["INDP", "POVPIP"]


def schema_of(facts, target):
    "What sdnist reads from the file beside each excerpt, from the dictionary."
    out = {}
    for name in target:
        values = facts[name].get("values", {})
        limits = "min" in values and name not in ("NOC", "NPF")
        out[name] = (
            {"min": 0} if limits else {"values": sorted(target[name].unique(), key=str)}
        )
        if "N" in values or name == "INDP":
            out[name] |= {"has_null": True, "null_value": "N"}
    return out


def score(facts, target, synthetic, folder):
    "sdnist's scores of one copy."
    names = sorted(target)
    target, _ = validate(target[names], facts, names)
    synthetic, log = validate(synthetic[names], facts, names)
    if list(synthetic) != list(target):
        raise ValueError(f"values that sdnist does not know: {log}")
    schema = schema_of(facts, target)
    numbers = [transform(t, schema) for t in (target, synthetic)]
    real = percentile_rank_target(target, NUMBERS)
    real = add_bin_for_NA(real, target, NUMBERS)
    copy = percentile_rank_synthetic(synthetic, target, real, NUMBERS)
    copy = add_bin_for_NA(copy, synthetic, NUMBERS)
    others = [name for name in names if name not in NUMBERS]
    real[others], copy[others] = numbers[0][others], numbers[1][others]
    area = ["PUMA"] if "PUMA" in names else []
    pearson = PearsonCorrelationDifference(
        *numbers, [name for name in names if name not in UNCORRELATED]
    )
    pearson.compute()
    above = np.triu_indices(len(pearson.pp_corr_diff), 1)
    rules = Inconsistencies(synthetic, folder)
    rules.compute()
    groups = rules.report_data["summary"]
    broken = {
        g["Inconsistency Group"]: g["Number of Records Inconsistent"] for g in groups
    }
    matched, _, unique, _ = unique_exact_matches(target, synthetic)
    return dict(
        k_marginal=float(KMarginal(real, copy, area).compute_score()),
        propensity=float(PropensityMSE(*numbers, folder).compute_score()),
        pearson=float(np.nanmean(pearson.pp_corr_diff.abs().to_numpy()[above])),
        inconsistent_rows=broken,
        unique_rows=int(unique),
        matched=int(matched),
    )


def main(data, copies, out):
    facts = json.loads((data / "data_dictionary.json").read_text())
    known = set()
    if out.exists():
        known = {json.loads(line)["copy"] for line in out.read_text().splitlines()}
    for path in sorted(copies.glob("*.csv.gz")):
        if path.name in known:
            continue
        synthetic = pd.read_csv(path)
        target = pd.read_csv(data / f"{path.name.split('_')[0]}.csv.gz")
        folder = Path(tempfile.mkdtemp())
        line = dict(copy=path.name, sdnist=version("sdnist"))
        line |= score(facts, target[list(synthetic)], synthetic, folder)
        with out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
