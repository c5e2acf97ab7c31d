/** Downloads from the sandbox: over HTTP with fetch, and from the object store with boto3. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { ServiceSettingsInput } from '../../src/sandbox/settings.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import { installed } from '../helpers/thorough.ts';
import { startTestSandbox, unknownId } from './set-up.ts';

const contentBytes = 100_003;
const hasBoto = installed('/usr/lib/python3/dist-packages/boto3/__init__.py');
const md5 = (bytes: Uint8Array) => createHash('md5').update(bytes).digest('hex');

/** Starts a sandbox with two products, and a client that has logged in. */
async function startDownloads(service: ServiceSettingsInput = {}, options = {}) {
  const { sandbox, login, call } = await startTestSandbox({ contentBytes, service, ...options });
  await sandbox.publishNow(2);
  const [id = '', other = ''] = sandbox.events().map(({ productId }) => productId);
  const record = (await call('GET', `/Products(${id})`)).json;
  const { access_token: token } = (await login()).json;
  const get = (headers: Record<string, string> = {}, productId = id) =>
    fetch(`${sandbox.catalogueUrl}/odata/v1/Products(${productId})/$value`, {
      headers: { Authorization: `Bearer ${token}`, ...headers },
    });
  const bytes = async (headers?: Record<string, string>) =>
    new Uint8Array(await (await get(headers)).arrayBuffer());
  return { sandbox, id, other, record, get, bytes };
}

describe('a download over HTTP', () => {
  it('has the size and the MD5 of the record, whole and in ranges', async () => {
    const { record, get, bytes } = await startDownloads();
    const whole = await bytes();
    expect([whole.length, record.ContentLength]).toEqual([contentBytes, contentBytes]);
    const [sum] = record.Checksum;
    expect(sum).toMatchObject({ Algorithm: 'MD5', Value: md5(whole) });
    for (const [range, start, end] of [
      ['bytes=0-9', 0, 10],
      ['bytes=70001-70033', 70_001, 70_034],
      ['bytes=99990-', 99_990, contentBytes],
    ] as const) {
      const answer = await get({ Range: range });
      const length = String(end - start);
      const ranges = `bytes ${start}-${end - 1}/${contentBytes}`;
      expect([answer.status, answer.headers.get('content-range')]).toEqual([206, ranges]);
      expect(answer.headers.get('content-length')).toBe(length);
      expect(Buffer.from(await answer.arrayBuffer())).toEqual(Buffer.from(whole.slice(start, end)));
    }
    const beyond = await get({ Range: `bytes=${contentBytes}-` });
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([
      416,
      `bytes */${contentBytes}`,
    ]);
  });

  it('needs a valid token and a product that is not deleted', async () => {
    const { sandbox, get } = await startDownloads();
    const refusal = async (answer: Response) => [answer.status, Object(await answer.json()).code];
    expect(await refusal(await get({ Authorization: '' }))).toEqual([401, 'DAT-ZIP-604']);
    expect((await get({}, unknownId)).status).toBe(404);
    while (sandbox.events().every(({ event }) => event !== 'deleted')) {
      await sandbox.publishNow(1, 'deleted');
    }
    const deleted = sandbox.events().find(({ event }) => event === 'deleted');
    expect((await get({}, deleted?.productId)).status).toBe(404);
    sandbox.clock.advance(600_000);
    expect(await refusal(await get())).toEqual([401, 'DAT-ZIP-109']);
    expect(sandbox.downloads().requests).toBe(0);
  });

  it('above the limit of concurrent downloads is refused until one ends', async () => {
    const limits = { downloadsMax: 1, downloadBytesPerSecond: 1_000 };
    const { sandbox, get } = await startDownloads(limits);
    const first = await get();
    const second = await get();
    expect([second.status, await second.json()]).toEqual([
      429,
      { code: 'DAT-ZIP-100', message: 'Max session number 1 exceeded.' },
    ]);
    await first.body?.cancel();
    await expect.poll(() => sandbox.downloads().inFlight).toBe(0);
    const third = await get();
    expect(third.status).toBe(200);
    await third.body?.cancel();
    expect(sandbox.downloads()).toMatchObject({ requests: 3, inFlightMax: 1 });
    expect(sandbox.downloads().bytes).toBeLessThan(contentBytes);
  });

  it('has each fault as often as it is set', async () => {
    const { sandbox, record, get, bytes } = await startDownloads({ offlineStatus: 422 });
    const [{ Value: sum }] = record.Checksum;
    const { service } = sandbox;
    for (const [fault, status] of [
      ['rateLimited', 429],
      ['serverError', 500],
      ['offline', 422],
    ] as const) {
      service.change({ nextDownloads: { [fault]: 1 } });
      expect((await get()).status).toBe(status);
    }
    service.change({ nextDownloads: { connectionCut: 1, wrongByte: 1 } });
    await expect(bytes()).rejects.toThrow();
    const wrong = await bytes();
    expect([wrong.length, md5(wrong) === sum]).toEqual([contentBytes, false]);
    service.change({ downloadRanges: false });
    expect(md5(await bytes({ Range: 'bytes=5-9' }))).toBe(sum);
    expect(sandbox.downloads().bytes).toBe(2 * contentBytes + Math.ceil(contentBytes / 2));
    service.change({ unavailable: true });
    expect((await get()).status).toBe(503);
  });
});

