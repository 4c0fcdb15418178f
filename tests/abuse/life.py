"""Cases E24 to E31: ways not to end, by KIND."""
import os
import signal
import subprocess
import sys
import time

kind = os.environ["KIND"]


def forever():
    while True:
        time.sleep(60)


def leave_behind(ignore):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            if ignore:
                for number in range(1, 64):
                    try:
                        signal.signal(number, signal.SIG_IGN)
                    except (OSError, ValueError):
                        pass
            forever()
        os._exit(0)


print("started", flush=True)
if kind == "daemon":
    leave_behind(True)
    os.close(1)
elif kind == "stdout_holder":
    leave_behind(True)
elif kind == "ignore_term":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    leave_behind(True)
    forever()
elif kind == "stop_itself":
    os.kill(os.getpid(), signal.SIGSTOP)
    forever()
elif kind == "stop_parent":
    # Only in a jail, as below.
    for target in {1, os.getppid()} - {0} if os.environ.get("JAILED") else ():
        try:
            os.kill(target, signal.SIGSTOP)
        except OSError:
            pass
    time.sleep(0.2)
elif kind == "kill_init":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.environ.get("JAILED"):
        try:
            os.kill(1, signal.SIGKILL)
        except OSError:
            print("held", flush=True)
        else:
            print("ignored", flush=True)
        time.sleep(0.5)
        print("alive", flush=True)
elif kind == "clock":
    if os.environ.get("JAILED"):
        try:
            time.clock_settime(time.CLOCK_REALTIME, time.time() + 86_400)
        except OSError:
            print("held", flush=True)
elif kind == "kill_all":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Only in a jail: anywhere else this would be the end of the machine's session.
    for target in {-1, 1, os.getppid()} - {0} if os.environ.get("JAILED") else ():
        for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGKILL):
            try:
                os.kill(target, number)
            except OSError:
                pass
elif kind == "late_submission":
    def handler(*_):
        with open("submission.csv", "w") as file:
            file.write("id,y\n1,2\n")
        print("saved", flush=True)
        os._exit(0)
    signal.signal(signal.SIGTERM, handler)
    forever()
elif kind == "late_exit":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
    forever()
elif kind == "zombies":
    for _ in range(40):
        if os.fork() == 0:
            os._exit(0)
    time.sleep(0.3)
elif kind == "exec":
    subprocess.Popen(["/bin/sleep", "1000"], start_new_session=True)
    os.execv("/bin/sleep", ["sleep", "1000"])
elif kind == "forever":
    leave_behind(True)
    forever()
