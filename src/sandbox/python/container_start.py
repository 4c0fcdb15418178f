# Starts a program in a container that was made before its job was known: what to run lies beside this file.
import ctypes
import json
import os
import sys

PR_SET_SECCOMP = 22
SECCOMP_MODE_FILTER = 2
INSTRUCTION_BYTES = 8


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]


def install(text):
    """Puts this process, and with it the program, under a filter on system calls."""
    instructions = bytes.fromhex(text)
    program = Filter(len(instructions) // INSTRUCTION_BYTES, instructions)
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "a filter on system calls cannot be installed")


try:
    with open("/clade/job.json") as file:
        job = json.load(file)
    os.chdir(job["directory"])
    for text in job["filters"]:
        install(text)
    os.execve(sys.executable, [sys.executable, *job["arguments"]], job["environment"])
except Exception as error:
    print("sandbox:", error, file=sys.stderr)
    sys.exit(125)
