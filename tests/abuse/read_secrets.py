"""Case A1: reads what a candidate must not see. SECRET is a hidden file, NEIGHBOUR a file of another job; a process of the host
holds the secret in its environment, its arguments and an open file, and works in the folder of the hidden file."""
import glob
import os
import stat

MARK = b"the-secret-of-this-test"
jailed = bool(os.environ.get("JAILED"))
secret, neighbour, data = os.environ["SECRET"], os.environ["NEIGHBOUR"], os.environ["DATA_DIR"]
host_folder, hidden = os.path.split(secret)


def content(path):
    """The beginning of a regular file; somebody's pipe would make the reader wait."""
    try:
        if stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "rb") as file:
                return file.read(1 << 20)
    except OSError:
        pass
    return b""


def attempt(name, paths):
    found = [path for path in paths if MARK in content(path)]
    print("BREACH" if found else "held", "A1", f"{name}: {found[0]}" if found else name)


def of_others(pattern):
    return [path for path in glob.glob(pattern) if not path.startswith((f"/proc/{os.getpid()}/", "/proc/self/", "/proc/thread"))]


attempt("hidden answers by their path", [secret])
attempt("hidden answers above the data", [os.path.join(data, "../" * up, hidden) for up in range(5)])
attempt("files of another job", [neighbour])
attempt("root of another process", [f"{root}{secret}" for root in of_others("/proc/*/root")])
attempt("working directory of another process", [f"{place}/{hidden}" for place in of_others("/proc/*/cwd")])
attempt("open files of another process", of_others("/proc/*/fd/*"))
attempt("environment of another process", of_others("/proc/*/environ"))
attempt("arguments of another process", of_others("/proc/*/cmdline"))

# The first process of a container is the engine's own and belongs to the same user as the program: it may be read, so
# there must be nothing in it.
for name in ("environ", "maps", "cmdline"):
    text = content(f"/proc/1/{name}")
    holds = [word for word in (host_folder.encode(), neighbour.encode(), MARK, b"CLADE", b"/home", b"/root/") if word in text]
    verb = "held" if not text else "harmless" if jailed and not holds else "BREACH"
    print(verb, "A1", f"files of the first process: {name} {text[:300] if holds else b''!r}".replace("\n", " "))

for name, path in (("files of root", "/etc/shadow"), ("files of root", "/root/.bashrc"), ("memory of the kernel", "/proc/kcore")):
    text = content(path)
    if jailed:
        print("BREACH" if text else "held", "A1", f"{name}: {path}")
    else:
        print("BREACH" if text else "unseen", "A1", f"{name}: {path}")
