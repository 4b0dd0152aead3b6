"""Make the modules from the notebooks: nbdev's export, then ruff's format.

nbdev puts one blank line between cells and writes `__all__` on long lines, so that its
modules are formatted only after this second step. `make` installs this script as
`nbdev_export` in the environment. `--clean` runs nbdev's clean on the notebooks, too.
A module that does not change keeps its time, so that what was compiled from it stays valid.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

from nbdev.clean import nbdev_clean
from nbdev.config import get_config
from nbdev.doclinks import nbdev_export


def wrap_docstring(path: Path, width: int = 88) -> None:
    "Fold the first line of a module, which nbdev takes from the chapter's subtitle."
    text = path.read_text(encoding="utf-8")
    found = re.match(r'"""(.+)"""\n', text)
    if found and len(found[0]) > width:
        folded = textwrap.fill(found[1], width - 3)
        path.write_text(f'"""{folded}\n"""\n{text[found.end() :]}', encoding="utf-8")


def main() -> None:
    if "--clean" in sys.argv:
        nbdev_clean()
    config = get_config()
    modules = Path(config.lib_path).rglob("*.py")
    before = {path: (path.read_bytes(), path.stat()) for path in modules}
    nbdev_export.__wrapped__()
    ruff = Path(sys.executable).with_name("ruff")
    lib = os.path.relpath(config.lib_path, config.config_path)
    for module in Path(config.lib_path).rglob("*.py"):
        wrap_docstring(module)
    for command in ("check", "--select", "I", "--fix", "-q"), ("format", "-q"):
        subprocess.run([ruff, *command, lib], check=True, cwd=config.config_path)
    for path, (content, stat) in before.items():
        if path.exists() and path.read_bytes() == content:
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


if __name__ == "__main__":
    main()
