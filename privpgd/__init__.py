"""Differentially private synthetic tables."""

__version__ = "0.1.0"

import os
from importlib import import_module
from typing import TYPE_CHECKING

# idle threads sleep instead of spinning; must be set before torch is loaded
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

if TYPE_CHECKING:
    from .app.pipeline import synthesize
    from .app.synthesizer import PrivPGD
    from .constrain.constraints import PublicColumns, PublicMarginal, Rule
    from .constrain.penalties import Penalty, at_least, at_most, avoid, equal, match
    from .evaluation.datasets import load_dataset
    from .evaluation.metrics import evaluate
    from .joint.refinement import refine
    from .methods.privpgd import generate
    from .private.account import Budget, Ledger
    from .private.counting import count
    from .private.measure import measure
    from .private.select import select_and_measure
    from .private.statistics import measure_statistic
    from .table.schema import (
        Boolean,
        Categorical,
        Datetime,
        Numeric,
        Ordinal,
        PrivacyWarning,
        Schema,
    )
    from .transport.particles import descend
    from .transport.projection import project

# Where each public name lives. A module is loaded when a name of it is first used, so
# that `import privpgd` is quick.
_HOME = {
    "PrivPGD": "app.synthesizer",
    "Schema": "private.learn",  # that chapter adds `Schema.learn`
    "Numeric": "table.schema",
    "Ordinal": "table.schema",
    "Categorical": "table.schema",
    "Boolean": "table.schema",
    "Datetime": "table.schema",
    "Budget": "private.account",
    "Ledger": "private.account",
    "count": "private.counting",
    "measure": "private.measure",
    "project": "transport.projection",
    "descend": "transport.particles",
    "refine": "joint.refinement",
    "generate": "methods.privpgd",
    "synthesize": "app.pipeline",
    "evaluate": "evaluation.metrics",
    "load_dataset": "evaluation.datasets",
    "Penalty": "constrain.penalties",
    "Rule": "constrain.constraints",
    "PublicMarginal": "constrain.constraints",
    "PublicColumns": "constrain.constraints",
    "match": "constrain.penalties",
    "equal": "constrain.penalties",
    "avoid": "constrain.penalties",
    "at_least": "constrain.penalties",
    "at_most": "constrain.penalties",
    "measure_statistic": "private.statistics",
    "select_and_measure": "private.select",
    "PrivacyWarning": "table.schema",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'privpgd' has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__():
    return sorted([*globals(), *_HOME])
