"""Scores a submission as MLE-Bench does: by the competition's own grader, rounded to five decimals.

The grader and the modules it shares with others are kept here as texts, so that it runs where MLE-Bench is not installed.
"""

import importlib
import importlib.abc
import importlib.machinery
import logging
import sys

SOURCES = __SOURCES__


class InvalidSubmissionError(Exception):
    """A submission that cannot be graded."""


def read_csv(*args, **kwargs):
    import pandas

    return pandas.read_csv(*args, **{"float_precision": "round_trip", **kwargs})


def read_jsonl(path, skip_commented_out_lines=False):
    import json

    with open(path, encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


STANDINS = {
    "mlebench.grade_helpers": {"InvalidSubmissionError": InvalidSubmissionError},
    "mlebench.utils": {
        "get_logger": lambda name, *args, **kwargs: logging.getLogger(name),
        "read_csv": read_csv,
        "read_jsonl": read_jsonl,
    },
}


class Modules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the kept modules, what stands in for the rest of MLE-Bench, and the packages they are in."""

    def find_spec(self, name, path=None, target=None):
        inside = [known for known in [*SOURCES, *STANDINS] if known.startswith(name + ".")]
        if name not in SOURCES and name not in STANDINS and not inside:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=bool(inside))

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        name = module.__name__
        vars(module).update(STANDINS.get(name, {}))
        if name in SOURCES:
            exec(compile(SOURCES[name], name, "exec"), vars(module))


sys.meta_path.insert(0, Modules())
grade = getattr(importlib.import_module(__MODULE__), __FUNCTION__)


class MleBenchMetrics:
    higher_is_better = __HIGHER_IS_BETTER__

    def evaluate(self, y_true=None, y_pred=None):
        answers = y_true.to_dict("records") if __ANSWERS_ARE_RECORDS__ else y_true
        return round(float(grade(y_pred, answers)), 5)
