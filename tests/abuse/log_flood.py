"""Case D21: writes MEGABYTES to the stream that KIND names, then the word `end`."""
import os

kind, megabytes = os.environ["KIND"], int(os.environ["MEGABYTES"])
block = {"binary": bytes(range(256)) * 4096, "zeros": bytes(1 << 20)}.get(kind, b"x" * (1 << 20))
streams = {"stderr": [2], "both": [1, 2]}.get(kind, [1])
for _ in range(megabytes):
    for stream in streams:
        os.write(stream, block)
if kind == "truncate":
    for action in (lambda: os.ftruncate(1, 0), lambda: open("/dev/stdout", "r+b").truncate(0), lambda: os.lseek(1, 0, 0)):
        try:
            action()
        except OSError:
            pass
for stream in streams:
    os.write(stream, b"\nend\n")
