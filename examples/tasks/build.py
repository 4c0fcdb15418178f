#!/usr/bin/env python3
"""Builds the example task packages from data sets that come with scikit-learn. Needs no network.

    python examples/tasks/build.py [OUT [TASK …]]    OUT: folder of the packages, default: the folder of this file
                                                     TASK: packages to build, default: all

The packages are the same on every run. Their leaderboards hold scores of simple models that this script fits on
train.csv and scores with the package's own metric.py; no people took part.
"""

import importlib.util
import shutil
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

SEED = 2024
TEST_SHARE = 0.3

CHECKS = '''

def _matched(y_true, y_pred, key, column):
    """The answers and the predictions for them, in the order of the answers."""
    for name in (key, column):
        if name not in y_pred.columns:
            raise ValueError(f"the submission has no column '{name}'")
    if y_pred[key].duplicated().any():
        raise ValueError(f"the submission repeats values of '{key}'")
    if len(y_pred) != len(y_true) or set(y_pred[key]) != set(y_true[key]):
        raise ValueError(f"the submission must have one row for each of the {len(y_true)} test rows")
    return y_true[column].to_numpy(), y_pred.set_index(key).loc[y_true[key], column]


def _numbers(values):
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(float)
    if not np.isfinite(numbers).all():
        raise ValueError("predictions must be finite numbers")
    return numbers
'''

METRIC = '''"""Metric of the task {task}: {title}."""
import numpy as np
import pandas as pd

KEY, COLUMN = "{key}", "{column}"
{checks}

class {cls}Metrics:
    higher_is_better = {higher}

    def validate_submission(self, y_pred, y_true):
        _, predicted = _matched(y_true, y_pred, KEY, COLUMN)
{validate}        return True

    def evaluate(self, y_true=None, y_pred=None):
        truth, predicted = _matched(y_true, y_pred, KEY, COLUMN)
{evaluate}'''

AUC = '''        positive = truth == "malignant"
        ranks = pd.Series(_numbers(predicted)).rank().to_numpy()
        n1, n0 = positive.sum(), (~positive).sum()
        return float((ranks[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0))
'''
RMSE = '''        return float(np.sqrt(np.mean((truth.astype(float) - _numbers(predicted)) ** 2)))
'''
ACCURACY = '''        return float(np.mean(truth.astype(float) == _numbers(predicted)))
'''

DESCRIPTION = """{title}
{rule}

Overview
--------
{overview}

Evaluation
----------
Submissions are scored by {metric}. {direction} is better.

Submission file
---------------
A CSV with a header and one row for each of the {rows} test rows:

{sample}
Files
-----
{files}

Columns
-------
{columns}

Source
------
{source}
"""


def png(pixels):
    """An 8-bit grey PNG. Stored without compression, so its bytes do not depend on the version of zlib."""
    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels.astype(np.uint8))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 0)) + chunk(b"IEND", b"")


def split(n, classes=None):
    """Marks the test rows: a seeded draw that gives every class its share."""
    rng = np.random.default_rng(SEED)
    test = np.zeros(n, bool)
    groups = [np.arange(n)] if classes is None else [np.nonzero(classes == c)[0] for c in np.unique(classes)]
    for group in groups:
        test[rng.permutation(group)[: round(TEST_SHARE * len(group))]] = True
    return test


