"""Differentially private synthetic tables."""

__version__ = "0.1.0"

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from .core.compiled import ensure_cache_folder

# idle threads sleep instead of spinning; must be set before torch is loaded
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
ensure_cache_folder(Path(__file__).parent)  # before numba compiles anything

if TYPE_CHECKING:
    from .app.pipeline import select_and_measure, synthesize
    from .app.synthesizer import PrivPGD
    from .constrain.bounds import at_least, at_most, avoid, equal, match
    from .constrain.penalties import Penalty
    from .constrain.public import PublicColumns, PublicMarginal
    from .constrain.rules import Rule
    from .evaluation.datasets import load_dataset
    from .evaluation.metrics import evaluate
    from .joint.refinement import refine
    from .methods.privpgd import generate
    from .private.account import Budget
    from .private.counting import count
    from .private.ledger import Ledger
    from .private.measure import measure
    from .private.statistics import measure_statistic
    from .table.columns import PrivacyWarning
    from .table.dates import Datetime
    from .table.levels import Boolean, Categorical, Ordinal
    from .table.numbers import Numeric
    from .table.schema import Schema
    from .transport.particles import descend
    from .transport.projection import project

# Where each public name lives. A module is loaded when a name of it is first used, so
# that `import privpgd` is quick.
_HOME = {
    "PrivPGD": "app.synthesizer",
    "Schema": "private.learn",  # that chapter adds `Schema.learn`
    "Numeric": "table.numbers",
    "Ordinal": "table.levels",
    "Categorical": "table.levels",
    "Boolean": "table.levels",
    "Datetime": "table.dates",
    "Budget": "private.account",
    "Ledger": "private.ledger",
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
    "Rule": "constrain.rules",
    "PublicMarginal": "constrain.public",
    "PublicColumns": "constrain.public",
    "match": "constrain.bounds",
    "equal": "constrain.bounds",
    "avoid": "constrain.bounds",
    "at_least": "constrain.bounds",
    "at_most": "constrain.bounds",
    "measure_statistic": "private.statistics",
    "select_and_measure": "app.pipeline",
    "PrivacyWarning": "table.columns",
}
__all__ = ["__version__", *_HOME]


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'privpgd' has no attribute {name!r}")
    return getattr(import_module(f".{_HOME[name]}", __name__), name)


def __dir__():
    return sorted([*globals(), *_HOME])
