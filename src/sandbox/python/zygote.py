"""Keeps one interpreter with the usual libraries loaded and forks jobs from it.

Descriptor 0 is a socket of the supervisor's launcher. Each message on it carries the descriptors of one prepared jail:
a status socket, a job socket and the jail's namespaces. For each the zygote forks a waiter, which enters the namespaces
and forks the child that will run the job; the child then waits for its orders. Nothing here computes anything before a
fork: thread pools of numeric libraries do not survive one.
"""

import ctypes
import gc
import json
import os
import resource
import signal
import socket
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
NAMESPACES = ("user", "mnt", "net", "ipc", "uts", "cgroup", "pid")
PR_CAPBSET_DROP, PR_CAP_AMBIENT, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 24, 47, 38, 22
CAPSET = {"x86_64": 126, "aarch64": 91}[os.uname().machine]
LANDLOCK_RESTRICT_SELF = 446
BUFFER_BYTES = 1 << 18


def call(name, *arguments):
    """A C function that sets errno."""
    result = getattr(LIBC, name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}{arguments}: {os.strerror(number)}")
    return result


def prctl(option, *arguments):
    padded = list(arguments) + [0] * (4 - len(arguments))
    return call("prctl", option, *[ctypes.c_ulong(a) for a in padded])


def receive(sock, most):
    """One message and its descriptors; the message is empty when the other side is gone."""
    data, ancillary, _, _ = sock.recvmsg(BUFFER_BYTES, socket.CMSG_SPACE(4 * most))
    descriptors = []
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.extend(struct.unpack(f"{len(payload) // 4}i", payload[: len(payload) // 4 * 4]))
    return data, descriptors


def send(sock, message):
    sock.send(json.dumps(message).encode())


def status_fields(status):
    if os.WIFSIGNALED(status):
        return {"signal": os.WTERMSIG(status)}
    return {"code": os.WEXITSTATUS(status)}


def drop_privileges(filters, ruleset):
    """The layers that a process can only put on itself; a cold job's payload does the same in Rust."""
    capability = 0
    while LIBC.prctl(PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0) == 0:
        capability += 1
    prctl(PR_CAP_AMBIENT, 4)
    header = struct.pack("Ii", 0x20080522, 0)
    call("syscall", ctypes.c_long(CAPSET), header, bytes(24))
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    if ruleset is not None:
        call("syscall", ctypes.c_long(LANDLOCK_RESTRICT_SELF), ctypes.c_int(ruleset), ctypes.c_uint(0))
        os.close(ruleset)
    for program in filters:
        code = ctypes.create_string_buffer(bytes.fromhex(program), len(program) // 2)
        header = struct.pack("HxxxxxxP", len(program) // 16, ctypes.addressof(code))
        call("prctl", PR_SET_SECCOMP, ctypes.c_ulong(2), ctypes.c_char_p(header), ctypes.c_ulong(0), ctypes.c_ulong(0))


def reopen_streams():
    """Streams as an interpreter makes them that starts with PYTHONUNBUFFERED."""
    import io

    def writer(number, name, errors):
        raw = io.FileIO(number, "w", closefd=False)
        raw.name = name
        return io.TextIOWrapper(raw, encoding="utf-8", errors=errors, line_buffering=True, write_through=True)

    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    sys.stdout = sys.__stdout__ = writer(1, "<stdout>", "surrogateescape")
    sys.stderr = sys.__stderr__ = writer(2, "<stderr>", "backslashreplace")


def reseed():
    import random

    random.seed()
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed()


def run_script(path, arguments):
    """Runs a file as `python path arguments` would, and ends the process as the interpreter would."""
    import threading
    import traceback
    import types

    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(path))
    module = types.ModuleType("__main__")
    module.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None)
    sys.modules["__main__"] = module
    code = 0
    try:
        with open(path, "rb") as file:
            source = file.read()
        exec(compile(source, path, "exec"), module.__dict__)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            code = (error.code or 0) & 0xFF
        else:
            print(error.code, file=sys.stderr)
            code = 1
    except KeyboardInterrupt:
        code = 130
    except BaseException as error:
        # Without the frame of this function, which no program expects to see.
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        code = 1
    # What the interpreter does at its end, short of freeing every object: the process is about to go.
    import atexit

    for step in (threading._shutdown, atexit._run_exitfuncs, sys.stdout.flush, sys.stderr.flush):
        try:
            step()
        except BaseException:
            traceback.print_exc()
            code = code or 120
    os._exit(code)


def serve_job(job_socket):
    """In the child: waits for the order, shuts itself in, runs the job."""
    send(job_socket, {"parked": True})
    data, descriptors = receive(job_socket, 8)
    if not data:
        os._exit(0)
    try:
        order = json.loads(data)
        standard, ruleset = descriptors[:3], (descriptors[3] if order["landlock"] else None)
        os.setsid()
        os.environ.clear()
        os.environ.update(order["env"])
        os.chdir(order["cwd"])
        os.umask(0o022)
        for number, descriptor in enumerate(standard):
            os.dup2(descriptor, number)
            os.close(descriptor)
        for name, value in order["rlimits"]:
            soft, hard = value
            resource.setrlimit(name, (soft, hard))
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
        reopen_streams()
        drop_privileges(order["seccomp"], ruleset)
        reseed()
        send(job_socket, {"running": True})
    except BaseException as error:
        send(job_socket, {"failed": f"{type(error).__name__}: {error}"})
        os._exit(1)
    job_socket.close()
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    run_script(order["script"], order["arguments"])


def wait_for_job(status_socket, child):
    _, status, usage = os.wait4(child, 0)
    message = status_fields(status)
    message.update(cpu_seconds=usage.ru_utime + usage.ru_stime, max_rss_bytes=usage.ru_maxrss * 1024)
    try:
        send(status_socket, message)
    except OSError:
        pass
    os._exit(0)


def enter(descriptors):
    """In the waiter: joins the jail and forks the child of its process namespace."""
    status_fd, job_fd, *namespaces = descriptors
    status_socket, job_socket = socket.socket(fileno=status_fd), socket.socket(fileno=job_fd)
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for name, descriptor in zip(NAMESPACES, namespaces, strict=True):
            try:
                call("setns", descriptor, 0)
            except OSError as error:
                raise OSError(error.errno, f"cannot enter the {name} namespace: {error.strerror}") from None
            os.close(descriptor)
        child = os.fork()
    except BaseException as error:
        send(job_socket, {"failed": f"{type(error).__name__}: {error}"})
        os._exit(1)
    if child == 0:
        status_socket.close()
        serve_job(job_socket)
        os._exit(1)
    job_socket.close()
    wait_for_job(status_socket, child)


def preload(names):
    """Imports only: a job that needs a module the environment lacks finds that out itself."""
    import importlib
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            try:
                importlib.import_module(name)
            except Exception:
                continue


def main():
    control = socket.socket(fileno=os.dup(0))
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    sys.path.pop(0)
    preload(sys.argv[1:])
    sys.argv = [""]
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.collect()
    gc.freeze()
    while True:
        data, descriptors = receive(control, 16)
        if not data:
            return
        if os.fork() == 0:
            control.close()
            enter(descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


main()
