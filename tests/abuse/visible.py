"""Lists what can be seen: the root directory, mounts, processes, descriptors, variables."""
import json
import os
import socket

print(json.dumps({
    "root": sorted(os.listdir("/")),
    "dev": sorted(os.listdir("/dev")),
    "etc": sorted(os.listdir("/etc")),
    "data": sorted(os.listdir("/candidate/data")),
    "work": sorted(os.listdir("/candidate/scratch")),
    "mounts": sorted({line.split()[1] for line in open("/proc/self/mounts")}),
    "writable": sorted({line.split()[1] for line in open("/proc/self/mounts") if line.split()[3].startswith("rw")}),
    "processes": sorted(p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "environment": sorted(os.environ),
    "host": socket.gethostname(),
    "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid()],
}))
