"""A user's script: requests and nothing else. Prints what it saw as JSON."""

import json
import sys
import time

import requests

url, key = sys.argv[1:]
session = requests.Session()
session.headers["X-API-Key"] = key
seen = {}


def wait(job_id):
    while True:
        answer = session.get(f"{url}/api/v1/jobs/{job_id}", timeout=60)
        answer.raise_for_status()
        job = answer.json()
        if job["status"] not in ("queued", "running"):
            return job
        time.sleep(0.1)


def submit(code, **more):
    body = {"name": "d", "code": code, "data_dir": "d", "timeout": 120, **more}
    answer = session.post(f"{url}/api/v1/jobs", json=body, timeout=60)
    answer.raise_for_status()
    return answer.json()["job_id"]


job_id = submit("print('hello')\nprint('Final Validation Score: 0.75')", idempotency_key="script-1")
job = wait(job_id)
seen["done"] = [job["status"], job["result"]["result"], job["result"]["score"]]
seen["replayed"] = submit("print('hello')\nprint('Final Validation Score: 0.75')", idempotency_key="script-1") == job_id

log = session.get(f"{url}/api/v1/jobs/{job_id}/logs", params={"stream": "stdout", "offset": 0}, timeout=60)
seen["log"] = log.text
seen["complete"] = log.headers["X-Log-Complete"]

sleeper = submit("import time\ntime.sleep(600)", timeout=700)
answer = session.delete(f"{url}/api/v1/jobs/{sleeper}", timeout=60)
seen["cancel"] = answer.status_code
seen["cancelled"] = wait(sleeper)["status"]

seen["listed"] = len(session.get(f"{url}/api/v1/jobs", params={"limit": 10}, timeout=60).json()["jobs"])
wrong = session.post(f"{url}/api/v1/jobs", json={"name": "d", "code": "1", "data_dir": "../d"}, timeout=60)
seen["wrong"] = [wrong.status_code, wrong.json()["error"]["code"]]
print(json.dumps(seen))
