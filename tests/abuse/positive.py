"""Case H40: what honest programs do; all of it must work."""
import concurrent.futures
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading


def square(x):
    return x * x, os.getpid()


def check(results):
    """Other processes have done the work."""
    assert [value for value, _ in results] == [0, 1, 4, 9], results
    assert os.getpid() not in {pid for _, pid in results}, results


def passes(what):
    print("passes H40", what)


def learn():
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
    from sklearn.model_selection import cross_val_score

    rng = np.random.default_rng(0)
    x, y = rng.random((300, 5)), rng.random(300)
    forest = RandomForestRegressor(20, n_jobs=2)
    assert len(forest.fit(x, y).predict(x)) == 300
    HistGradientBoostingClassifier(max_iter=10).fit(x, y > 0.5)
    assert (x @ x.T).shape == (300, 300)
    passes("scikit-learn on several threads")
    assert len(cross_val_score(RandomForestRegressor(5), x, y, cv=4, n_jobs=2)) == 4
    passes("scikit-learn on several processes")
    return x


def calculate():
    import joblib

    check(joblib.Parallel(n_jobs=2)(joblib.delayed(square)(i) for i in range(4)))
    passes("joblib with loky")
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            check(pool.map(square, range(4)))
        passes(f"multiprocessing: {method}")
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        check(list(pool.map(square, range(4))))
    passes("multiprocessing: pool of futures")
    results = []
    threads = [threading.Thread(target=lambda i=i: results.append(i)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert sorted(results) == list(range(8))
    passes("threads")
    assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True, check=True).stdout == "1\n"
    assert subprocess.run("echo hi | cat", shell=True, capture_output=True, text=True, check=True).stdout == "hi\n"
    passes("other programs and a shell")


def store(x):
    import joblib
    import pandas as pd

    with tempfile.NamedTemporaryFile("w+") as file, tempfile.TemporaryDirectory() as folder:
        file.write("x")
        open(os.path.join(folder, "y"), "w").close()
    passes("temporary files")
    for place in (".", tempfile.gettempdir()):
        path = os.path.join(place, "scratch.db")
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("CREATE TABLE t (x)")
            db.execute("INSERT INTO t VALUES (1)")
        with sqlite3.connect(path) as db:
            assert db.execute("SELECT x FROM t").fetchall() == [(1,)]
        db.close()
        os.unlink(path)
    passes("sqlite")
    with open("helper_module.py", "w") as file:
        file.write("VALUE = 7\n")
    import helper_module

    assert helper_module.VALUE == 7 and __file__.endswith("candidate.py")
    passes("modules of its own")
    os.makedirs("models/deep", exist_ok=True)
    joblib.dump(x, "models/deep/x.joblib", compress=3)
    assert (joblib.load("models/deep/x.joblib") == x).all()
    assert os.cpu_count() >= 1 and os.path.isdir(os.path.expanduser("~"))
    pd.DataFrame({"id": range(4), "y": [0, 1, 0, 1]}).to_csv("submission.csv", index=False)
    passes("models and tables in files")


if __name__ == "__main__":
    data = learn()
    calculate()
    store(data)
