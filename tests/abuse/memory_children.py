"""Case D18: many children take a little each."""
import os
import time

for _ in range(20):
    if os.fork() == 0:
        block = bytearray(os.urandom(1 << 20) * 100)
        time.sleep(60)
        os._exit(0)
time.sleep(60)
