"""Fills memory through files that need none of the process's own: /tmp, /dev/shm, and files without a name."""
import os
import sys

kind = os.environ["KIND"]
block = os.urandom(1 << 20)
written = 0
if kind == "memfd":
    kept = []
    while True:
        fd = os.memfd_create("x")
        kept.append(fd)
        for _ in range(32):
            os.write(fd, block)
        written += 32
try:
    number = 0
    while True:
        number += 1
        with open(f"/{kind}/{number}", "wb") as file:
            for _ in range(32):
                file.write(block)
                file.flush()
                written += 1
except OSError as error:
    print("stopped after", written, error.errno)
    sys.exit(0)
