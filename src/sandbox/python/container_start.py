# Starts a program in a container that was made before its job was known: what to run lies beside this file.
import json
import os
import sys

with open("/clade/job.json") as file:
    job = json.load(file)
os.chdir(job["directory"])
os.execve(sys.executable, [sys.executable, *job["arguments"]], job["environment"])
