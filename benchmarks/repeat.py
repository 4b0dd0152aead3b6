"""Repeat one committed line of a page of experiments by the page's command, and compare.

    python -m benchmarks.repeat 00 01 08 09 10 11
    python -m benchmarks.repeat 08 --record

The folder of the environment variable PRIVPGD_DATA must hold the tables. Each command
writes to a folder of its own. The exit code is 1 if a number is farther from the
committed one than the page promises. --record keeps what was found, with the commit, in
results/repeated.json, where the pages read it.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
from dataclasses import dataclass

RESULTS = pathlib.Path("nbs/experiments/results")
PAPER = ("downstream", "covariance", "counting", "thresholding", "sw1", "l1")
NIST = ("k_marginal", "propensity", "pearson", "kendall", "unique_rows", "matched")


@dataclass(frozen=True)
class Line:
    "One line of a page: how it is made, where it is, and what it promises."

    command: str  # as a reader types it, without --out
    file: str  # in the folder of results
    key: dict  # fields that find the line
    values: tuple = PAPER
    out: str = ""  # what --out gets, in the folder of the run
    promise: float = 1e-9  # largest relative difference


LINES = {
    "00": Line(
        "python -m benchmarks.paper_preset settings --settings particles",
        "paper/robustness.jsonl",
        dict(name="particles", value=1000, seed=0),
        values=PAPER[1:],
        out="paper",
    ),
    "01": Line(
        "privpgd bench --datasets diabetes130us --methods privpgd --epsilons 1.0 "
        "--seeds 1",
        "diabetes130us.jsonl",
        dict(method="privpgd", epsilon=1.0, seed=0),
        promise=0.05,  # the committed line used its seed in another way
    ),
    "08": Line(
        "privpgd bench --suite nist --datasets ma2019-industry --epsilons 5 --seeds 1",
        "nist/nist.jsonl",
        dict(dataset="ma2019-industry", epsilon=5.0, seed=0),
        values=NIST,
        out="nist",
    ),
    "09": Line(
        "python -m benchmarks.peers.run --environments peers --tables diabetes130us "
        "--methods privpgd --epsilons 1 --seeds 0",
        "peers/peers.jsonl",
        dict(dataset="diabetes130us", method="privpgd", epsilon=1.0, seed=0),
        values=(*PAPER, "tv_3way", "prediction"),
        out="peers/peers.jsonl",
    ),
    "10": Line(
        "python -m benchmarks.other_rulers --copies copies --tables stress "
        "--methods privpgd --epsilon 2.5",
        "rulers/rulers.jsonl",
        dict(table="stress", method="privpgd", epsilon=2.5, seed=0),
        values=("xor2", "xor3", "sum"),
        out="rulers",
    ),
    "11": Line(
        "python -m benchmarks.untouched --datasets fair --methods privpgd "
        "--epsilons 1.0",
        "untouched/fair.jsonl",
        dict(method="privpgd", epsilon=1.0, seed=0),
        out="untouched",
    ),
}


def find(folder, line):
    "The numbers of the line in a folder of results; the last one counts."
    text = (folder / line.file).read_text()
    records = map(json.loads, text.splitlines())
    found = [r for r in records if all(r.get(k) == v for k, v in line.key.items())]
    return {name: found[-1][name] for name in line.values}


def run(line):
    "The same numbers, made anew."
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / line.file).parent.mkdir(parents=True, exist_ok=True)
        words = [*line.command.split(), "--out", str(folder / line.out)]
        if words[0] == "python":
            words[0] = sys.executable
        else:  # the program that was installed beside this Python
            words[0] = str(pathlib.Path(sys.executable).parent / words[0])
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
        return find(folder, line)


def difference(new, old):
    "Relative, and absolute where the old number is zero."
    return abs(new / old - 1) if old else abs(new)


def main():
    "Repeat, print, and say by the exit code whether all promises hold."
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="+", choices=list(LINES))
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    all_hold = True
    for page in args.pages:
        line = LINES[page]
        old, new = find(RESULTS, line), run(line)
        worst = max(difference(new[k], old[k]) for k in old)
        kept = worst <= line.promise
        all_hold &= kept
        print(
            f"{page}: {len(old)} numbers, largest relative difference {worst:.1e}, "
            f"promised {line.promise:.0e}: {'holds' if kept else 'BROKEN'}",
            flush=True,
        )
        if args.record:
            record(page, line, new)
    sys.exit(not all_hold)


def record(page, line, values):
    "Keep the numbers beside the pages."
    path = RESULTS / "repeated.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    words = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(words, capture_output=True, text=True, check=True)
    known[page] = dict(
        command=line.command, commit=commit.stdout.strip(), values=values
    )
    path.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n")


if __name__ == "__main__":
    main()
