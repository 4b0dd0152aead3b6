"""Bad inputs, kills at random moments, runs side by side, engines, threads and growth.

python benchmarks/reliability.py --out nbs/audits/reliability.jsonl
python benchmarks/reliability.py --out … --parts kills,together  # some of them
python benchmarks/reliability.py --out … --parts again  # inputs that went wrong
python benchmarks/reliability.py --out … --parts suite --log test.log  # of make test
python benchmarks/reliability.py --out … --parts floor --log test.log  # of test-floor

Lines are written when a part ends, with the day. A part that is run again replaces its
own lines; lines of `same` and `suite` are those of one Python.
"""

import argparse
import contextlib
import hashlib
import io
import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from reliability_engines import growth, try_engines
from reliability_inputs import Kind, all_kinds, prepare

from privpgd.app.cli import main as privpgd

COMMAND = [sys.executable, "-m", "privpgd"]


class Slow(BaseException):
    "A command took longer than its limit."


def call(words: list[str], limit: int = 60) -> tuple[int, str]:
    "Run a command in this process: its exit code (-1: too slow) and its error stream."
    errors = io.StringIO()

    def too_slow(*_: Any) -> None:
        raise Slow

    # of the processor, so that a busy machine makes no input slow
    signal.signal(signal.SIGPROF, too_slow)
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(errors),
        ):
            return privpgd(words), errors.getvalue()
    except SystemExit as end:
        return int(end.code or 0), errors.getvalue()
    except Slow:
        return -1, errors.getvalue()
    except Exception as error:
        return -2, f"Traceback {type(error).__name__}: {error}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def judge(kind: Kind, code: int, errors: str) -> str:
    "Whether a bad input was refused in one clear sentence before anything was spent."
    lines = errors.strip().splitlines()
    said = [line for line in lines if line.startswith("privpgd: ")]
    if code == 0:
        return "accepted" if kind.fine else "accepted, but wrong"
    if code != 2:
        return {-1: "too slow", -2: "traceback"}.get(code, f"exit {code}")
    one = len(said) == 1 and lines[-1] == said[0] and len(said[0]) <= 900
    return "refused" if one and "Traceback" not in errors else "not one sentence"


def clear(folder: Path, keep: set[str]) -> None:
    "Remove what a command has left."
    for name in set(os.listdir(folder)) - keep:
        place = folder / name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()


def try_inputs(folder: Path, share: int, shares: int) -> Iterator[dict]:
    "A line for each group of one share of the inputs, with those that went wrong."
    keep = set(os.listdir(folder))
    verdicts: dict[str, Counter] = {}
    wrong: dict[str, list[str]] = {}
    began = time.process_time()
    for kind in all_kinds(folder)[share::shares]:
        for name, content in kind.files.items():
            (folder / name).write_bytes(content)
        quiet = [] if kind.words[0].startswith("-") else ["--quiet"]
        verdict = judge(kind, *call([*kind.words, *quiet]))
        verdicts.setdefault(kind.group, Counter())[verdict] += 1
        if verdict not in ("refused", "accepted"):
            wrong.setdefault(kind.group, []).append(f"{kind.name}: {verdict}")
            print(verdict, "|", kind.group, kind.name, flush=True)
        clear(folder, keep)
    seconds = round(time.process_time() - began)
    for group, counts in verdicts.items():
        facts = dict(share=f"{share + 1}/{shares}", wrong=wrong.get(group, []))
        yield dict(what="inputs", group=group, seconds=seconds, **counts, **facts)


def leftovers(folder: Path) -> list[str]:
    "Temporary files in a folder."
    return [name for name in os.listdir(folder) if name.startswith(".privpgd-")]


def start(words: list[str]) -> int:
    "Run a command in a copy of this process, whose modules are loaded; its number."
    child = os.fork()
    if child:
        return child
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
    os._exit(privpgd(words))


def finish(child: int) -> int:
    "Wait for a process; its exit code."
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def kill_runs(folder: Path, times: int, seed: int = 0) -> list[dict]:
    "Kill a release at random moments; what is left, before and after the next run."
    import privpgd.app.report  # noqa: F401
    import privpgd.app.synthesizer  # noqa: F401

    place = folder / "kills"
    place.mkdir()
    outputs = "-o kills/x.csv --save kills/m.privpgd --report kills/r.html"
    size = "--particles 2000 --epochs 5"
    words = f"synth good.csv --schema good.json {outputs} {size}".split()
    assert finish(start(words)) == 0
    began = time.perf_counter()
    assert finish(start(words)) == 0
    whole = time.perf_counter() - began
    rng = random.Random(seed)
    kills = half = left = ended = 0
    while kills < times:  # a run that had ended before is no kill
        shutil.rmtree(place)
        place.mkdir()
        child = start(words)
        # two of three while files are written, in the last part of a run
        time.sleep(
            whole * rng.choice((rng.uniform(0, 1.1), *[rng.uniform(0.6, 1.1)] * 2))
        )
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        killed = finish(child) == -signal.SIGKILL
        kills, ended = kills + killed, ended + (not killed)
        left += bool(leftovers(place))
        half += sum(not is_whole(path) for path in place.iterdir())
    after = finish(start(words))
    facts = dict(kills=kills, half_files=half, runs_with_leftovers=left)
    facts |= dict(ended_before=ended, after_next_run=len(leftovers(place)), exit=after)
    return [dict(what="kills", **facts)]


