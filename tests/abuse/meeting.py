"""Cases G38 and G39: leaves marks in every place and looks for those of other jobs. GROUP names the jobs that might meet, NAME
this one, and PAUSE the seconds in which they can."""
import glob
import os
import time

case, group, name = os.environ["CASE"], os.environ["GROUP"], os.environ["NAME"]
for place in ("/tmp", "/dev/shm", "."):
    with open(f"{place}/meeting-{group}-{name}", "w"):
        pass
time.sleep(float(os.environ["PAUSE"]))


def report(attack, found):
    print("BREACH" if found else "held", case, f"{attack}: {found[0]}" if found else attack)


def marks(place):
    return [path for path in glob.glob(f"{place}/meeting-{group}-*") if not path.endswith(f"-{name}")]


def other_programs():
    """Processes that run a candidate's program and are not this one."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"candidate.py" in file.read() and int(pid) != os.getpid():
                    found.append(pid)
        except OSError:
            pass
    return found


report("files of another job in /tmp", marks("/tmp"))
report("files of another job in /dev/shm", marks("/dev/shm"))
report("files of another job in the scratch directory", marks(".") + marks("../*") + marks("../../*"))
if case == "G38":
    report("processes of another job", other_programs())
