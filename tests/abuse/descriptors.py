"""Case D22: opens files, or fills pipes, until there are no more."""
import errno
import fcntl
import os

opened = []
try:
    while len(opened) < 1_000_000:
        if os.environ["KIND"] == "files":
            opened.append(os.open("/dev/null", os.O_RDONLY))
            continue
        left, right = os.pipe2(os.O_NONBLOCK)
        opened += [left, right]
        try:
            fcntl.fcntl(right, fcntl.F_SETPIPE_SZ, 1 << 20)
        except OSError:
            pass
        try:
            while True:
                os.write(right, bytes(1 << 16))
        except BlockingIOError:
            pass
except OSError as error:
    print("stopped: open files" if error.errno == errno.EMFILE else f"stopped: {error}")
    assert len(opened) > 500, len(opened)
