"""Case A7: what the kernel tells of the machine below /proc and /sys. In a container /sys is there, read-only; what the engine
masks must be empty."""
import os

MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats", "/proc/scsi", "/proc/acpi", "/sys/firmware")
jailed = bool(os.environ.get("JAILED"))


def size(path):
    """Of a file or a directory, as far as it can be read."""
    try:
        if os.path.isdir(path):
            return len(os.listdir(path))
        with open(path, "rb") as file:
            return len(file.read(64))
    except OSError:
        return 0


def can_write(folder):
    try:
        open(os.path.join(folder, "written-by-a-candidate"), "w").close()
    except OSError:
        return False
    return True


found = [path for path in MASKED if size(path)]
print("BREACH" if found else "held", "A7", f"what engines mask: {' '.join(found)}")
if jailed and os.environ["BACKEND"] == "docker":
    places = [line.split()[1] for line in open("/proc/self/mounts") if line.split()[1].startswith("/sys")]
    written = [place for place in places if can_write(place)]
    print("BREACH" if written or not places else "read-only", f"A7 /sys: {' '.join(written)}")
else:
    print("BREACH" if size("/sys") else "held", "A7 /sys")
