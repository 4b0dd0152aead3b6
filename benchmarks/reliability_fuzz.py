"""Fuzz the readers of schemas, models and expressions; one JSON line for each reader.

python benchmarks/reliability_fuzz.py --minutes 10 --out nbs/audits/reliability.jsonl
python benchmarks/reliability_fuzz.py --minutes 2 --share 3/5 --out …  # a third part

A reader may return, or refuse in one sentence (`InputError`). Anything else is a fault.
Hypothesis makes texts and mutations; atheris, where it is installed, is guided by the
branches that an input reaches, and keeps what has reached a new one.
"""

import argparse
import gc
import hashlib
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))
from reliability_inputs import GOOD_SCHEMA, good_table

from privpgd import PrivPGD, Schema
from privpgd.core.checks import InputError
from privpgd.core.expressions import parse

GOOD_TEXT = json.dumps(GOOD_SCHEMA)
WORDS = (
    "age pay and or not in is missing true false date ( ) , + - * / % == != < <= > >="
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@st.composite
def mutated(draw: Any, content: bytes) -> bytes:
    "Bytes with a few of them replaced, cut out or repeated."
    raw = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, max(len(raw) - 1, 0)))
        end = min(len(raw), start + draw(st.integers(0, 40)))
        raw[start:end] = draw(st.binary(max_size=20)) * draw(st.integers(0, 3))
    return bytes(raw)


@st.composite
def strange_schema(draw: Any) -> str:
    "A schema with some facts replaced by any plain values."
    facts = json.loads(GOOD_TEXT)
    for _ in range(draw(st.integers(1, 4))):
        column = draw(st.sampled_from(facts["columns"]))
        key = draw(st.sampled_from([*column, "missing", "source", "fine", "format"]))
        column[key] = draw(PLAIN)
    return json.dumps(facts)


@st.composite
def strange_facts(draw: Any, text: bytes) -> bytes:
    "A document with a fact replaced by any plain value, at any depth."
    facts = json.loads(text)
    for _ in range(draw(st.integers(1, 3))):
        place = facts
        while True:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            key = draw(st.sampled_from(keys))
            if not (isinstance(place[key], (dict, list)) and place[key]):
                break
            if draw(st.integers(0, 9)) == 0:
                break
            place = place[key]
        place[key] = draw(PLAIN)
    return json.dumps(facts).encode()


def small_model() -> bytes:
    "A saved model, as bytes."
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.privpgd"
        schema = Schema.from_json(GOOD_TEXT)
        model = PrivPGD(1, 1e-6, n_particles=50, epochs=0, order=2, verbose=False)
        model.fit(good_table(), schema).save(path)
        return path.read_bytes()


