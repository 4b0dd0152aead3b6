"""What `make test` runs: are the notebooks clean, does the module equal them, is it in
order (imports, sizes, format, types), does every test pass?"""

import argparse
import ast
import filecmp
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

root = Path(__file__).resolve().parent.parent
bin = Path(sys.executable).parent


def run(*command, cwd=root, **kwargs):
    return subprocess.run(
        [str(bin / command[0]), *command[1:]], cwd=cwd, text=True, **kwargs
    )


def notebooks(of=root):
    return sorted(
        p
        for p in (of / "nbs").rglob("*.ipynb")
        if not any(part.startswith((".", "_")) for part in p.relative_to(of).parts)
    )


def by_hand(path):
    """Is this notebook run by hand? Only experiments may be, and they say so in their
    front matter."""
    if path.parent != root / "nbs/experiments":
        return False
    first = json.loads(path.read_text(encoding="utf-8"))["cells"][0]
    return first["cell_type"] == "raw" and "skip_exec: true" in "".join(first["source"])


def drift():
    "Export and clean a copy of the project, and list every file that changes."
    with tempfile.TemporaryDirectory() as tmp:
        copy = Path(tmp) / "project"
        shutil.copytree(
            root,
            copy,
            ignore=shutil.ignore_patterns(
                ".venv",
                ".git",
                "_docs",
                "_proc",
                "demo",
                "__pycache__",
                ".mypy_cache",
                ".ruff_cache",
            ),
            symlinks=True,
        )
        for module in (copy / "privpgd").rglob("*.py"):
            if module.name not in ("__init__.py", "__main__.py"):
                module.unlink()
        done = run("python", ".ci/export.py", "--clean", cwd=copy, capture_output=True)
        if done.returncode:
            sys.exit(f"the export failed:\n{done.stdout}{done.stderr}")
        files = [*root.rglob("privpgd/*.py"), *copy.rglob("privpgd/*.py"), *notebooks()]
        names = {str(f.relative_to(copy if copy in f.parents else root)) for f in files}
        return sorted(
            n
            for n in names
            if not (
                (root / n).exists()
                and (copy / n).exists()
                and filecmp.cmp(root / n, copy / n, shallow=False)
            )
        )


def untidy(limit=200_000):
    """Stored outputs that are too large to read, or that name a folder of the machine
    they were made on."""
    found = []
    for path in notebooks():
        for number, cell in enumerate(
            json.loads(path.read_text(encoding="utf-8"))["cells"]
        ):
            text = json.dumps(cell.get("outputs", []))
            if len(text) > limit:
                found.append(
                    f"{path.relative_to(root)}, cell {number}: {len(text) // 1000} kB"
                )
            if named := re.search(
                r"(?<![\w.])/(?:home|root|Users|work|tmp)/[\w./-]+", text
            ):
                found.append(
                    f"{path.relative_to(root)}, cell {number}: {named.group()}"
                )
    return found


def wide(limit=88):
    "Lines of code that do not fit the page; options of a cell may be longer."
    found = []
    for path in notebooks():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for number, cell in enumerate(cells):
            if cell["cell_type"] != "code":
                continue
            lines = "".join(cell["source"]).split("\n")
            long = [x for x in lines if len(x) > limit and not x.startswith("#|")]
            found += [f"{path.relative_to(root)}, cell {number}: {x}" for x in long]
    modules = [p for p in root.glob("privpgd/*/*.py")]
    for path in modules:
        lines = path.read_text(encoding="utf-8").split("\n")
        long = [x for x in lines if len(x) > limit and not x.startswith("# %%")]
        found += [f"{path.relative_to(root)}: {x}" for x in long]
    return found


# a folder imports only from itself and from folders to its left
FOLDERS = [
    "core",
    "table",
    "private",
    "transport",
    "joint",
    "constrain",
    "methods",
    "evaluation",
    "app",
]


def imported_modules(path):
    "The modules of the package that a module imports, also inside functions."
    own = path.relative_to(root).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = own[: len(own) - node.level] if node.level else ()
            names = [".".join((*base, *filter(None, [node.module])))]
        else:
            continue
        yield from (name for name in names if name.split(".")[0] == "privpgd")


def upward_imports():
    """Imports from a folder to the right of one's own; the package itself counts as
    the last one."""
    found = []
    for path in sorted(root.glob("privpgd/*/*.py")):
        own = FOLDERS.index(path.parent.name)
        for name in imported_modules(path):
            folder = name.split(".")[1] if "." in name else FOLDERS[-1]
            if FOLDERS.index(folder) > own:
                found.append(f"{path.relative_to(root)}: {name}")
    return found


