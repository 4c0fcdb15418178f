"""Calls of the kernel that a program of this kind never needs. Each runs in a child of its own."""
import ctypes
import mmap
import os
import platform
import signal

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
BUFFER = ctypes.create_string_buffer(4096)
# name: (number on x86-64, number elsewhere, arguments, harmless where nothing stops it)
CALLS = {
    "unshare user": (272, 97, (0x10000000,), True),
    "unshare mount": (272, 97, (0x00020000,), True),
    "setns": (308, 268, (-1, 0), False),
    "mount": (165, 40, (b"none", b"/tmp", b"tmpfs", 0, None), False),
    "umount": (166, 39, (b"/candidate/data", 2), False),
    "move_mount": (429, 429, (-1, b"/candidate/data", -1, b"/tmp", 0), False),
    "open_tree": (428, 428, (-100, b"/", 1), True),
    "fsopen": (430, 430, (b"tmpfs", 0), True),
    "mount_setattr": (442, 442, (-100, b"/", 0, BUFFER, 32), False),
    "pivot_root": (155, 41, (b"/", b"/"), False),
    "chroot": (161, 51, (b"/",), True),
    "ptrace init": (101, 117, (16, 1, 0, 0), False),
    "process_vm_readv": (310, 270, (1, BUFFER, 1, BUFFER, 1, 0), False),
    "pidfd_getfd": (438, 438, (0, 0, 0), False),
    "kcmp": (312, 272, (1, 1, 0, 0, 0), True),
    "bpf": (321, 280, (0, BUFFER, 64), False),
    "perf_event_open": (298, 241, (BUFFER, 0, -1, -1, 0), False),
    "userfaultfd": (323, 282, (1,), True),
    "io_uring_setup": (425, 425, (1, BUFFER), True),
    "keyctl": (250, 219, (0, -3, 1), True),
    "add_key": (248, 217, (b"user", b"x", b"y", 1, -3), True),
    "personality": (135, 92, (0x0040000,), True),
    "name_to_handle_at": (303, 264, (-100, b"/tmp", BUFFER, BUFFER, 0), False),
    "open_by_handle_at": (304, 265, (-100, BUFFER, 0), False),
    "kexec_load": (246, 104, (0, 0, 0, 0), False),
    "init_module": (175, 105, (BUFFER, 0, b""), False),
    "syslog": (103, 116, (10, 0, 0), True),
    "sethostname": (170, 161, (b"x", 1), False),
    "clock_settime": (227, 112, (0, BUFFER), False),
    "swapon": (167, 224, (b"/tmp/x", 0), False),
    "shmget": (29, 194, (0, 4096, 0o1600), True),
    "memfd_secret": (447, 447, (0,), False),
    "limits of init": (302, 261, (1, 7, BUFFER, None), False),
}


def in_child(action):
    """Whether the action succeeds; the signal that ended it otherwise."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if action() else 1)
    _, status = os.waitpid(pid, 0)
    return status == 0, os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0


def report(name, action):
    worked, ending = in_child(action)
    print("BREACH" if worked else "held", name, f"(signal {ending})" if ending else "")


jailed = bool(os.environ.get("JAILED"))
for name, (x86, other, arguments, harmless) in CALLS.items():
    if jailed or harmless:
        report(name, lambda: LIBC.syscall(x86 if X86 else other, *arguments) >= 0)


def clone_with(flag):
    number = 56 if X86 else 220
    pid = LIBC.syscall(number, flag | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return pid > 0


for name, flag in (("clone user", 0x10000000), ("clone network", 0x40000000), ("clone mount", 0x00020000)):
    report(name, lambda: clone_with(flag))
report("clone3", lambda: LIBC.syscall(435, BUFFER, 88) >= 0 or ctypes.get_errno() != 38)
report("TIOCSTI", lambda: LIBC.ioctl(0, 0x5412, BUFFER) == 0)
report("kill init", lambda: LIBC.kill(1, 0 if not jailed else 9) == 0)


def machine_code(code):
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return ctypes.CFUNCTYPE(ctypes.c_long)(address)()


if X86 and jailed:
    # getpid by the 32-bit gate, and by the x32 numbers.
    report("32-bit call", lambda: machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3") > 0)
    report("x32 call", lambda: machine_code(b"\xb8\x27\x00\x00\x40\x0f\x05\xc3") > 0)
if jailed:
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        print("BREACH" if int(status[name], 16) else "held", name, status[name])
    print("held" if status["NoNewPrivs"] == "1" and status["Seccomp"] == "2" else "BREACH", "no_new_privs and seccomp")
