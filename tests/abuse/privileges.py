"""Cases A4 to A6: programs of its own (which are allowed), set-user-id programs and device files."""
import os
import shutil
import stat
import subprocess
import tempfile

is_root = os.geteuid() == 0
jailed = bool(os.environ.get("JAILED"))


def attempt(case, name, action, needs_root=True):
    """Without a sandbox only root can show that the attack works."""
    try:
        worked = action() is not False
    except OSError:
        worked = False
    verb = "BREACH" if worked else "held"
    print(verb if jailed or is_root or not needs_root else "unseen", case, name)



def runs(path):
    """Compiled code of its own, such as what some libraries make while they run."""
    shutil.copy("/bin/true", path)
    try:
        return subprocess.run([path]).returncode == 0
    except OSError:
        return False


print("allowed" if runs("./tool") else "refused", "A4 program of its own in the scratch directory")
with tempfile.TemporaryDirectory(dir="/tmp") as folder:
    print("allowed" if runs(f"{folder}/tool") else "held", "A4 program of its own in /tmp")


def own_tool(owner):
    os.chown("tool", owner, owner)
    os.chmod("tool", 0o4755)
    status = os.stat("tool")
    return bool(status.st_mode & stat.S_ISUID) and status.st_uid == owner


attempt("A5", "set-user-id program of root", lambda: own_tool(0))
attempt("A5", "set-user-id program of another user", lambda: own_tool(1))


def become_root():
    os.setresuid(0, 0, 0)
    return os.geteuid() == 0


attempt("A5", "becoming root", become_root)
for name, kind in (("character device", stat.S_IFCHR), ("block device", stat.S_IFBLK)):
    def make():
        os.mknod("device", 0o600 | kind, os.makedev(1, 5))
        os.unlink("device")

    attempt("A6", name, make)
os.mkfifo("pipe")
print("allowed A6 named pipe")
