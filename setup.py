"""Package metadata: everything is read from settings.ini, so that it is written in one
place."""

from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

here = Path(__file__).parent
config = ConfigParser(delimiters=["="], interpolation=None)
config.read(here / "settings.ini", encoding="utf-8")
cfg = config["DEFAULT"]

setup(
    name=cfg["lib_name"],
    version=cfg["version"],
    description=cfg["description"],
    long_description=(here / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    author=cfg["author"],
    author_email=cfg["author_email"],
    url=cfg["git_url"],
    keywords=cfg["keywords"],
    license="Apache-2.0",
    packages=find_packages(include=["privpgd", "privpgd.*"]),
    package_data={"privpgd": ["py.typed", "data/*"]},
    python_requires=f">={cfg['min_python']}",
    install_requires=cfg["requirements"].split(),
    extras_require={
        "baselines": cfg["baselines_requirements"].split(),
        "engines": cfg["engines_requirements"].split(),
        "spark": cfg["spark_requirements"].split(),
        "dev": [
            part
            for kind in ("dev", "baselines", "engines")
            for part in cfg[f"{kind}_requirements"].split()
        ],
    },
    entry_points={
        "console_scripts": cfg["console_scripts"].split(),
        "nbdev": [f"{cfg['lib_name']}={cfg['lib_path']}._modidx:d"],
    },
    classifiers=[
        "Development Status :: 3 - Alpha",
        "Intended Audience :: Science/Research",
        "License :: OSI Approved :: Apache Software License",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(11, 14)),
    ],
    zip_safe=False,
)
