#!/usr/bin/env python3
"""Measures the job service from outside, as its clients see it.

    benches/service.py load     [--executor native] [--jobs 1000] [--workers 4]     speed beside plain `docker run`
    benches/service.py survive  [--jobs 10000] [--kills 5]                          a full queue over kill -9
    benches/service.py start    [--jobs 40]                                         containers of Clade beside `docker run`

Needs nothing but Python and the binary (--clade, or CLADE in the environment; `clade` of the PATH without). CLADE_PYTHON is the
interpreter of the programs. What it compares with Docker needs the image clade-sandbox (`make image`).
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from datetime import datetime

TRIVIAL = "print('done')"
OPEN = ("queued", "running")


class Server:
    """`clade serve` on a store, which can be killed and started again."""

    def __init__(self, clade, store, workers, executor, settings=()):
        self.command = [clade, "serve", "--create", "--address", "127.0.0.1:0", "--workers", str(workers)]
        self.command += ["--executor", executor]
        # Limits that are there for other people, not for a benchmark.
        for setting in ("service.requests_per_minute=10000000", "service.queue_limit=100000", *settings):
            self.command += ["--set", setting]
        self.command += ["--set", "service.queued_per_user=100000"]
        self.store = store
        self.key = None
        self.start()

    def start(self):
        environment = dict(os.environ, CLADE_STORE=self.store)
        self.process = subprocess.Popen(self.command, env=environment, stderr=subprocess.PIPE, text=True)
        said = []
        for line in self.process.stderr:
            said.append(line)
            if line.startswith("clade_"):
                self.key = line.strip()
            if found := re.match(r"serving on (http://\S+)", line):
                self.url = urllib.parse.urlsplit(found[1])
                break
        else:
            sys.exit("the server did not start:\n" + "".join(said))
        # Its pipe must not fill up.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()
        self.local = threading.local()

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def ask(self, method, path, body=None):
        """One request on the connection of this thread."""
        is_new = not hasattr(self.local, "connection")
        if is_new:
            self.local.connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=120)
        connection = self.local.connection
        headers = {"X-API-Key": self.key, "Content-Type": "application/json"}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            text = response.read()
        except (OSError, http.client.HTTPException):
            del self.local.connection
            # The server closes a connection that was idle for long; what only reads may be asked again.
            if method == "GET" and not is_new:
                return self.ask(method, path, body)
            raise
        if response.status >= 400:
            raise RuntimeError(f"{method} {path}: {response.status} {text[:300]!r}")
        return text if path == "/metrics" else json.loads(text)

    def states(self):
        """Jobs by state."""
        text = self.ask("GET", "/metrics").decode()
        found = re.findall(r'^clade_jobs\{state="(\w+)"\} (\d+)', text, re.MULTILINE)
        return {state: int(count) for state, count in found}

    def wait_until_done(self, each=lambda: None):
        while any(self.states().get(state, 0) for state in OPEN):
            each()
            time.sleep(0.2)

    def all_jobs(self):
        jobs, cursor = [], ""
        while True:
            page = self.ask("GET", f"/api/v1/jobs?limit=500{cursor}")
            jobs += page["jobs"]
            if page["next_cursor"] is None:
                return jobs
            cursor = "&cursor=" + urllib.parse.quote(page["next_cursor"])


def body(folder, number=None):
    request = {"name": "trivial", "code": TRIVIAL, "data_dir": folder, "timeout": 60}
    return request if number is None else request | {"idempotency_key": f"n{number}"}


def seconds(job, begin, end):
    return (datetime.fromisoformat(job[end]) - datetime.fromisoformat(job[begin])).total_seconds()


def quantiles(values):
    ordered = sorted(values)
    at = lambda share: ordered[min(len(ordered) - 1, int(share * len(ordered)))]
    return f"p50 {1000 * at(0.5):8.1f} ms   p99 {1000 * at(0.99):8.1f} ms   mean {1000 * statistics.mean(values):8.1f} ms"


def line(name, text):
    print(f"{name:<44} {text}", flush=True)


def timed(call, count):
    """Seconds of each of so many calls, one after the other."""
    taken = []
    for _ in range(count):
        begin = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begin)
    return taken


def run_python():
    subprocess.run([os.environ.get("CLADE_PYTHON", "python3"), "-c", TRIVIAL], check=True, capture_output=True)


def run_docker():
    command = ["docker", "run", "--rm", "--network", "none", "clade-sandbox", "python3", "-c", TRIVIAL]
    subprocess.run(command, check=True, capture_output=True)


def has_image():
    if shutil.which("docker") is None:
        return False
    return subprocess.run(["docker", "image", "inspect", "clade-sandbox"], capture_output=True).returncode == 0


def at_once(count, workers, call):
    """Wall seconds of so many calls by so many threads."""
    begin = time.perf_counter()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        for done in [pool.submit(call, number) for number in range(count)]:
            done.result()
    return time.perf_counter() - begin


def load(options, folder, settings):
    workers, jobs = options.workers, options.jobs
    compared = max(20, jobs // 20)
    line("load of the machine", os.getloadavg()[0])
    line("python3 -c, one after the other", quantiles(timed(run_python, compared)))
    if has_image():
        line("docker run, one after the other", quantiles(timed(run_docker, compared)))
        taken = at_once(2 * compared, workers, lambda _: run_docker())
        line(f"docker run, {workers} at once", f"{2 * compared / taken:.1f} a second")
    else:
        line("docker run", "there is no image clade-sandbox; it is left out")
    server = Server(options.clade, folder + "/store", workers, options.executor, settings)
    wait = lambda: server.ask("POST", "/api/v1/jobs/submit_and_wait?timeout_s=60", body("data"))
    timed(wait, 5)
    line("submit_and_wait, one after the other", quantiles(timed(wait, compared)))
    before = {job["job_id"] for job in server.all_jobs()}
    begin = time.perf_counter()
    taking = at_once(jobs, 8, lambda _: server.ask("POST", "/api/v1/jobs", body("data")))
    server.wait_until_done()
    wall = time.perf_counter() - begin
    done = [job for job in server.all_jobs() if job["job_id"] not in before]
    assert len(done) == jobs and all(job["status"] == "completed" for job in done), "jobs were lost or failed"
    line(f"{jobs} jobs handed in by 8 clients", f"{jobs / taking:.1f} a second")
    line(f"{jobs} jobs, {workers} workers, to the last end", f"{jobs / wall:.1f} a second, {1000 * wall / jobs:.1f} ms a job")
    line("  of it from start to end (4 at once)", quantiles([seconds(job, "started_at", "finished_at") for job in done]))
    line("  queue to start, all handed in at once", quantiles([seconds(job, "queued_at", "started_at") for job in done]))
    # At half of what it can take, the wait is the service's own and not that of the jobs before.
    pause = 2 * wall / jobs
    count = min(jobs, 400)
    before |= {job["job_id"] for job in done}
    chance = random.Random(1)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for _ in range(count):
            pool.submit(server.ask, "POST", "/api/v1/jobs", body("data"))
            time.sleep(chance.expovariate(1 / pause))
    server.wait_until_done()
    paced = [job for job in server.all_jobs() if job["job_id"] not in before]
    assert len(paced) == count
    line(f"  queue to start, {1 / pause:.1f} jobs a second at random", quantiles([seconds(job, "queued_at", "started_at") for job in paced]))
    line("  from arrival to end", quantiles([seconds(job, "queued_at", "finished_at") for job in paced]))
    server.stop()
    if has_image():
        taken = at_once(2 * compared, workers, lambda _: run_docker())
        line(f"docker run once more, {workers} at once", f"{2 * compared / taken:.1f} a second")
    line("load of the machine", os.getloadavg()[0])


def survive(options, folder, settings):
    server = Server(options.clade, folder + "/store", 0, "native", settings)
    begin = time.perf_counter()
    at_once(options.jobs, 8, lambda number: server.ask("POST", "/api/v1/jobs", body("data", number)))
    taking = time.perf_counter() - begin
    line(f"{options.jobs} jobs taken", f"{taking:.1f} s, {options.jobs / taking:.0f} a second")
    server.kill()
    server.command[server.command.index("--workers") + 1] = str(options.workers)
    chance = random.Random(2)
    begin = time.perf_counter()
    server.start()
    line("start after kill -9", f"{time.perf_counter() - begin:.2f} s, {server.states()}")
    for kill in range(options.kills):
        # A job under which the server dies service.max_attempts times fails, so something must be done between two kills.
        goal = server.states().get("completed", 0) + chance.randint(50, 500)
        while (states := server.states())["completed"] < goal:
            time.sleep(0.05)
        server.kill()
        again = time.perf_counter()
        server.start()
        line(f"kill {kill + 1} while jobs ran", f"{states}; up again after {time.perf_counter() - again:.2f} s")
    server.wait_until_done()
    line("all ended", f"{time.perf_counter() - begin:.1f} s, {server.states()}")
    server.stop()
    counts = """SELECT count(*) AS requests, count(DISTINCT idempotency_key) AS keys,
                       count(*) FILTER (WHERE state = 'completed') AS completed, max(attempts) AS attempts,
                       (SELECT count(*) FROM sandbox.jobs) AS ends, (SELECT count(DISTINCT job_id) FROM sandbox.jobs) AS ended
                FROM sandbox.requests"""
    told = subprocess.run(
        [options.clade, "sql", "--format", "json", "-c", counts],
        env=dict(os.environ, CLADE_STORE=folder + "/store"), check=True, capture_output=True, text=True,
    )
    row = json.loads(told.stdout)[0]
    line("rows", row)
    expected = [options.jobs] * 5
    found = [row[name] for name in ("requests", "keys", "completed", "ends", "ended")]
    if found != expected:
        sys.exit(f"lost or doubled: {row}")
    line("lost", 0)
    line("doubled", 0)


def start(options, folder, settings):
    """One container after the other: ours, and `docker run` between them."""
    if not has_image():
        sys.exit("there is no image clade-sandbox: make image")
    for standby in (0, 1):
        own = [*settings, f"sandbox.docker.standby={standby}"]
        server = Server(options.clade, f"{folder}/store{standby}", 1, "docker", own)
        wait = lambda: server.ask("POST", "/api/v1/jobs/submit_and_wait?timeout_s=60", body("data"))
        timed(wait, 3)
        ours, theirs = [], []
        for _ in range(options.jobs):
            ours += timed(wait, 1)
            theirs += timed(run_docker, 1)
        server.stop()
        line(f"job in a container, {standby} standing by", quantiles(ours))
        line("docker run --rm", quantiles(theirs))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["load", "survive", "start"])
    parser.add_argument("--clade", default=os.environ.get("CLADE", "clade"))
    parser.add_argument("--executor", default="native")
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--kills", type=int, default=5)
    options = parser.parse_args()
    options.jobs = options.jobs or {"load": 1000, "survive": 10_000, "start": 40}[options.part]
    with tempfile.TemporaryDirectory(prefix="clade-service-") as folder:
        os.makedirs(folder + "/roots/data")
        with open(folder + "/roots/data/train.csv", "w") as file:
            file.write("id,y\n1,2\n")
        settings = [f"service.data_roots={folder}/roots"]
        {"load": load, "survive": survive, "start": start}[options.part](options, folder, settings)


if __name__ == "__main__":
    main()
