"""Posts the text of the alert on standard input to a chat: a command for EARSHOT_ALERT_COMMAND."""
import argparse
import http.client
import json
import re
import sys
import urllib.request
from urllib.parse import quote

arguments = argparse.ArgumentParser(description=__doc__)
arguments.add_argument("--url", required=True, help="file: URL; for Matrix, then the token")
arguments.add_argument("--matrix", help="id of a Matrix room; URL of its homeserver")
options = arguments.parse_args()


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None  # a redirected POST would become a GET


alert = json.load(sys.stdin)
with open(options.url) as file:
    url, *token = file.read().split()
headers = {"Content-Type": "application/json; charset=utf-8"}
method, body = "POST", {"text": alert["text"]}
if options.matrix:
    # The server drops a message with a known id. The time distinguishes receivers.
    room, raised = quote(options.matrix, safe=""), re.sub(r"\D", "", alert["raisedAt"])
    path = f"/_matrix/client/v3/rooms/{room}/send/m.room.message/{alert['id']}.{raised}"
    url = url.rstrip("/") + path
    method, body = "PUT", {"msgtype": "m.text", "body": alert["text"]}
    headers["Authorization"] = f"Bearer {token[0]}"
try:
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
    urllib.request.build_opener(NoRedirect).open(request, timeout=20).close()
except (OSError, http.client.HTTPException) as error:
    sys.exit(f"The chat did not accept the message: {error}")
except ValueError:  # its text has the URL
    sys.exit(f"{options.url} has no valid URL.")
