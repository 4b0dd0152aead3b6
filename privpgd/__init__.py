__version__ = "0.1.0"

import os
from importlib import import_module
from typing import TYPE_CHECKING

os.environ.setdefault(
    "OMP_WAIT_POLICY", "passive"
)  # idle threads sleep instead of spinning; must be set before torch is loaded

if TYPE_CHECKING:
    from .baselines import synthesize
    from .constraints import (
        Penalty,
        PublicColumns,
        PublicMarginal,
        Rule,
        at_least,
        at_most,
        avoid,
        equal,
        match,
    )
    from .datasets import load_dataset
    from .marginals import count, measure
    from .metrics import evaluate
    from .particles import descend
    from .privacy import Budget, Ledger
    from .projection import project
    from .refinement import refine
    from .schema import (
        Boolean,
        Categorical,
        Datetime,
        Numeric,
        Ordinal,
        PrivacyWarning,
        Schema,
    )
    from .selection import select_and_measure
    from .synthesizer import PrivPGD, generate
    from .targets import measure_statistic

# Where each public name lives. Modules are loaded when a name is first used, so that `import privpgd` is quick.
_HOME = {
    "Boolean": "schema",
    "Categorical": "schema",
    "Datetime": "schema",
    "Numeric": "schema",
    "Ordinal": "schema",
    "PrivacyWarning": "schema",
    "Schema": "marginals",  # the chapters up to there give Schema its method `learn`
    "Budget": "privacy",
    "Ledger": "privacy",
    "count": "marginals",
    "measure": "marginals",
    "project": "projection",
    "refine": "refinement",
    "descend": "particles",
    "PrivPGD": "synthesizer",
    "generate": "synthesizer",
    "evaluate": "metrics",
    "load_dataset": "datasets",
    "select_and_measure": "selection",
    "synthesize": "baselines",
    **dict.fromkeys(
        (
            "Penalty",
            "Rule",
            "PublicMarginal",
            "PublicColumns",
            "match",
            "equal",
            "avoid",
            "at_least",
            "at_most",
        ),
        "constraints",
    ),
    "measure_statistic": "targets",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'privpgd' has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__():
    return sorted([*globals(), *_HOME])