def write_package(out, task, *, title, overview, source, metric, higher, frame, key, column, fill, test, evaluate, numeric, cls,
                  notes, models, features, files=None, extra_files=()):
    """Writes one package and fits the models of its leaderboard."""
    root = out / task
    if root.exists():
        shutil.rmtree(root)
    public, private, utils = root / "data/public", root / "data/private", root / "utils"
    for folder in (public, private, utils):
        folder.mkdir(parents=True)
    train, hidden = frame[~test], frame[test]
    train.to_csv(public / "train.csv", index=False, lineterminator="\n")
    hidden.drop(columns=column).to_csv(public / "test.csv", index=False, lineterminator="\n")
    answer = hidden[[key, column]]
    answer.to_csv(private / "test_answer.csv", index=False, lineterminator="\n")
    sample = answer.assign(**{column: fill})
    sample.to_csv(public / "sample_submission.csv", index=False, lineterminator="\n")
    for path, data in files or []:
        (public / path).parent.mkdir(parents=True, exist_ok=True)
        (public / path).write_bytes(data)
    names = ["sample_submission.csv", "test.csv", "train.csv", *extra_files]
    columns = [f"- {c}: {notes.get(c, 'number')}" for c in frame.columns]
    (public / "description.txt").write_text(DESCRIPTION.format(
        title=title, rule="=" * len(title), overview=overview, metric=metric, direction="Higher" if higher else "Lower",
        rows=len(sample), sample=sample.head(3).to_csv(index=False, lineterminator="\n"),
        files="\n".join(f"- {name}" for name in sorted(names)), columns="\n".join(columns), source=source))
    (utils / "metric.py").write_text(METRIC.format(
        task=task, title=metric, key=key, column=column, cls=cls, higher=higher, evaluate=evaluate, checks=CHECKS,
        validate="        _numbers(predicted)\n" if numeric else ""))
    spec = importlib.util.spec_from_file_location("metric", utils / "metric.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    scorer = getattr(module, f"{cls}Metrics")()
    x, y = features[~test], train[column].to_numpy()
    teams = []
    for name, model in models:
        model.fit(x, y)
        if hasattr(model, "predict_proba") and column == "diagnosis":
            made = model.predict_proba(features[test])[:, list(model.classes_).index("malignant")]
        else:
            made = model.predict(features[test])
        submission = answer.assign(**{column: made})
        scorer.validate_submission(submission, answer)
        teams.append((f"model: {name}", round(scorer.evaluate(y_true=answer, y_pred=submission), 6)))
    teams.sort(key=lambda t: (-t[1] if higher else t[1], t[0]))
    pd.DataFrame(teams, columns=["team", "score"]).to_csv(root / "leaderboard.csv", index=False, lineterminator="\n")
    print(f"{task}: {len(train)} training rows, {len(hidden)} test rows, {len(teams)} teams from {teams[-1][1]} to {teams[0][1]}")


def scaled(model):
    return make_pipeline(StandardScaler(), model)


def breast_cancer(out):
    data = load_breast_cancer()
    names = [n.replace(" ", "_") for n in data.feature_names]
    labels = np.array(["malignant", "benign"])[data.target]
    frame = pd.DataFrame(data.data, columns=names)
    frame.insert(0, "sample_id", np.arange(1, len(frame) + 1))
    frame["diagnosis"] = labels
    models = [
        ("majority class", DummyClassifier(strategy="prior")),
        ("logistic regression", scaled(LogisticRegression(max_iter=2000))),
        ("logistic regression, strong penalty", scaled(LogisticRegression(C=0.01, max_iter=2000))),
        ("naive Bayes", GaussianNB()),
        ("5 nearest neighbours", scaled(KNeighborsClassifier(5))),
        ("25 nearest neighbours", scaled(KNeighborsClassifier(25))),
        ("decision stump", DecisionTreeClassifier(max_depth=1, random_state=SEED)),
        ("decision tree of depth 3", DecisionTreeClassifier(max_depth=3, random_state=SEED)),
        ("full decision tree", DecisionTreeClassifier(random_state=SEED)),
        ("random forest", RandomForestClassifier(200, random_state=SEED)),
        ("extra trees", ExtraTreesClassifier(200, random_state=SEED)),
    ]
    write_package(
        out, "breast-cancer", title="Malignant or benign",
        overview="Thirty measures of cell nuclei in images of breast tissue. Predict the probability that the sample is `malignant`.",
        source="Breast Cancer Wisconsin (Diagnostic), UCI Machine Learning Repository, CC BY 4.0; as shipped with scikit-learn.",
        metric="area under the ROC curve", higher=True, frame=frame, key="sample_id", column="diagnosis", fill=0.5,
        test=split(len(frame), labels), evaluate=AUC, numeric=True, cls="BreastCancer",
        notes={"sample_id": "id", "diagnosis": "target, malignant or benign"}, models=models, features=data.data)


def diabetes(out):
    data = load_diabetes(scaled=False)
    frame = pd.DataFrame(data.data, columns=data.feature_names)
    frame.insert(0, "patient_id", np.arange(1, len(frame) + 1))
    frame["progression"] = data.target
    models = [
        ("mean of the training rows", DummyRegressor()),
        ("median of the training rows", DummyRegressor(strategy="median")),
        ("linear regression", LinearRegression()),
        ("ridge", scaled(Ridge(10.0))),
        ("ridge, strong penalty", scaled(Ridge(300.0))),
        ("lasso", scaled(Lasso(1.0))),
        ("5 nearest neighbours", scaled(KNeighborsRegressor(5))),
        ("25 nearest neighbours", scaled(KNeighborsRegressor(25))),
        ("decision tree of depth 3", DecisionTreeRegressor(max_depth=3, random_state=SEED)),
        ("full decision tree", DecisionTreeRegressor(random_state=SEED)),
        ("random forest", RandomForestRegressor(200, random_state=SEED)),
        ("extra trees", ExtraTreesRegressor(200, random_state=SEED)),
    ]
    notes = {"patient_id": "id", "progression": "target", "age": "years", "sex": "1 or 2", "bmi": "body mass index",
             "bp": "average blood pressure"} | {f"s{n}": "blood serum measurement" for n in range(1, 7)}
    write_package(
        out, "diabetes-progression", title="Progression of diabetes",
        overview="Ten facts about each of 442 patients. Predict a measure of how far the disease has moved on one year later.",
        source="Efron, Hastie, Johnstone and Tibshirani (2004), Least Angle Regression; as shipped with scikit-learn.",
        metric="root mean squared error", higher=False, frame=frame, key="patient_id", column="progression", fill=0.0,
        test=split(len(frame)), evaluate=RMSE, numeric=True, cls="DiabetesProgression", notes=notes, models=models,
        features=data.data)


def digits(out):
    data = load_digits()
    order = np.random.default_rng(SEED).permutation(len(data.target))
    pixels, labels = data.images[order], data.target[order]
    test = split(len(labels), labels)
    names = [f"d{n:04d}" for n in range(len(labels))]
    frame = pd.DataFrame({"image_id": names, "digit": labels})
    files = [(f"images/{'test' if t else 'train'}/{name}.png", png(np.round(image * 255 / 16)))
             for name, image, t in zip(names, pixels, test)]
    flat = pixels.reshape(len(labels), -1)
    models = [
        ("most frequent digit", DummyClassifier(strategy="most_frequent")),
        ("logistic regression", scaled(LogisticRegression(max_iter=2000))),
        ("naive Bayes", GaussianNB()),
        ("1 nearest neighbour", KNeighborsClassifier(1)),
        ("5 nearest neighbours", KNeighborsClassifier(5)),
        ("25 nearest neighbours", KNeighborsClassifier(25)),
        ("decision tree of depth 5", DecisionTreeClassifier(max_depth=5, random_state=SEED)),
        ("full decision tree", DecisionTreeClassifier(random_state=SEED)),
        ("random forest", RandomForestClassifier(200, random_state=SEED)),
        ("extra trees", ExtraTreesClassifier(200, random_state=SEED)),
        ("support vectors", SVC(gamma=0.001)),
    ]
    write_package(
        out, "handwritten-digits", title="Handwritten digits",
        overview="Digits written by hand, shrunk to 8 by 8 grey pixels. images/train and images/test hold one PNG file an image,\n"
                 "named by its id; train.csv tells the digit of each training image. Name the digit of each test image.",
        source="Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, CC BY 4.0; as shipped with scikit-learn.",
        metric="accuracy", higher=True, frame=frame, key="image_id", column="digit", fill=0, test=test, evaluate=ACCURACY,
        numeric=True, cls="HandwrittenDigits", notes={"image_id": "id", "digit": "target, 0 to 9"}, models=models, features=flat,
        files=files, extra_files=["images/test/", "images/train/"])


BUILDERS = {"breast-cancer": breast_cancer, "diabetes-progression": diabetes, "handwritten-digits": digits}


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent
    tasks = sys.argv[2:] or list(BUILDERS)
    unknown = [task for task in tasks if task not in BUILDERS]
    if unknown:
        sys.exit(f"there is no example task {unknown[0]}; there are {', '.join(BUILDERS)}")
    for task in tasks:
        BUILDERS[task](out)


if __name__ == "__main__":
    main()
