"""Scores the output folder of a program as NatureBench does: the task's own evaluator scores each instance, and each score
is compared with the published one.

The score is the mean over the instances of (score - published) / |published|, turned so that higher is better. An instance
without a valid output counts -1; an output without any valid instance is not valid.
"""

import importlib.util
import math
import os
import sys
import tarfile
import tempfile

INSTANCES = __INSTANCES__

INVALID = -1.0


def run_evaluator(folder, output):
    """Scores by instance, as the evaluator reports them."""
    os.environ["OUTPUT_DIR"] = output
    sys.path.insert(0, folder)
    path = os.path.join(folder, "evaluator.py")
    spec = importlib.util.spec_from_file_location("evaluator", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["evaluator"] = module
    spec.loader.exec_module(module)
    entry = getattr(module, "run_evaluation", None) or getattr(module, "main", None)
    if entry is None:
        raise LookupError("evaluator.py defines neither run_evaluation nor main")
    scores = entry()
    if not isinstance(scores, dict):
        raise TypeError(f"evaluator.py gave {type(scores).__name__}, not scores by instance")
    return scores


def plain(name):
    return "".join(character for character in str(name).lower() if character not in "_- ")


def find(scores, metric):
    """The value of a metric, whose name may be spelt a little otherwise, in a block of scores and the blocks inside it."""
    if not isinstance(scores, dict):
        return None
    for name, value in scores.items():
        is_number = hasattr(value, "__float__") and not isinstance(value, (bool, str))
        if plain(name) == plain(metric) and is_number and math.isfinite(float(value)):
            return float(value)
    for value in scores.values():
        found = find(value, metric)
        if found is not None:
            return found
    return None


def gap(score, instance):
    if score is None:
        return INVALID
    direction = 1.0 if instance["higher_is_better"] else -1.0
    return direction * (score - instance["sota"]) / abs(instance["sota"])


class NatureBenchMetrics:
    higher_is_better = True
    reads_files = True

    def __init__(self):
        self.instances = {}

    def evaluate(self, y_true=None, y_pred=None):
        output = tempfile.mkdtemp()
        # The archive holds plain files only; newer versions of Python want to be told what to take.
        options = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        with tarfile.open(y_pred) as archive:
            archive.extractall(output, **options)
        scores = run_evaluator(y_true, output)
        missing = [name for name in INSTANCES if name not in scores]
        if missing:
            raise LookupError(f"evaluator.py reports no {', '.join(missing)}; it reports {', '.join(map(str, scores))}")
        self.instances = {name: find(scores[name], instance["metric"]) for name, instance in INSTANCES.items()}
        if all(score is None for score in self.instances.values()):
            reasons = [f"{name}: {scores[name].get('error')}" for name in INSTANCES if isinstance(scores[name], dict)]
            raise ValueError(f"no instance has a valid output ({'; '.join(reasons)})")
        gaps = [gap(self.instances[name], instance) for name, instance in INSTANCES.items()]
        return sum(gaps) / len(gaps)
