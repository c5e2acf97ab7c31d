"""Command sink of earshot: downloads the product of a notification, over HTTP or from the object store.

Standard input has the document of the notification. Each product has a folder, <folder>/<product id>.
Exit codes: 0 done, 75 temporary problem (the sink retries), 1 refused (later a dead letter).
A killed program leaves its part, which the next attempt continues.
"""
import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from types import SimpleNamespace

HTTP_URL = "https://download.dataspace.copernicus.eu/odata/v1"
TOKEN_URL = "https://identity.dataspace.copernicus.eu/auth/realms/CDSE/protocol/openid-connect/token"
S3_URL = "https://eodata.dataspace.copernicus.eu"
CHUNK = 1 << 15  # bytes that a kill loses
SILENCE_MAX = 60  # seconds without a byte


class Later(Exception):
    """A temporary problem."""


class Refused(Exception):
    """A problem that remains."""


def read_product(text):
    """Returns what the program needs of a document; None for `./earshot sinks test`."""
    try:
        item = json.loads(text)
        if item.get("test"):
            return None
        record = item["value"] or {}
        sums = [one["Value"].lower() for one in record.get("Checksum") or [] if one.get("Algorithm") == "MD5"]
        product = SimpleNamespace(id=item["productId"], name=item["productName"] or "")
        product.is_deleted, product.is_offline = item["event"] == "deleted", record.get("Online") is False
        product.md5, product.size = sums[0] if sums else None, max(0, record.get("ContentLength") or 0) or None
        product.date, product.s3_path = record.get("ModificationDate"), (record.get("S3Path") or "").strip("/")
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", product.id):
            raise Refused("The product id is invalid.")
        is_named = re.fullmatch(rb"[^./\0][^/\0]{0,200}", product.name.encode())
        if not product.is_deleted and not (record and is_named):
            raise Refused("The notification has no record, or an invalid product name.")
        return product
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Refused(f"The document or its record is invalid: {error!r}") from None


@contextlib.contextmanager
def lock(file, name):
    """Waits for other processes with the same name. The system unlocks when a process ends."""
    byte = int.from_bytes(hashlib.sha256(name.encode()).digest()[:7], "big")
    fcntl.lockf(file, fcntl.LOCK_EX, 1, byte)
    try:
        yield
    finally:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


def request_token(url, **fields):
    form = urllib.parse.urlencode({"client_id": "cdse-public", **fields}).encode()
    try:
        with urllib.request.urlopen(url, form, timeout=SILENCE_MAX) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        if error.code in (400, 401):  # expired refresh token, wrong password
            return None
        raise Later(f"The identity service answered {error.code}.") from None


def get_token(options, locks, rejected=None):
    """Returns the token of all processes. One login per hour: the sessions of an account are limited."""
    with lock(locks, "token"):
        file, now = options.folder / ".token.json", time.time()
        stored = json.loads(file.read_text()) if file.exists() else {}
        if now < stored.get("expires", 0) and stored["access_token"] != rejected:
            return stored["access_token"]
        new, url = None, options.token_url
        if now < stored.get("refresh_expires", 0):
            new = request_token(url, grant_type="refresh_token", refresh_token=stored["refresh_token"])
        login = json.loads(options.http.read_text())
        new = new or request_token(url, grant_type="password", **login)
        if new is None:
            raise Later("The identity service rejected the login.")
        new["expires"] = now + new["expires_in"] - 30
        new["refresh_expires"] = now + new["refresh_expires_in"] - 30
        temporary = file.with_suffix(".part")
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as output:
            json.dump(new, output)
        temporary.replace(file)
        return new["access_token"]


def append(part, open_at):
    """Downloads the rest of a file. `open_at(have)` returns the first position, the whole size, and the data."""
    with open(part, "ab", buffering=0) as file:
        start, size, data = open_at(part.stat().st_size)
        file.truncate(start)
        while chunk := data.read(CHUNK):
            while chunk:  # a disk that becomes full accepts a part
                chunk = chunk[file.write(chunk):]
        os.fsync(file.fileno())
        done = part.stat().st_size
    if size is not None and done < size:
        raise Later(f"The connection ended after {done} of {size} bytes.")


def is_right(path, size, md5):
    """Compares a file with its MD5, without one with its size; None: unknown."""
    if not path.is_file():
        return False
    if md5 is None:
        return size is None or path.stat().st_size == size
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest() == md5.lower()


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def sync(folder):
    """Writes the names in a folder to the disk."""
    opened = os.open(folder, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)


def store(target, facts, download):
    """Downloads a product, except if it is complete. `facts` differ for each version of the product.

    A part has only data of its version. `.version` names the version of the target, if that exists.
    """
    version = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    part, note = target.with_name(f"{target.name}.{version}.part"), target.with_name(".version")
    target.parent.mkdir(exist_ok=True)
    for other in {*target.parent.glob("*.part")} - {part, target}:
        remove(other)
    if target.exists() and note.exists() and note.read_text() == version:
        return
    download(part)
    note.unlink(missing_ok=True)
    remove(target)
    sync(target.parent)
    note.write_text(version)
    part.replace(target)
    sync(target.parent)


