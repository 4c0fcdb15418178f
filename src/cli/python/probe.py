import sys

print("python", "ok", sys.version.split()[0], sep="\t")
for package, module in [("numpy", "numpy"), ("pandas", "pandas"), ("scikit-learn", "sklearn")]:
    try:
        print(package, "ok", __import__(module).__version__, sep="\t")
    except Exception as error:
        print(package, "failed", f"{type(error).__name__}: {error}".replace("\n", " "), sep="\t")
