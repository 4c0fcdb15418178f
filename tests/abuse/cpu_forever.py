"""Case D19: calculates for ever, in two processes."""
import os

os.fork()
while True:
    sum(range(10000))
