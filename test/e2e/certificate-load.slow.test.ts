/** Renewals under load: the effect on each kind of client, and the stored notifications. */
import { Agent, request } from 'node:https';
import type { TLSSocket } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { notification } from '../helpers/deliveries.ts';
import { hasPebble } from '../helpers/pebble.ts';
import { credentials } from '../helpers/spawned-receiver.ts';
import { isThorough } from '../helpers/thorough.ts';
import {
  openCertificateContext,
  savedSerial,
  shownSerial,
  storedAckIds,
} from './certificate-context.ts';

const auth = `${credentials.username}:${credentials.password}`;

/** Client behaviour: keep a connection, open one each time, or open one and offer the last session. */
const kinds = ['keeping', 'opening', 'resuming'] as const;
type Kind = (typeof kinds)[number];

/** Clients of each kind, and the delay between two requests of one: together 100 a second. */
const clientsOfAKind = 4;
const paceMs = 120;
const renewals = 2;
/** A running receiver checks the file every ten seconds. */
const pickUp = { timeout: 15_000, interval: 50 };

interface Load {
  answered: string[];
  failures: string[];
  /** Serial number of the certificate on the last new connection. */
  newest(): string;
  /** Connections of the clients that keep them. */
  kept: Set<TLSSocket>;
  /** Connections that resumed a session. */
  resumed(): number;
  stop(): Promise<void>;
}

function startLoad(port: number, ca: string): Load {
  const answered: string[] = [];
  const failures: string[] = [];
  const kept = new Set<TLSSocket>();
  let newest = '';
  let resumed = 0;
  let number = 0;
  let isStopped = false;
  const send = (agent: Agent, kind: Kind) =>
    new Promise<void>((resolve) => {
      number += 1;
      const ackId = `ack-${number}`;
      const target = { host: '127.0.0.1', servername: 'localhost', port, ca, agent, auth };
      const path = '/notifications/load';
      const sent = request({ ...target, path, method: 'POST' }, (response) => {
        if (response.statusCode === 200) answered.push(ackId);
        else failures.push(`${ackId}: ${response.statusCode}`);
        const socket = response.socket as TLSSocket;
        if (kind === 'keeping') kept.add(socket);
        if (kind === 'opening') newest = socket.getPeerCertificate().serialNumber;
        if (kind === 'resuming' && socket.isSessionReused()) resumed += 1;
        response.on('error', (error) => failures.push(`${ackId}: ${error.message}`));
        response.resume().on('close', resolve);
      });
      sent.on('error', (error) => {
        failures.push(`${ackId}: ${error.message}`);
        resolve();
      });
      sent.end(JSON.stringify(notification(number)));
    });
  const client = async (kind: Kind) => {
    const maxCachedSessions = kind === 'resuming' ? 1 : 0;
    const agent = new Agent({ keepAlive: kind === 'keeping', maxSockets: 1, maxCachedSessions });
    onTestFinished(() => agent.destroy());
    while (!isStopped) {
      const pause = new Promise((resolve) => setTimeout(resolve, paceMs));
      await Promise.all([send(agent, kind), pause]);
    }
  };
  const clients = Array.from({ length: clientsOfAKind }, () => kinds.map(client)).flat();
  const stop = async () => {
    isStopped = true;
    await Promise.all(clients);
  };
  return { answered, failures, newest: () => newest, kept, resumed: () => resumed, stop };
}

const challenges = isThorough ? (['tls-alpn-01', 'http-01'] as const) : (['tls-alpn-01'] as const);

describe.skipIf(!hasPebble)('renewals under load (needs pebble)', () => {
  it.each(challenges)(
    'by %s fail no request, close no connection, and are served soon',
    async (challenge) => {
      const context = await openCertificateContext({ challenge });
      const { root, dataDir } = context;
      const { port, log } = await context.start();
      await expect.poll(() => shownSerial(port, root), pickUp).not.toBeNull();
      // The served certificate is saved afterwards.
      await expect.poll(() => savedSerial(dataDir)).not.toBeNull();
      const load = startLoad(port, root);
      const began = performance.now();
      await expect.poll(load.newest, pickUp).toBe(savedSerial(dataDir));
      const seen = [load.newest()];
      for (let round = 0; round < renewals; round += 1) {
        const { code, out, err } = await context.command(['certificate', 'renew', '--force']).ended;
        expect(code, out + err).toBe(0);
        const renewed = savedSerial(dataDir) ?? '';
        expect(seen).not.toContain(renewed);
        await expect.poll(load.newest, pickUp).toBe(renewed);
        seen.push(renewed);
      }
      const before = load.answered.length;
      await expect.poll(() => load.answered.length, pickUp).toBeGreaterThan(before + 100);
      await load.stop();
      const seconds = (performance.now() - began) / 1000;

      expect(load.failures).toEqual([]);
      expect(load.answered.length / seconds).toBeGreaterThan(25);
      expect(load.kept.size).toBe(clientsOfAKind);
      // No client is given a session (decision 32), and no request fails because of that.
      expect(load.resumed()).toBe(0);
      expect([...load.kept].filter(({ destroyed }) => destroyed)).toEqual([]);
      expect(storedAckIds(dataDir).toSorted()).toEqual(load.answered.toSorted());
      expect(context.proxy.granted('finalize-order')).toBe(1 + renewals);
      expect(log()).not.toContain('"level":"error"');
    },
    60_000,
  );
});
