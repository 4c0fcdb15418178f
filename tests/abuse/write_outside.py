"""Tries to change what is not the candidate's. OUTSIDE is a directory of the host."""
import os
import sys

data = os.environ["DATA_DIR"]


def attempt(name, action):
    try:
        action()
    except OSError:
        print("held", name)
    else:
        print("BREACH", name)


def create(directory):
    path = os.path.join(directory, "written-by-a-candidate")
    open(path, "w").close()
    os.unlink(path)


first = os.path.join(data, "train.csv")
attempt("new file in the data", lambda: create(data))
attempt("mode of the data", lambda: os.chmod(first, 0o600))
attempt("time of the data", lambda: os.utime(first, (0, 0)))
attempt("append to the data", lambda: open(first, "a").close())
attempt("host directory", lambda: create(os.environ["OUTSIDE"]))
if os.environ.get("JAILED"):
    for place in ("/", "/usr", "/usr/bin", "/etc", "/dev", "/proc", "/proc/self", sys.prefix, os.path.dirname(os.__file__)):
        attempt(place, lambda: create(place))
    attempt("own OOM score", lambda: open("/proc/self/oom_score_adj", "w").write("-1000"))
    attempt("core pattern", lambda: open("/proc/sys/kernel/core_pattern", "w").write("x"))
    attempt("user mapping", lambda: open("/proc/self/uid_map", "w").write("0 0 1"))
    attempt("rename the data", lambda: os.rename(data, data + "2"))
    attempt("remove the interpreter", lambda: os.unlink(sys.executable))
