"""Case A7: lists what can be seen."""
import json
import os
import socket


def can_write(folder):
    path = os.path.join(folder, "written-by-a-candidate")
    try:
        open(path, "w").close()
        os.unlink(path)
    except OSError:
        return False
    return True


# Without a sandbox, one place shows it.
places = {line.split()[1] for line in open("/proc/self/mounts")} if os.environ.get("JAILED") else {os.path.dirname(os.environ["DATA_DIR"])}
print(json.dumps({
    "root": sorted(os.listdir("/")),
    "dev": sorted(os.listdir("/dev")),
    "etc": sorted(os.listdir("/etc")),
    "data": sorted(os.listdir(os.environ["DATA_DIR"])),
    "work": sorted(os.listdir(".")),
    "writable": sorted(place for place in places if os.path.isdir(place) and can_write(place)),
    "mountinfo": open("/proc/self/mountinfo").read(),
    "processes": sorted(p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()),
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "environment": sorted(os.environ),
    "host": socket.gethostname(),
    "ids": [os.getuid(), os.geteuid(), os.getgid(), os.getegid()],
}))
