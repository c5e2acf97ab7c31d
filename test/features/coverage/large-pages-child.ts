/**
 * Reads pages of a hostile catalogue: queries and a queue. Run with a small heap. Prints what was read from each kind of
 * page, and the longest time without a turn of the event loop, in CPU time of this thread.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { threadCpuUsage } from 'node:process';
import { createCatalogueListing } from '../../../src/admin/listing.ts';
import { createPullQueue } from '../../../src/admin/queue-client.ts';
import { createOutboundClient } from '../../../src/core/http/outbound-client.ts';
import { isAppError } from '../../../src/core/terms/app-error.ts';

const mebibyte = 2 ** 20;
const date = '2025-06-01T00:00:00.000Z';
const fields = (number: number) =>
  `"Id":"p${number}","PublicationDate":"${date}","AckId":"a${number}"`;
const filled = (size: number, unit: string) => Buffer.alloc(size, unit);
const nested = (open: string, close: string) => {
  const levels = Math.floor((7.9 * mebibyte) / (open.length + close.length));
  const [before, after] = [open, close].map((part) => filled(levels * part.length, part));
  return Buffer.concat([before ?? Buffer.of(), Buffer.from('1'), after ?? Buffer.of()]);
};
const quoted = (mebibytes: number) =>
  Buffer.concat([Buffer.from('"'), filled(mebibytes * mebibyte, 'n'), Buffer.from('"')]);
const usual = `{${fields(1)},"Footprint":"${'x'.repeat(5_000)}"}`;

/** Values of a member of the second of three records. */
const values: Record<string, Buffer> = {
  arrays: nested('[', ']'),
  objects: nested('{"":', '}'),
  members: Buffer.concat([Buffer.from('{'), filled(7 * mebibyte, '"a":1,'), Buffer.from('"b":1}')]),
  string: quoted(7),
  // Larger than a page: only read when it is requested alone.
  record: quoted(30),
};

/** JSON array of records with the same date. */
function recordsOf(kind: string): Buffer {
  if (kind === 'many') {
    const count = Math.floor((63 * mebibyte) / usual.length);
    return Buffer.concat([
      Buffer.from(`[${usual}`),
      filled((count - 1) * (usual.length + 1), `,${usual}`),
      Buffer.from(']'),
    ]);
  }
  const value = values[kind] ?? Buffer.from('null');
  return Buffer.concat([
    Buffer.from(`[{${fields(1)}},{"Name":`),
    value,
    Buffer.from(`,${fields(2)}},{${fields(3)}}]`),
  ]);
}

let kind = '';
let hostile: Uint8Array = Buffer.alloc(0);
let requests = 0;
let isSent = false;
const server = createServer(({ url = '' }, response) => {
  requests += 1;
  const options = new URL(url, 'http://localhost').searchParams;
  // A page that is too large is repeated until it is requested with fewer records.
  const isTooLarge = kind === 'record' && Number(options.get('$top')) > 2;
  const good = options.has('$skip') ? `[{${fields(3)}}]` : `[{${fields(1)}},{${fields(3)}}]`;
  const records = isSent && !isTooLarge ? Buffer.from(good) : hostile;
  isSent ||= !isTooLarge;
  send(
    response,
    url.includes('/Read') ? [records] : [Buffer.from('{"value":'), records, Buffer.from('}')],
  );
});

function send(response: ServerResponse, parts: readonly Uint8Array[]) {
  response.writeHead(200, { 'Content-Type': 'application/json' });
  for (const part of parts) response.write(part);
  response.end();
}

/** Longest CPU time of this thread between two turns of the event loop, in milliseconds. */
let longestMs = 0;
let lastUs = 0;
const cpuUs = () => {
  const { user, system } = threadCpuUsage();
  return user + system;
};
function turn() {
  const us = cpuUs();
  longestMs = Math.max(longestMs, (us - lastUs) / 1_000);
  lastUs = us;
  setImmediate(turn).unref();
}

turn();
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const catalogueUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const own = { fetch, random: () => 0.5 };
const tokens = { get: async () => 'token', refused: async () => undefined };
const client = createOutboundClient({
  service: 'the catalogue',
  variable: 'X',
  retries: 0,
  ...own,
});
const queue = createPullQueue({ catalogueUrl, tokens, send: client });
const signal = new AbortController().signal;

const listing = createCatalogueListing({
  ...{ catalogueUrl, requestsPerMinute: 1e9, ...own },
  ...{ nowUs: () => 0, pause: async () => undefined },
});

async function list() {
  const fromUs = Date.parse(date) * 1_000;
  const query = { event: 'created', filter: '', fromUs, toUs: fromUs + 3_600_000_000 } as const;
  const events = [];
  for await (const page of listing.list(query, signal)) events.push(...page.events);
  const refused = events.filter(({ record }) => record === null).map(({ productId }) => productId);
  return { events: events.map(({ productId }) => productId), refused };
}

async function read() {
  for (const entriesMax of [20, 5, 1]) {
    const page = await queue.read({ id: 'q', entriesMax }).catch((error: unknown) => error);
    if (!isAppError(page)) {
      const { entries } = page as Awaited<ReturnType<typeof queue.read>>;
      return entries.map(({ ackId, bytes }) => [ackId, bytes.length]);
    }
    if (page.facts.isTooLarge !== true) throw page;
  }
  return null;
}

const results: Record<string, unknown> = {};
for (const each of ['many', ...Object.keys(values)]) {
  kind = each;
  hostile = recordsOf(kind);
  for (const [name, work] of Object.entries({ list, read })) {
    requests = 0;
    isSent = false;
    // The generation of the page does not count.
    lastUs = cpuUs();
    longestMs = 0;
    const result = await work().catch((error: unknown) => String(error));
    results[`${name} ${kind}`] = { result, requests, longestMs: Math.round(longestMs) };
  }
}
process.stdout.write(JSON.stringify(results));
// The thread must not keep this process alive.
server.close();
server.closeAllConnections();
