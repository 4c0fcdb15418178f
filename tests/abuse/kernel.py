"""Cases C13 to C16: calls of the kernel that a program of this kind never needs. Each runs in a child of its own."""
import ctypes
import errno
import mmap
import os
import platform
import signal
import struct

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = platform.machine() == "x86_64"
BUFFER = ctypes.create_string_buffer(4096)
HANDLE = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 256)
# kind: (name, number on x86-64, number elsewhere, arguments, harmless where nothing stops it)
CALLS = {
    "namespaces": (
        ("unshare user", 272, 97, (0x10000000,), True),
        ("unshare mount", 272, 97, (0x00020000,), True),
        ("unshare time", 272, 97, (0x00000080,), True),
        ("setns", 308, 268, (-1, 0), False),
    ),
    "mounts and roots": (
        ("mount", 165, 40, (b"none", b"/tmp", b"tmpfs", 0, None), False),
        ("remount", 165, 40, (b"none", b"/candidate/data", b"", 0x1020, None), False),
        ("umount", 166, 39, (b"/candidate/data", 2), False),
        ("move_mount", 429, 429, (-1, b"/candidate/data", -1, b"/tmp", 0), False),
        ("open_tree", 428, 428, (-100, b"/", 1), True),
        ("fsopen", 430, 430, (b"tmpfs", 0), True),
        ("mount_setattr", 442, 442, (-100, b"/", 0, BUFFER, 32), False),
        ("pivot_root", 155, 41, (b"/", b"/"), False),
        ("chroot", 161, 51, (b"/",), True),
    ),
    "other processes": (
        ("ptrace", 101, 117, (16, 1, 0, 0), False),
        ("ptrace by its parent", 101, 117, (0, 0, 0, 0), True),
        ("process_vm_readv", 310, 270, (1, BUFFER, 1, BUFFER, 1, 0), False),
        ("pidfd_getfd", 438, 438, (0, 0, 0), False),
        ("kcmp", 312, 272, (1, 1, 0, 0, 0), True),
        ("limits of the first process", 302, 261, (1, 7, BUFFER, None), False),
    ),
    "files by handle": (
        ("name_to_handle_at", 303, 264, (-100, b"/tmp", HANDLE, BUFFER, 0), True),
        ("open_by_handle_at", 304, 265, (-100, BUFFER, 0), False),
    ),
    "programs in the kernel": (
        ("bpf", 321, 280, (0, BUFFER, 64), False),
        ("perf_event_open", 298, 241, (BUFFER, 0, -1, -1, 0), False),
        ("userfaultfd", 323, 282, (1,), True),
        ("io_uring_setup", 425, 425, (1, BUFFER), True),
        ("kexec_load", 246, 104, (0, 0, 0, 0), False),
        ("init_module", 175, 105, (BUFFER, 0, b""), False),
    ),
    "keys": (
        ("keyctl", 250, 219, (0, -3, 1), True),
        ("add_key", 248, 217, (b"user", b"x", b"y", 1, -3), True),
    ),
    "settings of the machine": (
        ("personality", 135, 92, (0x0040000,), True),
        ("syslog", 103, 116, (10, 0, 0), True),
        ("sethostname", 170, 161, (b"x", 1), False),
        ("clock_settime", 227, 112, (0, BUFFER), False),
        ("swapon", 167, 224, (b"/tmp/x", 0), False),
    ),
    "memory that no limit sees": (
        ("shmget", 29, 194, (0, 4096, 0o1600), True),
        ("memfd_secret", 447, 447, (0,), False),
    ),
}
jailed = bool(os.environ.get("JAILED"))


def in_child(action):
    """Whether the action succeeds; a child that is killed has failed."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if action() else 1)
    _, status = os.waitpid(pid, 0)
    return status == 0


def report(case, name, action, is_certain=True):
    """Without a sandbox, a kernel may lack what is not certain."""
    worked = in_child(action)
    print("BREACH" if worked else "held" if jailed or is_certain else "unseen", case, name)


for kind, calls in CALLS.items():
    for name, x86, other, arguments, harmless in calls:
        if jailed or harmless:
            report("C13", f"{kind}: {name}", lambda: LIBC.syscall(x86 if X86 else other, *arguments) >= 0, False)


def clone_with(flag):
    number = 56 if X86 else 220
    pid = LIBC.syscall(number, flag | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    return pid > 0


for name, flag in (("clone user", 0x10000000), ("clone network", 0x40000000), ("clone mount", 0x00020000)):
    report("C13", f"namespaces: {name}", lambda: clone_with(flag))
# Its flags lie where no filter can look, so it must not be there at all.
report("C13", "namespaces: clone3", lambda: LIBC.syscall(435, BUFFER, 88) >= 0 or ctypes.get_errno() != errno.ENOSYS)


def reaches_terminal(request):
    """Whether the kernel's terminals hear a request: there is none behind standard input, which they would say."""
    return LIBC.ioctl(0, request, BUFFER) == 0 or ctypes.get_errno() != errno.EPERM


report("C14", "typing into a terminal: TIOCSTI", lambda: reaches_terminal(0x5412))
report("C14", "typing into a terminal: TIOCLINUX", lambda: reaches_terminal(0x541C))

status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
held = "held" if jailed else "unseen"
for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    print("BREACH" if int(status[name], 16) else held, "C15", f"capabilities: {name}")
print(held if status["NoNewPrivs"] == "1" else "BREACH", "C15 new privileges")
print(held if status["Seccomp"] == "2" else "BREACH", "C15 unfiltered calls")


def machine_code(code):
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return ctypes.CFUNCTYPE(ctypes.c_long)(address)()


if X86:
    # The number of the process by the 32-bit gate, and by the numbers of x32.
    report("C16", "calls of 32-bit programs", lambda: machine_code(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3") > 0, False)
    report("C16", "calls of x32 programs", lambda: machine_code(b"\xb8\x27\x00\x00\x40\x0f\x05\xc3") > 0, False)
else:
    print("unseen C16 calls of 32-bit programs")
    print("unseen C16 calls of x32 programs")