it('without contents there are no downloads, and the other fields of the records are the same', async () => {
  const filled = await startDownloads();
  const without = await startDownloads({}, { contentBytes: undefined });
  expect((await without.get()).status).toBe(404);
  expect((await fetch(`${without.sandbox.catalogueUrl}/eodata`)).status).toBe(404);
  const own = { ContentLength: 0, Checksum: [], Locations: [] };
  expect({ ...filled.record, ...own }).toEqual({ ...without.record, ...own });
  expect(without.record.ContentLength).toBeGreaterThan(contentBytes);
});

/** Prints a JSON object; `code` returns the error code of a call. */
const script = `
import hashlib, json, sys
import boto3
from botocore.exceptions import ClientError

url, prefix, file = sys.argv[1:]
def client(access="sandbox-access", secret="sandbox-secret"):
    return boto3.client("s3", endpoint_url=url, region_name="default", aws_access_key_id=access,
        aws_secret_access_key=secret)
def code(call, **options):
    try:
        return call(Bucket="eodata", **options) and None
    except ClientError as error:
        return error.response["Error"]["Code"]
def changed(event, change):
    other = client()
    other.meta.events.register(f"before-send.s3.{event}", change)
    return other
def other_prefix(request, **_):
    request.url = request.url.replace("prefix=", "prefix=x")
def other_range(request, **_):
    request.headers["Range"] = "bytes=1-2"
s3 = client()
pages = s3.get_paginator("list_objects_v2").paginate(Bucket="eodata", Prefix=prefix, PaginationConfig={"PageSize": 2})
found = [one for page in pages for one in page["Contents"]]
key = found[0]["Key"]
bodies = [s3.get_object(Bucket="eodata", Key=one["Key"])["Body"].read() for one in found]
s3.download_file("eodata", key, file)
print(json.dumps({
    "keys": [one["Key"] for one in found],
    "sizes": [one["Size"] for one in found],
    "tags": [one["ETag"].strip('"') for one in found],
    "sums": [hashlib.md5(body).hexdigest() for body in bodies],
    "whole": hashlib.md5(b"".join(bodies)).hexdigest(),
    "range": s3.get_object(Bucket="eodata", Key=key, Range="bytes=10-19")["Body"].read() == bodies[0][10:20],
    "file": open(file, "rb").read() == bodies[0],
    "all": len(s3.list_objects_v2(Bucket="eodata")["Contents"]),
    "codes": [
        code(client(secret="wrong").list_objects_v2),
        code(client(access="wrong").list_objects_v2),
        code(changed("ListObjectsV2", other_prefix).list_objects_v2, Prefix=prefix),
        code(changed("GetObject", other_range).get_object, Key=key, Range="bytes=3-4"),
        code(s3.get_object, Key=prefix),
        code(s3.get_object, Key=key, Range="bytes=999999-"),
        code(s3.list_objects_v2, Delimiter="/"),
    ],
}))`;

it.skipIf(!hasBoto)(
  'boto3 lists and reads the objects of a product, with a valid signature only (needs python3-boto3)',
  async () => {
    const { sandbox, record } = await startDownloads();
    const prefix = record.S3Path.replace('/eodata/', '');
    const argv = ['-c', script, sandbox.catalogueUrl, prefix, join(temporaryDirectory(), 'file')];
    const { stdout } = await promisify(execFile)('/usr/bin/python3', argv, { env: {} });
    const { keys, sizes, tags, sums, ...found } = JSON.parse(stdout);
    const names = ['manifest.safe', 'measurement/data.dat', 'preview/quick-look.png'];
    expect(keys).toEqual(names.map((name) => `${prefix}/${name}`));
    expect(sizes.reduce((sum: number, size: number) => sum + size)).toBe(contentBytes);
    expect([tags[0], tags[2]]).toEqual([sums[0], sums[2]]);
    // Like that of an object that was uploaded in parts.
    expect(tags[1]).toMatch(/^[\da-f]{32}-2$/);
    expect(found).toEqual({
      ...{ whole: record.Checksum[0].Value, range: true, file: true, all: 6 },
      codes: [
        ...['SignatureDoesNotMatch', 'InvalidAccessKeyId', 'SignatureDoesNotMatch'],
        ...['SignatureDoesNotMatch', 'NoSuchKey', '416', 'NotImplemented'],
      ],
    });
    expect((await fetch(`${sandbox.catalogueUrl}/eodata?list-type=2`)).status).toBe(403);
  },
);
