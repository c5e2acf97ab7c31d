/** A receiver in this process that obtains its certificate from Pebble, and clients of it. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { connect, type PeerCertificate } from 'node:tls';
import { expect, onTestFinished, vi } from 'vitest';
import { type RunningReceiver, serve } from '../../../src/cli/start/serve.ts';
import type { Config } from '../../../src/config/config.ts';
import type { Pebble } from '../../helpers/pebble.ts';
import { credentials } from '../../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import {
  type Clock,
  createClock,
  createLines,
  host,
  savedState,
  settingsFor,
} from './pebble-context.ts';

export interface ReceiverOptions {
  challenge?: 'http-01' | 'tls-alpn-01';
  publicHost?: string;
  dataDir?: string;
  clock?: Clock;
  stagingUrl?: string;
  sharedLog?: Config['sharedLog'];
  /** Port for http-01 challenges, by default the one that Pebble asks. */
  httpPort?: number;
}

/** Interval of certificate checks; short, so that tests need not wait. */
const checkEveryMs = 10;

export async function startReceiver(pebble: Pebble, options: ReceiverOptions = {}) {
  const { challenge = 'http-01', publicHost = host, clock = createClock() } = options;
  const { dataDir = join(temporaryDirectory(), 'data') } = options;
  const { lines, log } = createLines();
  const config = {
    listen: { host: '127.0.0.1', port: challenge === 'http-01' ? 0 : pebble.ports.tls },
    publicUrl: `https://${publicHost}`,
    dataDir,
    credentials: { source: 'variables' as const, pairs: [credentials] },
    diskReserveBytes: undefined,
    sharedLog: options.sharedLog ?? null,
    tls: {
      kind: 'acme' as const,
      ...settingsFor(pebble, { challenge, host: publicHost }),
      httpListen: { host: '127.0.0.1', port: options.httpPort ?? pebble.ports.http },
    },
    trustedProxies: [],
    console: null,
    index: false,
    logLevel: 'info' as const,
  };
  const io = { nowUs: clock.nowUs, newId: randomUUID, random: () => 0 };
  const stagingUrl = options.stagingUrl ?? null;
  const receiver = await serve(config, log, io, { certificateWatchMs: checkEveryMs, stagingUrl });
  const close = closeOnce(receiver);
  onTestFinished(close);
  const port = Number(new URL(receiver.url ?? '').port);
  return { port, dataDir, clock, lines, close, receiver };
}
export type Receiver = Awaited<ReturnType<typeof startReceiver>>;

function closeOnce(receiver: RunningReceiver): () => Promise<void> {
  let closing: Promise<void> | undefined;
  return () => {
    closing ??= receiver.close();
    return closing;
  };
}

/** Resolves when an order that began at the current time has succeeded and its files are written. */
export async function untilSaved({
  dataDir,
  clock,
}: Pick<Receiver, 'dataDir' | 'clock'>): Promise<void> {
  const check = () => {
    expect(savedState(dataDir).lastSuccessAtUs).toBe(clock.nowUs());
    expect(existsSync(join(dataDir, 'acme', 'order.json'))).toBe(false);
  };
  await vi.waitFor(check, { timeout: 20_000, interval: 10 });
}

/** Performs a TLS handshake without verification; rejects when it fails. */
export async function handshake(
  port: number,
  options: { protocols?: string[] } = {},
): Promise<{ certificate: PeerCertificate; protocol: string | false | null }> {
  const socket = connect({
    port,
    host: '127.0.0.1',
    servername: host,
    rejectUnauthorized: false,
    ALPNProtocols: options.protocols ?? ['http/1.1'],
  });
  try {
    await once(socket, 'secureConnect');
    return { certificate: socket.getPeerCertificate(), protocol: socket.alpnProtocol };
  } finally {
    socket.destroy();
  }
}

/** Returns the serial number of the served certificate; null while handshakes fail. */
export function servedSerial(port: number): Promise<string | null> {
  return handshake(port).then(
    ({ certificate }) => certificate.serialNumber,
    () => null,
  );
}

/** Creates a client that verifies the certificate in a full handshake per request; returns the status. */
export function createVerifyingClient(port: number, ca: string, name = host) {
  const agent = new Agent({ ca, maxCachedSessions: 0, ALPNProtocols: ['http/1.1'] });
  onTestFinished(() => agent.destroy());
  const auth = `${credentials.username}:${credentials.password}`;
  return (): Promise<number> =>
    new Promise((resolve, reject) => {
      const target = { host: '127.0.0.1', port, agent, auth, servername: name };
      const sent = request({ ...target, method: 'GET', path: '/notifications' }, (response) => {
        response.resume();
        response.on('end', () => resolve(response.statusCode ?? 0));
      });
      sent.on('error', reject).end();
    });
}