# what users type has its parameters written out
LONG_SIGNATURES = {
    "privpgd/app/pipeline.py: synthesize",
    "privpgd/app/synthesizer.py: __init__",
    "privpgd/transport/particles.py: descend",
}


def long_signatures(path, limit):
    "Functions of a module with more parameters than the limit."
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef):
            continue
        listed = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        n = sum(a.arg not in ("self", "cls") for a in listed)
        place = f"{path.relative_to(root)}: {node.name}"
        if n > limit and place not in LONG_SIGNATURES:
            yield f"{place} has {n} parameters"


def oversized(lines=620, cells=65, parameters=8):
    "Modules, notebooks and signatures that are too long for a reader."
    found = []
    for path in sorted(root.glob("privpgd/*/*.py")):
        n = len(path.read_text(encoding="utf-8").splitlines())
        if n > lines:
            found.append(f"{path.relative_to(root)}: {n} lines")
        found += long_signatures(path, parameters)
    for path in notebooks():
        all_cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        n = sum(cell.get("id") not in ("exercise", "solution") for cell in all_cells)
        if n > cells:
            found.append(f"{path.relative_to(root)}: {n} cells")
    return found


def lint():
    "Format, lint and types, with the settings in pyproject.toml."
    code = ("privpgd", "nbs", "benchmarks", ".ci", "setup.py")
    for command in (
        ("ruff", "format", "--check", "--quiet", *code),
        ("ruff", "check", "--output-format", "concise", *code),
        ("mypy", "privpgd"),
    ):
        done = run(*command, capture_output=True)
        if done.returncode:
            sys.exit(f"{' '.join(command)} complains:\n{done.stdout}{done.stderr}")
        print(f"{' '.join(command)}: no complaint")


def anchors(text):
    """What a link may point at on a page: its headings, as pandoc names them, and the
    ids that are written out."""
    heads = (
        re.sub(r"[^\w\s.-]", "", re.sub(r"\]\([^)]*\)", "", head)).strip().lower()
        for head in re.findall(r"^#{1,6} +(.+?)(?: *\{[^}]*\})?$", text, re.M)
    )
    return {
        re.sub(r"\s+", "-", re.sub(r"^[\W\d_]+", "", head)) for head in heads
    } | set(re.findall(r"(?:\{#|\bid=\")([\w.-]+)", text))


def dead_links(site="https://privpgd.github.io/privpgd/"):
    """Links on the pages of the site, as nbdev leaves them in _proc, to a page, a file
    or a place on a page that is not there."""
    texts, pages, places, dead = {}, {}, {}, []
    for path in (root / "_proc").rglob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        shown = [
            *("".join(c["source"]) for c in cells if c["cell_type"] != "code"),
            *(
                "".join(o.get("data", {}).get("text/markdown", ""))
                for c in cells
                for o in c.get("outputs", [])
            ),
        ]
        texts[path] = re.sub(r"^```.*?^```", "", "\n\n".join(shown), flags=re.M | re.S)
        named = re.search(r"^output-file: (.+)$", shown[0], re.M)
        pages[
            (path.parent / named[1] if named else path.with_suffix(".html"))
            .relative_to(root / "_proc")
            .as_posix()
        ] = path
        places[path] = anchors(texts[path]) | {
            label
            for c in cells
            for label in re.findall(
                r"^#\| label: ([\w.-]+)", "".join(c["source"]), re.M
            )
        }
    for path, text in texts.items():
        for link in re.findall(r"\]\(((?:https?://|[\w./-]+\.\w|#)[^()\s]*)\)", text):
            page, _, place = link.partition("#")
            if "://" in page and not page.startswith(site):
                continue
            folder = path.parent.relative_to(root / "_proc")
            if "://" in page:
                target = pages.get(page.removeprefix(site))
            elif page.endswith(".html"):
                target = pages.get(os.path.normpath(folder / page))
            else:
                target = (path.parent / page if page else path).resolve()
            if (
                not (target and target.exists())
                or place
                and place not in places.get(target, ())
            ):
                dead.append(f"{path.name}: {link}")
    return sorted(dead)


# the quick version of the audits: four pages, and the chapters of their harness
AUDITS = {
    "01_mechanism",
    "02_end_to_end",
    "03_mutants",
    "04_proofs",
    "attacks",
    "auditing",
    "battery",
    "claims",
    "doors",
    "families",
    "neighbours",
}


