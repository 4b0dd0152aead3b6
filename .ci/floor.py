"""The lowest versions that settings.ini promises, as constraints for pip."""

import configparser
import pathlib
import re

root = pathlib.Path(__file__).resolve().parents[1]


def floors(kinds=("requirements", "engines_requirements")) -> list[str]:
    "Each requirement with its lowest version, such as numpy==1.26.*"
    config = configparser.ConfigParser(delimiters=["="], interpolation=None)
    config.read(root / "settings.ini", encoding="utf-8")
    parts = " ".join(config["DEFAULT"][kind] for kind in kinds).split()
    found = (re.match(r"([\w-]+)(?:\[[^]]*\])?>=([\d.]+)", part) for part in parts)
    return [f"{match[1]}=={match[2]}.*" for match in found if match]


if __name__ == "__main__":
    print("\n".join(floors()))
