"""Cases A2 and A3: changes what is not the candidate's. OUTSIDE is a directory of the host."""
import os
import sys

data = os.environ["DATA_DIR"]
first = os.path.join(data, "train.csv")


def attempt(case, name, action):
    try:
        action()
    except OSError:
        print("held", case, name)
    else:
        print("BREACH", case, name)


def create(directory):
    path = os.path.join(directory, "written-by-a-candidate")
    open(path, "w").close()
    os.unlink(path)


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


attempt("A2", "file in the data", lambda: create(data))
attempt("A2", "file of the host", lambda: create(os.environ["OUTSIDE"]))
if os.environ.get("JAILED"):
    for place in ("/", "/usr", "/usr/bin", "/etc", "/dev", "/proc", "/proc/self", "/sys", "/clade", "/evaluation"):
        attempt("A2", f"system folders: {place}", lambda: create(place))
    for place in (sys.prefix, os.path.dirname(os.__file__)):
        attempt("A2", f"interpreter: {place}", lambda: create(place))
    attempt("A2", "interpreter: removed", lambda: os.unlink(sys.executable))
    attempt("A2", "memory protection of its own", lambda: write("/proc/self/oom_score_adj", "-1000"))
    attempt("A2", "user mapping", lambda: write("/proc/self/uid_map", "0 0 1"))
    for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger", "/proc/irq/0/smp_affinity",
                 "/sys/power/state", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        attempt("A2", f"settings of the kernel: {path}", lambda: write(path, "1"))
mode = os.stat(first).st_mode
attempt("A3", "mode of the data", lambda: (os.chmod(first, 0o600), os.chmod(first, mode)))
attempt("A3", "time of the data", lambda: os.utime(first, (0, 0)))
attempt("A3", "end of the data", lambda: open(first, "a").close())
if os.environ.get("JAILED"):
    attempt("A3", "name of the data", lambda: os.rename(data, data + "2"))
    attempt("A3", "data deleted", lambda: os.unlink(first))
