"""Cases D20 and D23: fills the scratch directory in the way that KIND names."""
import os
import time

kind = os.environ["KIND"]
block = os.urandom(1 << 20)
if kind == "one_file":
    with open("big", "wb") as file:
        while True:
            file.write(block)
elif kind == "sparse":
    with open("big", "wb") as file:
        file.truncate(1 << 40)
elif kind == "many_files":
    for number in range(10_000):
        with open(f"f{number}", "wb") as file:
            for _ in range(8):
                file.write(block)
elif kind == "inodes":
    for number in range(1_000_000):
        open(f"f{number}", "w").close()
elif kind == "deleted":
    kept = []
    for number in range(10_000):
        file = open("f", "wb")
        os.unlink("f")
        for _ in range(32):
            file.write(block)
        file.flush()
        kept.append(file)
        time.sleep(0.02)
elif kind == "deep":
    for _ in range(100_000):
        os.mkdir("d")
        os.chdir("d")
elif kind == "locked":
    os.makedirs("a/b/c")
    open("a/b/c/file", "w").close()
    for path in ("a/b/c", "a/b", "a"):
        os.chmod(path, 0)
    with open("submission.csv", "w") as file:
        file.write("id,y\n")
elif kind == "quick":
    for number in range(20):
        with open(f"f{number}", "wb") as file:
            os.posix_fallocate(file.fileno(), 0, 10 << 20)
