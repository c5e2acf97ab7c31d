/** Webhooks: the request and its signature, and the meaning of each answer, also odd or endless ones. */
import { rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { type CloudEvent, HTTP } from 'cloudevents';
import { Webhook } from 'standardwebhooks';
import { beforeAll, describe, expect, it } from 'vitest';
import { readTarget, sinkSchema } from '../../../../src/features/sinks/settings.ts';
import { createChain } from '../../../admin/endpoint/certificate-chain.ts';
import { collect } from '../../../helpers/deliveries.ts';
import { startTcpServer } from '../../../helpers/tcp-server.ts';
import { temporaryDirectory } from '../../../helpers/temporary-directory.ts';
import { answering, startHook } from '../hook-server.ts';
import { openSinkContext, openTestTarget } from '../sink-context.ts';
import { definition, webhookTarget } from '../sink-definition.ts';
import { sinkDocument } from '../sink-items.ts';

const secret = `whsec_${Buffer.from('a secret of the user, long enough').toString('base64')}`;
const soon = () => AbortSignal.timeout(5_000);
const deliverTo = (url: string) => openTestTarget(webhookTarget(url)).deliver(sinkDocument, soon());
let chain: Awaited<ReturnType<typeof createChain>>;
beforeAll(async () => {
  chain = await createChain();
});

describe('a webhook', () => {
  it('receives the whole notification once, signed by the scheme', async () => {
    const hook = await startHook();
    const { accept, start, items, store } = await openSinkContext();
    const value = { Id: 'product-1', Name: 'S2A.SAFE', ContentLength: 8_200_000_000 };
    await accept({ value, SubscriptionEvent: 'modified' }, { subscription: 'alps' });
    start(definition(webhookTarget(hook.url, { secret })));
    await expect.poll(() => hook.received.length).toBe(1);
    const [first] = hook.received;
    const headers = first?.headers as Record<string, string>;
    const verified = new Webhook(secret).verify(first?.body ?? '', headers);
    const [row] = await collect(store.find({}));
    const id = `n_1_${row?.receivedAtUs.toString(36)}`;
    expect(headers).toMatchObject({ 'webhook-id': id, 'content-type': 'application/json' });
    const receivedAt = expect.stringMatching(/^\d{4}-.*\.\d{6}Z$/);
    expect(verified).toEqual({
      type: 'product.modified',
      timestamp: receivedAt,
      data: {
        ...{ id, notificationId: id, replay: false, sink: 'sink', position: 1 },
        ...{ subscription: 'alps', event: 'modified', productId: 'product-1' },
        productName: 'S2A_MSIL2A_000001.SAFE',
        subscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
        ackId: 'ack-1',
        notificationDate: '2026-11-20T06:00:00.123000Z',
        ...{ receivedAt, source: 'push', value },
      },
    });
    await expect.poll(() => items('waiting')).toEqual([]);
    expect(await store.cursor('sink:sink')).toBe(1);
  });

  it('without a secret has no signature', async () => {
    const hook = await startHook();
    await deliverTo(hook.url);
    expect(hook.received[0]?.headers['webhook-signature']).toBeUndefined();
    expect(hook.received[0]?.headers['webhook-timestamp']).toMatch(/^\d{10}$/);
  });

  it('has a login and headers from files, which are read for each request', async () => {
    const hook = await startHook();
    const folder = temporaryDirectory();
    const write = (name: string, text: string) =>
      writeFileSync(join(folder, name), text, { mode: 0o600 });
    write('token', 'first-token\n');
    write('key', 'a key');
    const files = { bearerFile: 'token', headerFiles: { 'X-Api-Key': 'key' } };
    const sink = sinkSchema.parse({ webhook: hook.url, method: 'PUT', ...files });
    const problems: string[] = [];
    const { target } = readTarget(sink, { where: 'sinks.hook', folder, problems });
    const { deliver } = openTestTarget(target);
    expect(await deliver(sinkDocument, soon())).toEqual({ kind: 'acknowledged' });
    // Tokens expire, and a redirect could send them to another host.
    write('token', 'second-token');
    hook.change(answering(307, { location: 'https://elsewhere.example' }));
    expect(await deliver(sinkDocument, soon())).toMatchObject({ kind: 'misconfigured' });
    hook.change((_, response) => response.writeHead(403).end('unknown second-token for a key'));
    const refused = await deliver(sinkDocument, soon());
    expect(refused).toMatchObject({ kind: 'misconfigured' });
    expect(JSON.stringify(refused)).not.toMatch(/second-token|a key/);
    rmSync(join(folder, 'key'));
    expect(await deliver(sinkDocument, soon())).toMatchObject({ kind: 'misconfigured' });
    expect(problems).toEqual([expect.stringContaining('sinks.hook.headerFiles.X-Api-Key')]);
    const sent = hook.received.map(({ method, headers }) => [
      ...[method, headers.authorization, headers['x-api-key']],
    ]);
    const [first, ...others] = ['first', 'second', 'second'].map((one) => [
      ...['PUT', `Bearer ${one}-token`, 'a key'],
    ]);
    expect(sent).toEqual([first, ...others]);
  });

  it('is a CloudEvent in binary mode, whose attributes have any characters', async () => {
    const hook = await startHook();
    const message = { format: 'cloudevents', stacIds: 'earshot' } as const;
    const { deliver } = openTestTarget(webhookTarget(hook.url, { mode: 'binary' }), { message });
    const document = { ...sinkDocument, productId: 'p "1" 50% é€🛰' };
    await deliver(document, soon());
    const { headers = {}, body = '' } = hook.received[0] ?? {};
    const event = HTTP.toEvent({ headers, body }) as CloudEvent<string>;
    expect(event).toMatchObject({
      type: 'org.ogc.api.collection.item.create',
      ...{ specversion: '1.0', id: 'n_1_a', datacontenttype: 'application/geo+json' },
      collection: 'SENTINEL-2.untyped',
    });
    const data = JSON.parse(String(event.data));
    expect(data).toMatchObject({ type: 'Feature', id: document.productId });
    expect(decodeURIComponent(event.subject ?? '')).toBe(document.productId);
  });

  it.each([
    ['document', 'application/json'],
    ['stac', 'application/json'],
    ['cloudevents', 'application/cloudevents-batch+json'],
  ] as const)('sends a batch in the format %s as one signed array', async (format, type) => {
    const hook = await startHook();
    const message = { format, stacIds: 'earshot' } as const;
    const target = webhookTarget(hook.url, { secret, isBatch: true });
    const { deliver, deliverBatch } = openTestTarget(target, { message });
    const documents = [sinkDocument, { ...sinkDocument, id: 'n_2_b', productId: 'p-2' }];
    await deliverBatch(documents, soon());
    await deliverBatch(documents, soon());
    await deliver(sinkDocument, soon());
    const [first, second, alone] = hook.received;
    new Webhook(secret).verify(first?.body ?? '', first?.headers as Record<string, string>);
    expect(first?.headers['content-type']).toBe(type);
    expect(first?.headers['webhook-id']).toBe(second?.headers['webhook-id']);
    expect(JSON.parse(first?.body ?? '')).toHaveLength(2);
    expect(JSON.parse(alone?.body ?? '')).toEqual(JSON.parse(first?.body ?? '').slice(0, 1));
    if (format !== 'cloudevents') return;
    const events = HTTP.toEvent({ headers: first?.headers ?? {}, body: first?.body ?? '' });
    expect(events).toMatchObject([{ subject: 'p-1' }, { subject: 'p-2' }]);
  });

  it.each<[number[], object]>([
    [[200, 202, 204], { kind: 'acknowledged' }],
    [[400, 402, 409, 413, 422], { kind: 'refused' }],
    [[408, 425, 429, 500, 503, 599], { kind: 'unavailable', retryAfterMs: 120_000 }],
    [[307, 401, 403, 404, 405, 410], { kind: 'misconfigured' }],
  ])('that answers one of %j gives %j, without following a redirect', async (statuses, kind) => {
    const other = await startHook();
    for (const status of statuses) {
      const hook = await startHook({
        answer: (_hooked, response) => {
          const headers = { location: other.url, 'retry-after': '120' };
          response.writeHead(status, headers).end(status === 204 ? '' : 'no\u0007 thanks');
        },
      });
      const answer = await deliverTo(hook.url);
      expect(answer).toMatchObject(kind);
      const reason = 'reason' in answer ? answer.reason : '';
      if (status >= 400) expect(reason).toBe(`it answered ${status}: no\\u0007 thanks`);
    }
    expect(other.received).toEqual([]);
  });
});

/** Answers each connection with these bytes and closes it, unless `isKept` is set. */
async function startRaw(kind: 'http' | 'https', bytes: string, { isKept = false } = {}) {
  const answer = (socket: Socket) =>
    socket.once('data', () => (isKept ? socket.write(bytes) : socket.end(bytes)));
  const { port, open } = await startTcpServer(answer, kind === 'http' ? undefined : tls());
  const url = kind === 'http' ? `http://127.0.0.1:${port}/` : `https://localhost:${port}/`;
  return { target: openTrusting(url), open };
}

const tls = () => ({ key: chain.keyPem, cert: `${chain.leafPem}\n${chain.middlePem}` });

const openTrusting = (url: string) =>
  openTestTarget(webhookTarget(url, { ca: url.startsWith('https:') ? chain.rootPem : null }));

it('a webhook over HTTPS is used only with a trusted certificate', async () => {
  const hook = await startHook({ tls: tls() });
  const answer = await deliverTo(hook.url);
  const reason = expect.stringContaining('the certificate is not publicly trusted');
  expect(answer).toMatchObject({ kind: 'unavailable', reason });
  expect(hook.received).toEqual([]);
});

describe.each(['http', 'https'] as const)('a webhook over %s', (kind) => {
  const big = `Content-Length: 3000000\r\n\r\n${'x'.repeat(3_000_000)}`;
  const cut = 'Content-Length: 100\r\n\r\nno';

  it.each([
    ['200 OK', 'of three megabytes', big, false, { kind: 'acknowledged' }],
    ['202 OK', 'that is cut off', cut, false, { kind: 'acknowledged' }],
    ['200 OK', 'without an end', cut, true, { kind: 'acknowledged' }],
    ['400 No', 'of three megabytes', big, false, { kind: 'refused', reason: /400: xxx/ }],
    ['400 No', 'that is cut off', cut, false, { kind: 'refused', reason: /400: no$/ }],
    ['400 No', 'without an end', cut, true, { kind: 'refused', reason: /400: no$/ }],
  ])('that answers %s is understood, with a body %s', async (status, _body, rest, isKept, is) => {
    const { target, open } = await startRaw(kind, `HTTP/1.1 ${status}\r\n${rest}`, { isKept });
    const { reason, ...known }: { reason?: RegExp; kind: string } = is;
    expect(await target.deliver(sinkDocument, AbortSignal.timeout(isKept ? 300 : 5_000))).toEqual({
      ...known,
      ...(reason && { reason: expect.stringMatching(reason) }),
    });
    await target.close();
    if (isKept) await expect.poll(open).toBe(0);
  });

  it.each([
    ['a status that is none', 'HTTP/1.1 700 Odd\r\nContent-Length: 0\r\n\r\n', '700', false],
    ['another protocol', 'HTTP/1.1 101 No\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n', '', false],
    ['nothing', '', 'the connection was lost', false],
    ['no HTTP', 'hello\r\n\r\n', '', false],
    ['no answer in time', '', 'it did not answer in time', true],
  ])('that answers with %s has not acknowledged the item', async (_what, bytes, words, isKept) => {
    const { target, open } = await startRaw(kind, bytes, { isKept });
    const answer = await target.deliver(sinkDocument, AbortSignal.timeout(isKept ? 300 : 5_000));
    const reason = expect.stringContaining(words);
    expect(answer).toEqual({ kind: 'unavailable', reason, retryAfterMs: null });
    await expect.poll(open).toBe(0);
  });
});
