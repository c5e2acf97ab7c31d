/**
 * Odd, truncated or endless answers of a webhook: the status decides, and nothing hangs or fails.
 */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { SinkDocument } from '../../../src/features/sinks/document.ts';
import type { OpenContext } from '../../../src/features/sinks/target.ts';
import { webhook } from '../../../src/features/sinks/targets/webhook.ts';
import { createChain } from '../../admin/endpoint/certificate-chain.ts';
import { startHook } from './hook-server.ts';

const item = { id: 'n_1_x', event: 'created', receivedAt: '2026-05-02' } as SinkDocument;
const context = { fetch, nowUs: () => Date.now() * 1000 } as OpenContext;
let chain: Awaited<ReturnType<typeof createChain>>;
beforeAll(async () => {
  chain = await createChain();
});

/** Answers each connection with these bytes and closes it, unless `isKept` is set. */
async function startRaw(kind: 'http' | 'https', bytes: string, { isKept = false } = {}) {
  const sockets = new Set<Socket>();
  const answer = (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => sockets.delete(socket));
    socket.once('data', () => (isKept ? socket.write(bytes) : socket.end(bytes)));
  };
  const tls = { key: chain.keyPem, cert: `${chain.leafPem}\n${chain.middlePem}` };
  const server = kind === 'http' ? createServer(answer) : createTlsServer(tls, answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  const port = address !== null && typeof address === 'object' ? address.port : 0;
  const url = kind === 'http' ? `http://127.0.0.1:${port}/` : `https://localhost:${port}/`;
  const ca = kind === 'http' ? null : chain.rootPem;
  const sink = { kind: 'webhook', url, secret: null, ca } as const;
  const target = webhook.open(sink, context);
  return { target, open: () => sockets.size };
}

const soon = () => AbortSignal.timeout(5_000);
const big = 'x'.repeat(3_000_000);

describe.each(['http', 'https'] as const)('a webhook over %s', (kind) => {
  it.each([
    ['of three megabytes', `HTTP/1.1 200 OK\r\nContent-Length: ${big.length}\r\n\r\n${big}`, false],
    ['that is cut off', 'HTTP/1.1 202 OK\r\nContent-Length: 100\r\n\r\nab', false],
    ['without an end', 'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab', true],
  ])('that answers 2xx acknowledges the item, with a body %s', async (_what, bytes, isKept) => {
    const { target, open } = await startRaw(kind, bytes, { isKept });
    expect(await target.deliver(item, soon())).toEqual({ kind: 'acknowledged' });
    await target.close();
    await expect.poll(open).toBe(0);
  });

  it.each([
    ['of three megabytes', `${big.length}\r\n\r\n${big}`, expect.stringContaining('400: xxx')],
    ['that is cut off', '100\r\n\r\nno', 'it answered 400: no'],
  ])('that answers 400 refuses the item, with a body %s', async (_what, rest, reason) => {
    const { target } = await startRaw(kind, `HTTP/1.1 400 No\r\nContent-Length: ${rest}`);
    expect(await target.deliver(item, soon())).toEqual({ kind: 'refused', reason });
  });

  it('that answers 400 refuses the item, even with an endless body', async () => {
    const bytes = 'HTTP/1.1 400 No\r\nContent-Length: 100\r\n\r\nno';
    const { target } = await startRaw(kind, bytes, { isKept: true });
    const answer = await target.deliver(item, AbortSignal.timeout(300));
    expect(answer).toEqual({ kind: 'refused', reason: 'it answered 400: no' });
  });

  it.each([
    ['a status that is none', 'HTTP/1.1 700 Odd\r\nContent-Length: 0\r\n\r\n', '700'],
    ['another protocol', 'HTTP/1.1 101 No\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n', ''],
    ['nothing', '', 'the connection was lost'],
    ['no HTTP', 'hello\r\n\r\n', ''],
  ])('that answers with %s has not acknowledged the item', async (_what, bytes, words) => {
    const { target } = await startRaw(kind, bytes);
    const answer = await target.deliver(item, soon());
    const reason = expect.stringContaining(words);
    expect(answer).toEqual({ kind: 'unavailable', reason, retryAfterMs: null });
  });

  it('that does not answer is aborted at the timeout', async () => {
    const { target, open } = await startRaw(kind, '', { isKept: true });
    const answer = await target.deliver(item, AbortSignal.timeout(300));
    const reason = 'it did not answer in time';
    expect(answer).toEqual({ kind: 'unavailable', reason, retryAfterMs: null });
    await expect.poll(open).toBe(0);
  });

  it('with short answers receives later items on the same connection', async () => {
    const tls = { key: chain.keyPem, cert: `${chain.leafPem}\n${chain.middlePem}` };
    const ports = new Set<number | undefined>();
    const hook = await startHook({
      ...(kind === 'https' ? { tls } : {}),
      answer: (_hooked, response) => {
        ports.add(response.req.socket.remotePort);
        response.writeHead(200).end('thank you');
      },
    });
    const ca = kind === 'https' ? chain.rootPem : null;
    const sink = { kind: 'webhook', url: hook.url, secret: null, ca } as const;
    const target = webhook.open(sink, context);
    for (let i = 0; i < 20; i += 1) {
      expect(await target.deliver(item, soon())).toEqual({ kind: 'acknowledged' });
    }
    await target.close();
    expect(ports.size).toBeLessThan(10);
  });
});
