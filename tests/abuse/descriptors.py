"""Opens files and pipes until there are no more."""
import os

opened = []
try:
    while len(opened) < 1_000_000:
        opened.append(os.open("/dev/null", os.O_RDONLY))
except OSError as error:
    print("stopped after", len(opened), error.errno)