def open_product(options, locks, product, part, have):
    token = get_token(options, locks)
    for attempt in (1, 2):
        request = urllib.request.Request(f"{options.http_url}/Products({product.id})/$value")
        # Not sent to another server after a redirect.
        request.add_unredirected_header("Authorization", f"Bearer {token}")
        if have > 0:
            request.add_header("Range", f"bytes={have}-")
        try:
            data = urllib.request.urlopen(request, timeout=SILENCE_MAX)
        except urllib.error.HTTPError as error:
            if error.code == 401 and attempt == 1:
                token = get_token(options, locks, rejected=token)
                continue
            if error.code == 416:  # The part is too long.
                part.unlink()
            text = " ".join(error.read(200).decode("utf-8", "replace").split())
            temporary = error.code in (401, 403, 408, 416, 425, 429) or error.code >= 500
            kind = Later if temporary or product.is_offline else Refused
            raise kind(f"The download service answered {error.code}: {text}") from None
        first = re.match(r"bytes (\d+)-", data.headers.get("Content-Range", ""))
        start = int(first[1]) if data.status == 206 and first else 0
        length = data.headers.get("Content-Length")
        return start, None if length is None else start + int(length), data


def by_http(options, locks, product, target):
    expected = product.size, product.md5

    def download(part):
        # A part can be complete: the program was killed before it was renamed.
        if expected == (None, None) or not is_right(part, *expected):
            append(part, lambda have: open_product(options, locks, product, part, have))
        if not is_right(part, *expected):
            part.unlink()
            raise Refused("The checksum or the size of the product is wrong.")

    facts = product.md5 or [product.size, product.date]
    store(target.with_name(target.name + ".zip"), facts, download)


def path_of(one, prefix):
    """Returns the path of an object below the folder of its product."""
    path = one["Key"][len(prefix):].strip("/") or prefix.rpartition("/")[2]
    if any(name in ("", ".", "..") for name in path.split("/")):
        raise Refused("An object of the product has an invalid name.")
    return path


def is_object(path, one):
    md5 = re.fullmatch('"?([0-9a-f]{32})"?', one["ETag"])  # otherwise uploaded in parts
    return is_right(path, one["Size"], None) and (not md5 or is_right(path, None, md5[1]))


def by_s3(client, product, target):
    bucket, _, prefix = product.s3_path.partition("/")
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix) if prefix else []
    found = [one for page in pages for one in page.get("Contents", []) if not one["Key"].endswith("/")]
    # The names of other products can start with this one.
    objects = {path_of(one, prefix): one for one in found if (one["Key"] + "/").startswith(prefix + "/")}
    if not objects:
        kind = Later if product.is_offline else Refused
        raise kind("The object store has no objects of the product.")

    def download(part):
        for path, one in objects.items():
            download_object(client, bucket, one, part / path)

    store(target, sorted((path, one["Size"], one["ETag"]) for path, one in objects.items()), download)


def download_object(client, bucket, one, path):
    def open_at(have):
        start = have if have < one["Size"] else 0  # a complete file with a wrong checksum
        more = {"Range": f"bytes={start}-"} if start > 0 else {}
        found = client.get_object(Bucket=bucket, Key=one["Key"], IfMatch=one["ETag"], **more)
        return start, one["Size"], found["Body"]

    if is_object(path, one):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    append(path, open_at)
    if not is_object(path, one):
        path.unlink()
        raise Refused(f"The checksum or the size of {path.name} is wrong.")


def run(options, product):
    options.folder.mkdir(parents=True, exist_ok=True)
    # Never closed: that would release all locks of the process.
    locks = os.open(options.folder / ".locks", os.O_RDWR | os.O_CREAT, 0o600)
    if options.s3:
        import boto3
        from botocore.config import Config

        settings = Config(retries={"total_max_attempts": 1}, read_timeout=SILENCE_MAX)
        keys = json.loads(options.s3.read_text())
        client = boto3.client("s3", endpoint_url=options.s3_url, region_name="default", config=settings, **keys)
    if product is None:
        return client.list_objects_v2(Bucket="eodata", MaxKeys=1) if options.s3 else get_token(options, locks)
    place = options.folder / product.id.lower()
    # After a kill of the receiver, its last program for the product can still run.
    with lock(locks, place.name):
        if product.is_deleted:
            remove(place)
        elif options.s3:
            by_s3(client, product, place / product.name)
        else:
            by_http(options, locks, product, place / product.name)


def main():
    parser = argparse.ArgumentParser(description="Downloads the product of a notification.")
    parser.add_argument("folder", type=Path)
    way = parser.add_mutually_exclusive_group(required=True)
    way.add_argument("--http", type=Path, help="JSON file with username and password")
    way.add_argument("--s3", type=Path, help="JSON file with aws_access_key_id and aws_secret_access_key")
    for name, url in (("--http-url", HTTP_URL), ("--token-url", TOKEN_URL), ("--s3-url", S3_URL)):
        parser.add_argument(name, default=url)
    options = parser.parse_args()
    try:
        run(options, read_product(sys.stdin.read()))
    except Exception as error:  # such as OSError: no network, full disk, missing file
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(1 if isinstance(error, Refused) else 75)


if __name__ == "__main__":
    main()
