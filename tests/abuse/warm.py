"""Cases I42 to I44: what a job of the warm pool finds of the jobs before it. The first one (FIRST is true) leaves what it can and
is told a secret; its numbers must differ from those of the others."""
import os
import random
import re

import numpy
import pandas

print(random.random(), numpy.random.rand())


def report(case, attack, found):
    print("BREACH" if found else "held", case, f"{attack}: {found!r}" if found else attack)


def in_memory(pattern):
    """Whether a text lies somewhere in this process. The pattern itself must not match it."""
    with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as memory:
        for line in maps:
            places, rights = line.split()[:2]
            begin, end = (int(place, 16) for place in places.split("-"))
            if "r" not in rights or "[v" in line:
                continue
            try:
                memory.seek(begin)
                found = re.search(pattern, memory.read(end - begin))
            except OSError:
                continue
            if found:
                return line.strip()
    return None


if os.environ["FIRST"] == "true":
    # Proves that the search finds what is there.
    assert in_memory(rb"the-secret-of-an-[e]arlier-job"), "the search proves nothing"
else:
    with open("/proc/self/environ", "rb") as file:
        report("I42", "variables of the host", [name for name in file.read().split(b"\0") if re.match(rb"CLADE|CARGO|HOME=/root", name)])
    report("I42", "memory of an earlier job", in_memory(rb"the-secret-of-an-[e]arlier-job"))
    report("I42", "host paths of an earlier job", in_memory(rb"clade-[s]andbox-\d+/\d+-[0-9a-f]{8}"))
    report("I44", "library that an earlier job has changed", hasattr(pandas, "poisoned"))
    report("I44", "files that an earlier job has left", os.path.exists("/tmp/left") or os.path.exists("left"))
pandas.poisoned = True
for path in ("/tmp/left", "left"):
    with open(path, "w") as file:
        file.write("x")
