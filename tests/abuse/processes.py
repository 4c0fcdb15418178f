"""Case D17: counts how many processes and threads can live at once, and prints the number."""
import os
import sys
import threading
import time

children = []
try:
    while len(children) < 5000:
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        children.append(pid)
except OSError:
    pass
print("processes", len(children))
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
threads = 0
stop = threading.Event()
try:
    while threads < 5000:
        threading.Thread(target=stop.wait, daemon=True).start()
        threads += 1
except RuntimeError:
    pass
print("threads", threads)
sys.stdout.flush()
os._exit(0)
