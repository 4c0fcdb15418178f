"""Cases F32 to F36: leaves a submission of the KIND named. SECRET is the path of a file it must not pass on."""
import os
import pickle
import socket
import subprocess
import sys

kind, secret, name = os.environ["KIND"], os.environ["SECRET"], "submission.csv"
good = "id,y\n" + "".join(f"{i},{i % 2}\n" for i in range(4))
# Right for two rows of four.
half = "id,y\n0,0\n1,1\n2,1\n3,0\n"
FORGED = '{"score": 99.0, "valid": true, "higher_is_better": true, "metric_class": "M", "stage": "done"}'


def write(text, path=name):
    with open(path, "w") as file:
        file.write(text)


if kind == "good":
    write(good)
elif kind == "symlink":
    os.symlink(secret, name)
elif kind == "symlink_inside":
    write(good, "real.csv")
    os.symlink("real.csv", name)
elif kind == "hard_link":
    write(good, "real.csv")
    os.link("real.csv", name)
elif kind == "fifo":
    os.mkfifo(name)
elif kind == "directory":
    os.mkdir(name)
elif kind == "socket":
    socket.socket(socket.AF_UNIX).bind(name)
elif kind == "device":
    os.symlink("/dev/zero", name)
elif kind == "folder":
    os.mkdir("output")
    write(good, "output/a.csv")
elif kind == "folder_link":
    os.symlink(os.path.dirname(secret), "output")
elif kind == "link_in_folder":
    os.mkdir("output")
    os.symlink(secret, "output/a.csv")
elif kind == "huge":
    write("x" * (2 << 20))
elif kind == "sparse":
    with open(name, "w") as file:
        file.truncate(60 << 20)
elif kind == "growing":
    write(good)
    if os.fork() == 0:
        os.setsid()
        with open(name, "a") as file:
            for _ in range(100_000):
                file.write("\n")
                file.flush()
        os._exit(0)
elif kind == "unreadable":
    write(good)
    os.chmod(name, 0)
elif kind == "bom":
    write("\ufeff" + good)
elif kind == "crlf":
    write(good.replace("\n", "\r\n"))
elif kind == "other_case":
    write(good, "Submission.csv")
elif kind == "other_letters":
    write(good, "\uff53ubmission.csv")
    write(good, "submission\u200b.csv")
elif kind == "empty":
    write("")
elif kind == "header_only":
    write("id,y\n")
elif kind == "nul":
    write("id,y\n0,\0\n")
elif kind == "text":
    write("hello")
elif kind == "nan":
    write(good.replace("0,0\n", "0,nan\n"))
elif kind == "infinite":
    write(good.replace("0,0\n", "0,inf\n"))
elif kind == "duplicate":
    write(good + "0,0\n")
elif kind == "few_rows":
    write("id,y\n0,0\n")
elif kind == "wide":
    write(",".join(f"c{i}" for i in range(20_000)) + "\n" + ",".join("1" for _ in range(20_000)) + "\n")
elif kind == "pickle":
    class Bomb:
        def __reduce__(self):
            return os.system, ("touch /tmp/pwned; echo '{\"score\": 1.0}' >&1",)

    with open(name, "wb") as file:
        pickle.dump(Bomb(), file)
elif kind == "quotes":
    write('id,y\n0,"' + "x" * 500_000)
elif kind == "formula":
    write('id,y\n0,=cmd()\n1,"{""score"": 1}"\n2,3\n3,4\n')
elif kind == "traps":
    for trap in ("sitecustomize.py", "usercustomize.py", "metric.py", "evaluate.py", "pandas.py", "numpy.py", "json.py"):
        write(f"print({FORGED!r}); raise SystemExit(0)", trap)
    # Who starts an interpreter here falls for them.
    careless = subprocess.run([sys.executable, "-c", "import pandas"], capture_output=True, text=True)
    print("the traps work" if FORGED in careless.stdout else careless)
    write(half)
elif kind == "forged_log":
    print(FORGED)
    write(half)
elif kind == "forged_result":
    for path in ("result.json", "/tmp/result.json", "/evaluation/result.json", "/evaluation/metric.py", "/proc/self/fd/1"):
        try:
            write(FORGED, path)
        except OSError:
            pass
    write(half)
elif kind.startswith("column "):
    write(f"id,y,{kind.split()[1]}\n0,0,0\n")
elif kind == "changing":
    write(good)
    if os.fork() == 0:
        os.setsid()
        while True:
            os.symlink(secret, "other")
            os.replace("other", name)
            write(good, "other")
            os.replace("other", name)
