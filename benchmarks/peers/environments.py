"""An environment for each peer, from the package registry, with pinned versions.

    python benchmarks/peers/environments.py FOLDER

makes FOLDER/dpmm, FOLDER/smartnoise and FOLDER/opendp from the files in pins/. Python
3.11 is the only one for which all three exist. A peer that cannot be installed is
skipped, and FOLDER/environments.json says why. --pip passes words on to pip.
"""

import argparse
import json
import subprocess
import sys
import time
import venv
from pathlib import Path

PINS = Path(__file__).parent / "pins"


def install(peer, folder, words):
    "Make one environment; how it ended, with pip's last words when it failed."
    began = time.monotonic()
    venv.create(folder / peer, with_pip=True)
    python = folder / peer / "bin" / "python"
    command = [python, "-m", "pip", "install", "--quiet", *words]
    # the pins are all that is needed: what a package asks for is in its file
    command += ["--no-deps", "--requirement", PINS / f"{peer}.txt"]
    done = subprocess.run(command, capture_output=True, text=True)
    errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR")]
    return dict(
        installed=done.returncode == 0,
        reason=errors[0][7:207] if done.returncode and errors else "",
        python=".".join(map(str, sys.version_info[:3])),
        seconds=round(time.monotonic() - began),
    )


def main():
    "Make what is missing."
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", nargs="*", help="some of pins/, instead of all")
    parser.add_argument("--pip", nargs="*", default=[])
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    path = args.folder / "environments.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    for peer in args.peers or sorted(pins.stem for pins in PINS.glob("*.txt")):
        if not known.get(peer, {}).get("installed"):
            known[peer] = install(peer, args.folder, args.pip)
            path.write_text(json.dumps(known, indent=1) + "\n")
        print(peer, known[peer], flush=True)


if __name__ == "__main__":
    main()
