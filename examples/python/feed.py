"""Prints a line for each new product; after an interruption, it continues where it stopped."""
import http.client, json, sys, time, urllib.request

origin = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
position = sys.argv[2] if len(sys.argv) > 2 else None
while True:
    try:
        headers = {"Last-Event-ID": position} if position else {}
        request = urllib.request.Request(f"{origin}/api/feed?event=created", headers=headers)
        event = {}
        for line in urllib.request.urlopen(request, timeout=60):
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name:
                event[name] = value
                continue
            if "data" in event:
                print(event["id"], json.loads(event["data"])["productName"], flush=True)  # your work
            position, event = event["id"], {}  # done: it is not sent again
    except (OSError, http.client.HTTPException) as error:
        print(error, file=sys.stderr)
    time.sleep(1)
