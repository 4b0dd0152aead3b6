"""The peers as published, our default and the paper's preset, on the same codes.

    python -m benchmarks.peers.run --environments FOLDER --epsilons 1 --seeds 0

FOLDER is what environments.py has made; PRIVPGD_DATA holds the tables. Each method runs
in a process of its own with one thread, and is stopped after --limit seconds of
processor time, start-up included. Each run appends a line, whatever came of it; lines
that are in the file are not run again.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.peers.methods import METHODS
from benchmarks.third_order import Table
from privpgd.app.jobs import versions
from privpgd.evaluation.results import append_line, job_key, read_lines

OUT = Path("nbs/experiments/results/peers/peers.jsonl")
ROWS = 100_000  # of every copy
DELTA = 1e-5
ONE_THREAD = {f"{p}_NUM_THREADS": "1" for p in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
ONE_THREAD |= dict(
    POLARS_MAX_THREADS="1",
    XLA_FLAGS="--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
)


def environment_of(method, folder):
    "The Python of a method's environment, and why there is none."
    peer = METHODS[method][0]
    if not peer:
        return sys.executable, ""
    notes = folder / "environments.json"
    known = json.loads(notes.read_text()) if notes.exists() else {}
    found = known.get(peer, dict(installed=False, reason="environments.py was not run"))
    return folder / peer / "bin" / "python", "" if found["installed"] else found[
        "reason"
    ]


def watch(command, folder, limit):
    "Run a command; its exit code, processor seconds, and the most memory it held."

    def limited():
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))

    own = {**os.environ, **ONE_THREAD}
    if command[0] != sys.executable:
        own.pop("PYTHONPATH", None)
    with (folder / "errors.txt").open("w") as errors:
        child = subprocess.Popen(
            command, stdout=errors, stderr=errors, env=own, preexec_fn=limited
        )
        _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    seconds = used.ru_utime + used.ru_stime
    return child.returncode, round(seconds, 1), round(used.ru_maxrss / 1024)


def run(table, job, python, limit):
    "One line of results."
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.save(folder / "codes.npy", table.train)
        order = job | dict(shape=list(map(int, table.schema.shape)), rows=ROWS)
        (folder / "job.json").write_text(json.dumps(order))
        command = [str(python), str(Path(__file__).parent / "methods.py"), name]
        code, processor, peak = watch(command, folder, limit)
        line = job | dict(neighbors="add-remove", threads=1, limit=limit)
        line |= dict(processor_seconds=processor, peak_mb=peak)
        if code == 0:
            line |= json.loads((folder / "facts.json").read_text())
            found = {p.stem: np.load(p) for p in folder.glob("*.npy")}
            line |= dict(status="ok") | table.errors(found["synth"])
            if "redrawn" in found:  # the same model; rows by `draw_rows`
                line["redrawn"] = table.errors(found["redrawn"])
            return line
        if code in (-signal.SIGXCPU, -signal.SIGKILL) and processor >= limit:
            return line | dict(status="time limit")
        words = (folder / "errors.txt").read_text(errors="replace").split("\n")
        last = next((w.strip() for w in reversed(words) if " " in w.strip()), "")
        return line | dict(status="failed", error=f"exit code {code}: {last}"[:300])


def main():
    "Run what is missing: budgets and seeds outermost, then tables, then methods."
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--tables", default="randhie,diabetes130us,adult")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--epsilons", default="1,2.5,0.2")
    parser.add_argument("--seeds", default="0")
    parser.add_argument("--limit", type=int, default=300)
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)

    def done():
        lines = read_lines(args.out) if args.out.exists() else []
        kept = [line for line in lines if line["status"] != "not installed"]
        return set(map(job_key, kept))

    tables = {}
    for seed in map(int, args.seeds.split(",")):
        for epsilon in map(float, args.epsilons.split(",")):
            for name in args.tables.split(","):
                for method in args.methods.split(","):
                    job = dict(dataset=name, method=method, epsilon=epsilon)
                    job |= dict(delta=DELTA, seed=seed)
                    if job_key(job) in done():
                        continue
                    python, reason = environment_of(method, args.environments)
                    if reason:
                        line = job | dict(status="not installed", error=reason)
                    else:
                        table = tables.setdefault(name, None) or Table(name)
                        tables[name] = table
                        line = run(table, job, python, args.limit)
                    end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                    line |= dict(source=versions()["source"], finished=end)
                    append_line(args.out, line)
                    print(line, flush=True)


if __name__ == "__main__":
    main()
