"""Fuzz the readers of schemas, models and expressions; one JSON line for each reader.

python benchmarks/reliability_fuzz.py --minutes 10 --out nbs/audits/reliability.jsonl

A reader may return, or refuse in one sentence (`InputError`). Anything else is a fault.
Hypothesis makes texts and mutations; atheris, where it is installed, is guided by the
branches that an input reaches.
"""

import argparse
import importlib.util
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
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


def small_model() -> bytes:
    "A saved model, as bytes."
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.privpgd"
        schema = Schema.from_json(GOOD_TEXT)
        model = PrivPGD(1, 1e-6, n_particles=50, epochs=0, order=2, verbose=False)
        model.fit(good_table(), schema).save(path)
        return path.read_bytes()


def read_model(content: bytes) -> Any:
    "A model from bytes, and rows of it."
    with tempfile.NamedTemporaryFile(suffix=".privpgd") as file:
        file.write(content)
        file.flush()
        return PrivPGD.load(file.name).sample(5, seed=0)


def readers() -> dict[str, tuple[Callable, Any]]:
    "Name -> what is called, and what it is called with."
    texts = st.lists(st.sampled_from(WORDS.split()) | st.text(max_size=4), max_size=30)
    raw = GOOD_TEXT.encode()
    model = small_model()
    return {
        "schemas, facts replaced": (Schema.from_json, strange_schema()),
        "schemas, bytes mutated": (
            lambda content: Schema.from_json(content.decode("utf-8", "replace")),
            mutated(raw),
        ),
        "expressions": (parse, texts.map(" ".join)),
        "models, bytes mutated": (read_model, mutated(model)),
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


def fuzz(name: str, read: Callable, inputs: Any, seconds: float) -> dict:
    "Fuzz one reader for some seconds of the processor."
    faults: dict[str, str] = {}
    count, began = 0, time.process_time()
    number = 0
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
    spent = round(time.process_time() - began, 1)
    facts = dict(inputs=count, faults=len(faults), examples=list(faults.items())[:5])
    day = time.strftime("%Y-%m-%d")
    return dict(what="fuzz", share=name, reader=name, seconds=spent, day=day, **facts)


def fuzz_all(minutes: float) -> Iterator[dict]:
    "A line for each reader; the time is shared."
    warnings.simplefilter("ignore")
    found = readers()
    seconds = 60 * minutes / len(found)
    return (fuzz(name, *how, seconds) for name, how in found.items())


def keep(line: dict, out: Path) -> None:
    "Write a line to a file of lines, in the place of that of the same reader."
    held = out.read_text().splitlines() if out.exists() else []
    same = {"what": "fuzz", "share": line["share"]}.items()
    kept = [x for x in held if not same <= json.loads(x).items()]
    out.write_text("".join(f"{x}\n" for x in [*kept, json.dumps(line)]))


def has_atheris() -> bool:
    "Whether the fuzzer that is guided by branches is installed."
    return importlib.util.find_spec("atheris") is not None


def fuzz_by_branches(runs: int) -> None:
    "Let atheris look for inputs that reach new branches; it ends the process."
    import atheris

    model, text = small_model(), GOOD_TEXT.encode()

    def one(data: bytes) -> None:
        for read in (Schema.from_json, parse):
            if fault := fault_of(read, data.decode("utf-8", "replace")):
                raise RuntimeError(fault)

    with tempfile.TemporaryDirectory() as corpus:
        (Path(corpus) / "schema").write_bytes(text)
        (Path(corpus) / "model").write_bytes(model)
        atheris.instrument_all()
        atheris.Setup([sys.argv[0], f"-runs={runs}", corpus], one)
        atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="file for the lines")
    parser.add_argument("--minutes", type=float, default=10, help="of the processor")
    parser.add_argument("--branches", type=int, help="runs of atheris instead")
    args = parser.parse_args()
    if args.branches:
        if not has_atheris():
            sys.exit("atheris is not installed: pip install atheris")
        fuzz_by_branches(args.branches)
    for line in fuzz_all(args.minutes):
        print(json.dumps(line), flush=True)
        if args.out:
            keep(line, args.out)


if __name__ == "__main__":
    main()
