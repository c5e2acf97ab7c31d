"""Starts a DAG run of Airflow 3 for the documents on standard input: a command sink of earshot.

Exit codes: 0 started, now or before; 75 retry later; 1 refused, the reason on standard error.
"""
import argparse
import fcntl
import hashlib
import http.client
import json
import os
import signal
import sys
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import HTTPRedirectHandler, Request, build_opener

RETRY_LATER = 75
ALL_SECONDS = 25  # for at most three requests; a delivery has 30 seconds

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--url", required=True, help="such as https://airflow.example.org")
arguments.add_argument("--dag", required=True, help="id of the DAG")
arguments.add_argument("--login", required=True, help="file: user and password, one per line")
arguments.add_argument("--token", required=True, help="file that stores the token")
arguments.add_argument("--record", action="store_true", help="pass the whole record to the DAG")
options = arguments.parse_args()


class NoRedirect(HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # a redirected POST would become a GET


def leave(reason, code=1):
    print(reason, file=sys.stderr)
    sys.exit(code)


def post(path, body, headers):
    """Returns the status and the JSON object of the answer. Exits if Airflow is unavailable."""
    headers = {"Content-Type": "application/json", **headers}
    request = Request(options.url.rstrip("/") + path, json.dumps(body).encode(), headers)
    try:
        try:
            answer = build_opener(NoRedirect).open(request)
        except HTTPError as error:
            answer = error
        with answer:
            status, text = answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        leave(f"Airflow did not answer: {error}", RETRY_LATER)
    if status in (408, 429) or status >= 500:
        leave(f"Airflow answered {status}.", RETRY_LATER)
    try:
        return status, dict(json.loads(text))
    except (ValueError, TypeError):
        return status, {}


def token_after(refused):
    """Returns a token, and True if it was stored. One process replaces a refused token; others wait for it."""
    with open(os.open(options.token, os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        token = file.read()
        is_stored = token not in ("", refused)
        if not is_stored:
            try:
                with open(options.login) as login:
                    username, password = login.read().splitlines()[:2]
            except (OSError, ValueError):
                leave(f"{options.login} must have the user and the password, one per line.", RETRY_LATER)
            status, answer = post("/auth/token", {"username": username, "password": password}, {})
            token = answer.get("access_token")
            if not token:
                leave(f"Airflow refused the login with {status}: check {options.login}.")
            file.seek(0)
            file.truncate()
            file.write(token)
        return token, is_stored


def small(document):
    """Returns what the DAG needs: Airflow keeps the configuration of each run in its database."""
    names = ("id", "event", "productId", "productName", "test", *["value"] * options.record)
    path = (document["value"] or {}).get("S3Path")
    return {name: document[name] for name in names if name in document} | {"S3Path": path}


documents = [json.loads(line) for line in sys.stdin if line.strip()]
ids = sorted(document["id"] for document in documents)
name = ids[0] if len(ids) == 1 else hashlib.sha256("\n".join(ids).encode()).hexdigest()
conf = {"documents": [small(document) for document in documents]}
run = {"dag_run_id": f"earshot__{name}", "logical_date": None, "conf": conf}
signal.signal(signal.SIGALRM, lambda *_: leave("Airflow did not answer in time.", RETRY_LATER))
signal.alarm(ALL_SECONDS)
token = None
for _ in range(2):
    token, is_stored = token_after(token)
    path = f"/api/v2/dags/{quote(options.dag, safe='')}/dagRuns"
    status, answer = post(path, run, {"Authorization": f"Bearer {token}"})
    # A stored token can be expired (401), or be of an earlier key of Airflow (403).
    is_permitted = answer.get("detail") != "Forbidden"
    if not (is_stored and is_permitted and status in (401, 403)):
        break
if status != 409 and answer.get("dag_run_id") != run["dag_run_id"]:  # 409: started before
    detail = str(answer.get("detail"))[:300].replace("\n", " ")
    leave(f"Airflow answered {status} to a run of the DAG {options.dag}: {detail}")
