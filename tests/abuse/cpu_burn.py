"""Case D19: four processes calculate for two seconds; prints the CPU seconds they got."""
import os
import time

begin = time.time()
children = []
for _ in range(4):
    pid = os.fork()
    if pid == 0:
        while time.time() - begin < 2:
            sum(range(10000))
        os._exit(0)
    children.append(pid)
for pid in children:
    os.waitpid(pid, 0)
times = os.times()
print((times.user + times.system + times.children_user + times.children_system) / (time.time() - begin))
