"""What honest programs do; all of it must work."""
import concurrent.futures
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading


def square(x):
    return x * x


def main():
    import joblib
    import numpy as np
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor

    rng = np.random.default_rng(0)
    x, y = rng.random((300, 5)), rng.random(300)
    RandomForestRegressor(20, n_jobs=2).fit(x, y).predict(x)
    HistGradientBoostingClassifier(max_iter=10).fit(x, y > 0.5)
    assert (x @ x.T).shape == (300, 300)
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(square)(i) for i in range(4)) == [0, 1, 4, 9]
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert pool.map(square, range(4)) == [0, 1, 4, 9], method
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        assert list(pool.map(square, range(4))) == [0, 1, 4, 9]
    results = []
    threads = [threading.Thread(target=lambda i=i: results.append(square(i))) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(results) == 8
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("x")
    with sqlite3.connect("scratch.db") as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("INSERT INTO t VALUES (1)")
    assert subprocess.run([sys.executable, "-c", "print(1)"], capture_output=True, text=True, check=True).stdout == "1\n"
    assert subprocess.run("echo hi | cat", shell=True, capture_output=True, text=True, check=True).stdout == "hi\n"
    open("helper_module.py", "w").write("VALUE = 7\n")
    import helper_module

    assert helper_module.VALUE == 7 and __file__.endswith("candidate.py")
    os.makedirs("models/deep", exist_ok=True)
    joblib.dump(x, "models/deep/x.joblib", compress=3)
    assert os.cpu_count() >= 1 and os.path.isdir(os.path.expanduser("~"))
    pd.DataFrame({"id": range(4), "y": [0, 1, 0, 1]}).to_csv("submission.csv", index=False)
    print("all good")


if __name__ == "__main__":
    main()
