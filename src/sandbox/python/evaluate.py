"""Scores one submission with a task's metric.

Runs alone in its own jail: `python -I -B evaluate.py INPUTS`, where INPUTS is a JSON object with the paths of the metric,
of the answers (the first is the ground truth) and of the submission. The result is one JSON object on the descriptor that was standard output
at the start. Before anything else is loaded that descriptor is moved out of reach, so nothing printed later reaches it.
"""

import json
import math
import os
import sys

DETAIL_CHARACTERS = 400


def claim_result_channel():
    """Keeps standard output for the result alone; whatever prints later goes to standard error."""
    channel = os.dup(1)
    os.set_inheritable(channel, False)
    os.dup2(2, 1)
    return channel


def describe(error):
    """One bounded line: a message must not carry many hidden values out."""
    text = " ".join(f"{type(error).__name__}: {error}".split())
    if len(text) > DETAIL_CHARACTERS:
        text = text[:DETAIL_CHARACTERS] + "..."
    return "".join(c if c.isprintable() else "?" for c in text)


def load_table(path):
    """The one loader for submissions and answers."""
    import pandas

    if path.lower().endswith((".jsonl", ".ndjson")):
        # Values keep the types that the file gives them: pandas would read "007" as a number and some names as dates.
        with open(path, encoding="utf-8") as lines:
            return pandas.DataFrame([json.loads(line) for line in lines if line.strip()])
    return pandas.read_csv(path)


def load_metric(path):
    """The first class, by name, that ends in `Metrics` and is defined in the file itself."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("metric", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["metric"] = module
    spec.loader.exec_module(module)
    for name in sorted(vars(module)):
        member = vars(module)[name]
        if isinstance(member, type) and member.__name__.endswith("Metrics") and member.__module__ == "metric":
            return member
    raise LookupError("metric.py defines no class whose name ends in Metrics")


def as_score(value):
    """A finite float out of what `evaluate` returned."""
    import numpy

    if isinstance(value, (bool, numpy.bool_)):
        raise TypeError("evaluate returned a truth value, not a number")
    if hasattr(value, "item") and getattr(value, "size", 1) == 1:
        value = value.item() if callable(value.item) else value
    if isinstance(value, bool):
        raise TypeError("evaluate returned a truth value, not a number")
    if not isinstance(value, (int, float)):
        raise TypeError(f"evaluate returned {type(value).__name__}, not a number")
    value = float(value)
    if not math.isfinite(value):
        raise ValueError(f"evaluate returned {value}, which is not finite")
    return value


def as_direction(value):
    """`higher_is_better` as a plain truth value, or None where the metric does not say."""
    if hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, bool) else None


def as_instances(value):
    """Scores of instances as plain numbers; an instance without a finite one has None."""
    if not isinstance(value, dict):
        return {}
    plain = {}
    for name, score in value.items():
        try:
            plain[str(name)] = as_score(score)
        except (TypeError, ValueError):
            plain[str(name)] = None
    return plain


def evaluate(inputs):
    result = {"score": None, "valid": False, "higher_is_better": None, "metric_class": None, "instances": {}}
    result["stage"] = "load_metric"
    try:
        metric_class = load_metric(inputs["metric"])
        result["metric_class"] = metric_class.__name__
        metric = metric_class()
        result["higher_is_better"] = as_direction(getattr(metric, "higher_is_better", None))
        result["stage"] = "load_answers"
        # A metric may read the files itself: then it gets their paths.
        load = (lambda path: path) if getattr(metric, "reads_files", False) is True else load_table
        truth = load(inputs["answers"][0])
        result["stage"] = "load_submission"
        submission = load(inputs["submission"])
        result["stage"] = "validate"
        if load is load_table and hasattr(metric, "validate_submission"):
            verdict = metric.validate_submission(submission.copy(), truth.copy())
            if isinstance(verdict, bool) and not verdict:
                raise ValueError("validate_submission returned False")
        result["valid"] = True
        result["stage"] = "evaluate"
        try:
            result["score"] = as_score(metric.evaluate(y_true=truth, y_pred=submission))
        finally:
            result["instances"] = as_instances(getattr(metric, "instances", None))
        result["stage"] = "done"
    except MemoryError:
        result["error"] = "MemoryError: the evaluation needs more memory than its limit"
    except SystemExit as error:
        result["error"] = f"SystemExit: metric.py called exit({error.code!r})"[:DETAIL_CHARACTERS]
    except Exception as error:
        result["error"] = describe(error)
    return result


def main():
    channel = claim_result_channel()
    result = json.dumps(evaluate(json.loads(sys.argv[1])), allow_nan=False)
    with os.fdopen(channel, "w", encoding="utf-8") as out:
        out.write(result)


main()
