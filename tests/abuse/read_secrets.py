"""Tries to read what a candidate must not see. SECRET is the path of a hidden file, NEIGHBOUR a file of another job."""
import glob
import os
import stat

MARK = "the-secret-of-this-test"


def attempt(name, paths):
    for path in paths:
        try:
            # Somebody's pipe would make the reader wait.
            if not stat.S_ISREG(os.stat(path).st_mode):
                continue
            with open(path, "rb") as file:
                if MARK.encode() in file.read(1 << 20):
                    print("BREACH", name, path)
                    return
        except OSError:
            pass
    print("held", name)


secret, neighbour, data = os.environ["SECRET"], os.environ["NEIGHBOUR"], os.environ["DATA_DIR"]
attempt("absolute path", [secret])
attempt("above the data", [os.path.join(data, "../" * up, os.path.basename(secret)) for up in range(5)])
attempt("other job", [neighbour])
attempt("root of another process", [f"{root}{secret}" for root in glob.glob("/proc/*/root")])
attempt("directory of another process", [f"{cwd}/{neighbour}" for cwd in glob.glob("/proc/*/cwd")])
attempt("open files of another process", glob.glob("/proc/*/fd/*"))
attempt("environment of another process", [p for p in glob.glob("/proc/*/environ") if p != f"/proc/{os.getpid()}/environ"])
attempt("arguments of another process", glob.glob("/proc/*/cmdline"))
for path in ("/etc/shadow", "/root/.bashrc", "/proc/kcore", "/proc/1/environ", "/proc/1/maps", "/proc/1/cmdline", "/sys/kernel/notes"):
    try:
        data = open(path, "rb").read(64)
    except OSError:
        print("held", path)
    else:
        print("BREACH" if data else "held", path)
