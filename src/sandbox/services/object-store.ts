/** Object store with the S3 API: ListObjectsV2, HeadObject and GetObject, with verified signatures. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import { bucket, type Contents } from '../products/content.ts';
import { demoKeys } from '../settings.ts';
import type { DownloadServices, Refusals } from './downloads.ts';
import { type ServiceAnswer, writeAnswer } from './service-answer.ts';

const keysMax = 1_000;

/** Creates the app, for paths that start with the bucket. Objects disappear with their product. */
export function createObjectStoreApp(
  contents: Contents,
  { downloads, ledger }: Pick<DownloadServices, 'downloads' | 'ledger'>,
) {
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.get('*', async ({ req, env }) => {
    const problem = signatureProblem(env.incoming);
    if (problem !== null) return writeAnswer(failure(403, problem), env.outgoing);
    const { pathname, searchParams } = new URL(req.url);
    const key = decodeURIComponent(pathname.slice(`/${bucket}/`.length));
    const objects = contents
      .objects(key === '' ? (searchParams.get('prefix') ?? '') : key)
      .filter(({ productId }) => ledger.find('Products', productId) !== undefined);
    if (key === '') return writeAnswer(listAnswer(searchParams, objects), env.outgoing);
    const object = objects.find((one) => one.key === key);
    if (object === undefined) return writeAnswer(failure(404, 'NoSuchKey'), env.outgoing);
    const headers = { ETag: object.etag, 'Last-Modified': new Date(modifiedAt).toUTCString() };
    return downloads.send(object, headers, refusals, env);
  });
  return app;
}

/** A fixed date, because clients require one. */
const modifiedAt = '2026-01-01T00:00:00.000Z';

const refusals: Refusals = {
  rateLimited: failure(503, 'SlowDown'),
  serverError: failure(500, 'InternalError'),
  offline: failure(403, 'InvalidObjectState'),
};

type Objects = ReturnType<Contents['objects']>;

function listAnswer(query: URLSearchParams, objects: Objects): ServiceAnswer {
  // Groups of keys are not imitated.
  const isKnown = query.get('list-type') === '2' && !query.get('delimiter');
  if (!isKnown) return failure(501, 'NotImplemented');
  const after = query.get('continuation-token') ?? '';
  const max = Math.min(keysMax, Number(query.get('max-keys') ?? keysMax));
  const found = objects.filter(({ key }) => key > after);
  const page = found.slice(0, max);
  const entries = page.map(
    ({ key, size, etag }) =>
      `<Contents><Key>${key}</Key><LastModified>${modifiedAt}</LastModified><ETag>${etag}</ETag><Size>${size}</Size></Contents>`,
  );
  const next = `<NextContinuationToken>${page.at(-1)?.key}</NextContinuationToken>`;
  const isTruncated = found.length > page.length;
  const head = `<Name>${bucket}</Name><KeyCount>${page.length}</KeyCount><IsTruncated>${isTruncated}</IsTruncated>`;
  const body = [head, isTruncated ? next : '', ...entries].join('');
  return xml(200, `<ListBucketResult>${body}</ListBucketResult>`);
}

function failure(status: number, code: string): ServiceAnswer {
  return xml(status, `<Error><Code>${code}</Code><Message>${code}</Message></Error>`);
}

function xml(status: number, body: string): ServiceAnswer {
  return { status, body, headers: { 'Content-Type': 'application/xml' } };
}

const authorization =
  /^AWS4-HMAC-SHA256 Credential=([^/]+)\/((\d{8})\/([^/]+)\/s3\/aws4_request), ?SignedHeaders=([\w;-]+), ?Signature=([\da-f]{64})$/;

/**
 * Returns the error code for a request without a valid Signature Version 4; null if it is valid. Its date is not
 * compared with the clock, which can be advanced.
 */
function signatureProblem({ method, url = '', headers }: IncomingMessage): string | null {
  const found = authorization.exec(headers.authorization ?? '');
  if (found === null) return 'AccessDenied';
  const [, access, scope = '', day = '', region = '', names = '', signature = ''] = found;
  if (access !== demoKeys.access) return 'InvalidAccessKeyId';
  const header = (name: string) => String(headers[name] ?? '').trim();
  const [date, hash] = [header('x-amz-date'), header('x-amz-content-sha256')];
  // These requests have no body.
  if (hash !== sha256('') && hash !== 'UNSIGNED-PAYLOAD') return 'XAmzContentSHA256Mismatch';
  const signed = names.split(';');
  const isComplete = ['host', 'x-amz-content-sha256', 'x-amz-date'].every((one) =>
    signed.includes(one),
  );
  if (!date.startsWith(day) || !isComplete) return 'AccessDenied';
  const [path = '', query = ''] = url.split('?');
  const pairs = [...new URLSearchParams(query)].map((pair) => pair.map(encoded).join('='));
  const lines = signed.map((name) => `${name}:${header(name).replaceAll(/ +/g, ' ')}\n`).join('');
  const request = [method, path, pairs.toSorted().join('&'), lines, names, hash].join('\n');
  const text = ['AWS4-HMAC-SHA256', date, scope, sha256(request)].join('\n');
  const secret = Buffer.from(`AWS4${demoKeys.secret}`);
  const key = [day, region, 's3', 'aws4_request'].reduce<Buffer>(hmac, secret);
  const isValid = timingSafeEqual(hmac(key, text), Buffer.from(signature, 'hex'));
  return isValid ? null : 'SignatureDoesNotMatch';
}

function encoded(text: string): string {
  const code = (one: string) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`;
  return encodeURIComponent(text).replaceAll(/[!'()*]/g, code);
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}