def is_whole(path: Path) -> bool:
    "Whether an output is complete; temporary files do not count."
    from privpgd import PrivPGD

    if path.name.startswith(".privpgd-"):
        return True
    if path.suffix == ".csv":
        return path.read_text().endswith("\n") and path.read_text().count("\n") == 201
    if path.suffix == ".html":
        return path.read_text().rstrip().endswith("</html>")
    return len(PrivPGD.load(path).codes_) > 0


def run_together(folder: Path, n: int) -> list[dict]:
    "Start releases at the same time in one folder, with a cold cache of compiled code."
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "NUMBA_CACHE_DIR": cache}
        children = [
            subprocess.Popen(
                [
                    *COMMAND,
                    *["synth", "good.csv", "--schema", "good.json", "--seed", "1"],
                ]
                + ["--particles", "500", "-o", f"t{i}.csv"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=env,
            )
            for i in range(n)
        ]
        said = [child.communicate()[1] for child in children]
        codes = [child.returncode for child in children]
    tables = {(folder / f"t{i}.csv").read_bytes() for i in range(n)}
    facts = dict(runs=n, finished=codes.count(0), different_tables=len(tables))
    if any(codes):
        facts["errors"] = sorted({text[-300:] for text, bad in zip(said, codes) if bad})
    return [dict(what="together", **facts, leftovers=len(leftovers(folder)))]


def same_rows(folder: Path) -> list[dict]:
    "The same seed with more and more threads; a digest of the copy for each."
    python = ".".join(platform.python_version_tuple()[:2])
    lines = []
    for threads in (1, 2, 4):
        names = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")
        env = {**os.environ, **dict.fromkeys(names, str(threads))}
        words = "synth good.csv --schema good.json --seed 1 --particles 5000 --quiet"
        command = [*COMMAND, *words.split(), "-o", "same.csv"]
        subprocess.run(command, env=env, check=True, capture_output=True)
        digest = hashlib.sha256((folder / "same.csv").read_bytes()).hexdigest()[:12]
        facts = dict(python=python, threads=threads, digest=digest)
        lines.append(dict(what="same", share=python, **facts))
    return lines


def prepare_apart(folder: Path) -> None:
    "Write what all commands start from, in a process of its own."
    child = os.fork()
    if not child:
        with contextlib.redirect_stdout(io.StringIO()):
            prepare(folder)
        os._exit(0)
    assert finish(child) == 0


def try_again(folder: Path, lines: list[dict]) -> list[dict]:
    "Lines of inputs, with those that had gone wrong tried once more."
    keep = set(os.listdir(folder))
    kinds = {(kind.group, kind.name): kind for kind in all_kinds(folder)}
    for line in lines:
        for fault in list(line["wrong"]):
            name, _, old = fault.rpartition(": ")
            kind = kinds[line["group"], name]
            for file, content in kind.files.items():
                (folder / file).write_bytes(content)
            verdict = judge(kind, *call([*kind.words, "--quiet"]))
            clear(folder, keep)
            line[old] -= 1
            line[verdict] = line.get(verdict, 0) + 1
            line["wrong"].remove(fault)
            if verdict in ("refused", "accepted"):
                line["mended"] = [*line.get("mended", []), fault]
            else:
                line["wrong"].append(f"{name}: {verdict}")
    return lines


def read_suite(log: Path, what: str) -> list[dict]:
    "What the log of a test says: notebooks that were run, and those that failed."
    text = log.read_text(encoding="utf-8", errors="replace")
    ran = set(re.findall(r"^- Completed (\S+)$", text, re.M))
    failed = re.findall(r"^\w+ in (\S+\.ipynb):$", text, re.M)
    names = sorted({Path(path).name for path in failed})
    python = re.search(r"^Python (\d+\.\d+)", text, re.M)
    version = python[1] if python else ""
    facts = dict(python=version, notebooks=len(ran), failed=names)
    return [dict(what=what, share=version, **facts)]


PARTS = ("together", "same", "kills", "inputs", "engines", "growth")


def run_part(part: str, folder: Path, args: argparse.Namespace) -> Iterable[dict]:
    "The lines of one part."
    share, _, shares = args.share.partition("/")
    if part == "together":
        return run_together(folder, args.together)
    if part == "same":
        return same_rows(folder)
    if part == "kills":
        return kill_runs(folder, args.kills, seed=int(share))
    if part == "again":
        held = map(json.loads, Path(args.out).read_text().splitlines())
        return try_again(folder, [x for x in held if x["what"] == "inputs"])
    if part == "engines":
        return try_engines(folder, args.rows)
    if part == "growth":
        return growth()
    if part in ("suite", "floor"):
        return read_suite(args.log, part)
    return try_inputs(folder, int(share) - 1, int(shares))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, help="file for the lines")
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--together", type=int, default=10)
    parser.add_argument("--rows", type=int, default=500_000, help="for the engines")
    parser.add_argument("--log", type=Path, help="for the parts suite and floor")
    parser.add_argument("--share", default="1/1", help="of the inputs, such as 2/4")
    args = parser.parse_args()
    out = args.out = Path(args.out).resolve()
    args.log = args.log and args.log.resolve()
    warnings.simplefilter("ignore")
    for part in args.parts.split(","):
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)
            prepare_apart(Path(name))
            lines = list(run_part(part, Path(name), args))
            os.chdir("/")
        for line in lines:
            line.setdefault("share", args.share if part == "kills" else "")
            line.setdefault("day", time.strftime("%Y-%m-%d"))
        new = {(line["what"], line["share"]) for line in lines}
        held = out.read_text().splitlines() if out.exists() else []
        old = [x for x in map(json.loads, held) if (x["what"], x["share"]) not in new]
        text = "".join(json.dumps(line) + "\n" for line in [*old, *lines])
        out.write_text(text)


if __name__ == "__main__":
    main()