def audit_time(lines):
    "What the audits have taken, from nbdev's lines about time."
    found = (re.fullmatch(r"(\w+)\.ipynb: (\d+) secs", x.strip()) for x in lines)
    seconds = {m[1]: int(m[2]) for m in found if m and m[1] in AUDITS}
    if seconds.keys() != AUDITS:
        sys.exit(f"no time is known of {', '.join(sorted(AUDITS - seconds.keys()))}")
    total = sum(seconds.values())
    return f"the audits took {total} seconds one by one, {total // 2} two at a time"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--slow", action="store_true", help="run the cells marked slow as well"
    )
    slow = parser.parse_args().slow
    print(f"Python {platform.python_version()}")

    if changed := drift():
        sys.exit(
            (
                "these differ from what the notebooks give (run nbdev_export and "
                "nbdev_clean): "
            )
            + ", ".join(changed)
        )
    print("notebooks are clean, and the module equals its notebooks")
    if found := untidy():
        sys.exit(
            "these outputs are too large or name a folder of a machine: "
            + "; ".join(found)
        )
    print("outputs are small and name no folder of a machine")
    if subprocess.run(
        [sys.executable, str(root / ".ci/readme.py"), "--check"]
    ).returncode:
        sys.exit("README.md differs from nbs/index.ipynb (run make readme)")
    print("README.md equals nbs/index.ipynb")
    if found := wide():
        sys.exit("these lines are longer than 88 columns:\n" + "\n".join(found))
    print("every line of code fits 88 columns")
    if found := upward_imports():
        sys.exit("these imports go against the order of folders: " + "; ".join(found))
    print("imports follow the order of folders")
    if found := oversized():
        sys.exit("these are too long: " + "; ".join(found))
    print("modules, notebooks and signatures are short")
    lint()
    if run("python", ".ci/net.py").returncode:
        sys.exit("a seeded run has changed (see above)")
    speed = run("python", "benchmarks/test_speed.py", capture_output=True)
    if speed.returncode:
        sys.exit(f"a measurement of speed does not work:\n{speed.stderr[-3000:]}")
    print("the measurements of speed work")

    skipped = [p for p in notebooks() if by_hand(p)]
    for p in skipped:
        print(f"run by hand, outputs committed: {p.relative_to(root)}")
    expected = {str(p) for p in notebooks()}
    command = [
        sys.executable,
        str(root / ".ci/notebooks.py"),
        "--n_workers",
        "2",
        "--do_print",
        "--timing",
        *(["--flags", "slow"] if slow else []),
    ]
    env = dict(os.environ, OMP_NUM_THREADS="1", MPLBACKEND="agg", PYTHONUNBUFFERED="1")
    completed, lines = {str(p) for p in skipped}, []
    with subprocess.Popen(
        command, cwd=root, env=env, text=True, stdout=subprocess.PIPE
    ) as tests:
        for line in tests.stdout:
            print(line, end="", flush=True)
            lines.append(line)
            if line.startswith("- Completed "):
                completed.add(line.removeprefix("- Completed ").strip())
    if missing := sorted(expected - completed):
        sys.exit(f"{len(missing)} notebooks were not run: " + ", ".join(missing))
    if tests.returncode:
        sys.exit("at least one notebook test failed (see above)")
    print(audit_time(lines))
    pages = run(
        "python",
        "-W",
        "ignore",
        "-c",
        "from nbdev.serve import proc_nbs; proc_nbs(force=True)",
        capture_output=True,
    )
    if pages.returncode:
        sys.exit(f"the pages of the site cannot be made:\n{pages.stderr[-3000:]}")
    print("the pages of the site can be made")
    if run("python", ".ci/site.py").returncode:
        sys.exit("these pages are not fit to be read (see above)")
    if nested := [
        p.name
        for p in (root / "_proc").rglob("*.ipynb")
        if "[[`" in p.read_text(encoding="utf-8")
    ]:
        sys.exit(
            (
                "these pages have a link within a link (write the name in backticks "
                "alone): "
            )
            + ", ".join(nested)
        )
    if dead := dead_links():
        sys.exit(
            (
                "these links lead nowhere (show_doc what deserves a place; a private "
                "name "
                "in backticks gets no link with spaces inside: ` _name `):\n"
            )
            + "\n".join(dead)
        )
    print("every link within the site leads somewhere")
    print(f"{len(expected) - len(skipped)} passed, 0 failed, {len(skipped)} skipped")


if __name__ == "__main__":
    main()
