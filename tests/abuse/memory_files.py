"""Case D18: fills memory that is not a process's own: /tmp, /dev/shm, files without a name, shared and mapped memory."""
import mmap
import os
import sys

kind = os.environ["KIND"]
block = os.urandom(1 << 20)
MOST = 1 << 10
kept = []
if kind == "memfd":
    while True:
        fd = os.memfd_create("x")
        kept.append(fd)
        for _ in range(32):
            os.write(fd, block)
if kind == "shared":
    for _ in range(MOST // 32):
        memory = mmap.mmap(-1, 32 << 20)
        kept.append(memory)
        for _ in range(32):
            memory.write(block)
    sys.exit(0)
if kind == "mapped":
    with open("big", "wb") as file:
        file.truncate(32 << 20)
    with open("big", "rb") as file:
        for _ in range(MOST // 32):
            memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            kept.append(memory)
            for _ in range(32):
                memory.write(block)
    sys.exit(0)
try:
    number = 0
    while True:
        number += 1
        with open(f"/{kind}/{number}", "wb") as file:
            for _ in range(32):
                file.write(block)
                file.flush()
except OSError as error:
    print("stopped: memory")
    sys.exit(0)