def signed(model: bytes) -> tuple[bytes, Callable[[bytes], bytes]]:
    "The facts of a model, and a function that makes a model of other facts."
    with zipfile.ZipFile(io.BytesIO(model)) as archive:
        facts, arrays = map(archive.read, ("model.json", "arrays.npz"))

    def forge(text: bytes) -> bytes:
        digest = hashlib.sha256(text + arrays).hexdigest().encode()
        members = {"model.json": text, "arrays.npz": arrays, "digest": digest}
        with zipfile.ZipFile(out := io.BytesIO(), "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return out.getvalue()

    return facts, forge


def read_schema(content: bytes) -> Any:
    "A schema from bytes."
    return Schema.from_json(content.decode("utf-8", "replace"))


def read_model(content: bytes) -> Any:
    "A model from bytes, and rows of it."
    with tempfile.NamedTemporaryFile(suffix=".privpgd") as file:
        file.write(content)
        file.flush()
        return PrivPGD.load(file.name).sample(5, seed=0)


def readers() -> dict[str, tuple[Callable, Any]]:
    "Name -> what is called, and what it is called with."
    texts = st.lists(st.sampled_from(WORDS.split()) | st.text(max_size=4), max_size=30)
    model = small_model()
    facts, forge = signed(model)
    return {
        "schemas, facts replaced": (Schema.from_json, strange_schema()),
        "schemas, bytes mutated": (read_schema, mutated(GOOD_TEXT.encode())),
        "expressions": (parse, texts.map(" ".join)),
        "models, bytes mutated": (read_model, mutated(model)),
        "models, facts replaced": (read_model, strange_facts(facts).map(forge)),
    }


def guided_readers() -> dict[str, tuple[Callable, bytes]]:
    "Name -> what is called with bytes, and bytes to begin with."
    facts, forge = signed(small_model())
    rule = (
        b"age >= 18 and (pay < 100 or town in ('Ulm', 'Bern')) and not grade is missing"
    )
    return {
        "schemas, by branches": (read_schema, GOOD_TEXT.encode()),
        "expressions, by branches": (
            lambda content: parse(content.decode("utf-8", "replace")),
            rule,
        ),
        "models, by branches": (lambda content: read_model(forge(content)), facts),
    }


def fault_of(read: Callable, content: Any) -> str:
    "How a reader failed other than by one sentence; empty if it did not."
    try:
        read(content)
    except InputError as error:
        words = str(error)
        return "" if "\n" not in words else f"several lines: {words[:80]}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:80]}"
    return ""


def fuzz(
    name: str,
    read: Callable,
    inputs: Any,
    seconds: float,
    number: int,  # of the first seed
) -> dict:
    "Fuzz one reader for some seconds of the processor."
    faults: dict[str, str] = {}
    count, began = 0, time.process_time()
    while time.process_time() - began < seconds:
        number += 1

        @seed(number)
        @settings(
            max_examples=100,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(inputs)
        def check(content: Any) -> None:
            nonlocal count
            count += 1
            if fault := fault_of(read, content):
                faults.setdefault(fault, repr(content)[:200])

        check()
    return fuzz_line(name, time.process_time() - began, count, faults)


def fuzz_line(name: str, seconds: float, count: int, faults: dict[str, str]) -> dict:
    "What came of one reader."
    facts = dict(inputs=count, faults=len(faults), examples=list(faults.items())[:5])
    told = dict(reader=name, seconds=round(seconds, 1), day=time.strftime("%Y-%m-%d"))
    return dict(what="fuzz", **told, **facts)


GUIDED = ("schemas, by branches", "expressions, by branches", "models, by branches")


def fuzz_all(minutes: float, share: int) -> Iterator[dict]:
    "A line for each reader; the time is divided, and shares differ in their seeds."
    warnings.simplefilter("ignore")
    found = readers()
    guided = GUIDED if has_atheris() else ()
    seconds = 60 * minutes / (len(found) + len(guided))
    yield from (fuzz(name, *how, seconds, 10**6 * share) for name, how in found.items())
    for name in guided:  # atheris ends its process
        command = [sys.executable, "-W", "ignore", __file__, "--guided", name]
        command += ["--minutes", str(seconds / 60), "--share", str(share)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        yield json.loads(next(x for x in done.stdout.splitlines() if x[:1] == "{"))


def keep(line: dict, out: Path) -> None:
    "Write a line to a file of lines, in the place of that of the same reader and share."
    held = out.read_text().splitlines() if out.exists() else []
    same = {key: line[key] for key in ("what", "reader", "share")}.items()
    kept = [x for x in held if not same <= json.loads(x).items()]
    out.write_text("".join(f"{x}\n" for x in [*kept, json.dumps(line)]))


def has_atheris() -> bool:
    "Whether the fuzzer that is guided by branches is installed."
    return importlib.util.find_spec("atheris") is not None


def fuzz_by_branches(name: str, seconds: float, share: int) -> None:
    "Let atheris look for inputs that reach new branches; it ends the process."
    import atheris

    read, first = guided_readers()[name]
    read(first)  # what is good is read
    faults: dict[str, str] = {}
    count = 0
    # isinstance would ask dead references
    functions = [x for x in gc.get_objects() if type(x) is FunctionType]
    for function in functions:
        if str(function.__module__).startswith("privpgd."):
            atheris.instrument_func(function)
    began = time.process_time()

    def one(data: bytes) -> None:
        nonlocal count
        count += 1
        if fault := fault_of(read, data):
            faults.setdefault(fault, repr(data)[:200])
        spent = time.process_time() - began
        if spent > seconds:
            print(json.dumps(fuzz_line(name, spent, count, faults)), flush=True)
            os._exit(0)

    with tempfile.TemporaryDirectory() as corpus:
        (Path(corpus) / "first").write_bytes(first)
        options = [
            "-timeout=60",
            f"-seed={share}",
            f"-max_len={2 * len(first)}",
            "-verbosity=0",
        ]
        atheris.Setup([sys.argv[0], *options, corpus], one)
        atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="file for the lines")
    parser.add_argument("--minutes", type=float, default=10, help="of the processor")
    parser.add_argument(
        "--guided", help="one reader with atheris, such as " + GUIDED[0]
    )
    parser.add_argument("--share", default="1/1", help="other shares, other inputs")
    args = parser.parse_args()
    share = int(args.share.partition("/")[0])
    if args.guided:
        fuzz_by_branches(args.guided, 60 * args.minutes, share)
    for line in fuzz_all(args.minutes, share):
        line["share"] = args.share
        print(json.dumps(line), flush=True)
        if args.out:
            keep(line, args.out)


if __name__ == "__main__":
    main()
