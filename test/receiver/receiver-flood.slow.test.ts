/** Thousands of malformed requests to the program itself, with valid ones in between. */

import { once } from 'node:events';
import { expect, it } from 'vitest';
import { bodyBytesMax } from '../../src/core/terms/limits.ts';
import { createRandom, type Random } from '../../src/sandbox/clock.ts';
import { collect } from '../helpers/deliveries.ts';
import { times } from '../helpers/thorough.ts';
import {
  answersTo,
  basic,
  type Connection,
  exchange,
  goodNotification,
  openConnection,
  openTcp,
  type RequestParts,
  refusedShapes,
  requestBytes,
} from './raw-client.ts';
import type { Endpoint } from './running-receiver.ts';
import { type StartedProgram, startProgram } from './started-program.ts';

const sendersCount = 16;

/** Number of malformed requests after the warm-up. */
const count = times(6_000, 10_000);

const malformedBetweenGood = 20;

/**
 * Measured: 21 to 35 MB, with slowing growth, and about 20 MB more on a machine so slow that half a
 * minute passes and background jobs begin. A leak of 12 kB per request would exceed it.
 */
const growthBytesMax = 70 * 2 ** 20;

/**
 * With a large heap, Node collects closed connections so late that their memory looks like a leak.
 * A small heap shows the memory in use, and ends the process when that is too much.
 */
const eagerCollection = ['--max-semi-space-size=2', '--max-old-space-size=64'];

interface Flood {
  malformed: number;
  goodAckIds: string[];
  quarantined: number;
  kinds: Set<string>;
}

/** Sends the given number of malformed requests from several senders; all valid ones in between get 200. */
async function flood(program: StartedProgram, malformed: number, seed: number): Promise<Flood> {
  const sum: Flood = { malformed: 0, goodAckIds: [], quarantined: 0, kinds: new Set() };
  const sender = async (_: unknown, index: number) => {
    const traffic = createMalformedTraffic(program, seed + index);
    let connection = await openConnection(program);
    while (sum.malformed < malformed) {
      sum.malformed += 1;
      await traffic.send();
      if (sum.malformed % malformedBetweenGood > 0) continue;
      const { ackId, body } = goodNotification();
      // The receiver may have closed the connection idle longest; a sender opens another.
      if (connection.socket.destroyed) connection = await openConnection(program);
      connection.send(requestBytes({ body }));
      expect(await connection.answer()).toMatchObject({ status: 200, body: '{"status":"stored"}' });
      sum.goodAckIds.push(ackId);
    }
    sum.quarantined += traffic.quarantined();
    for (const kind of Object.keys(traffic.sent)) sum.kinds.add(kind);
  };
  await Promise.all(Array.from({ length: sendersCount }, sender));
  return sum;
}

it(`survives ${2_000 + count} malformed requests: valid ones are stored once each, memory stays flat`, {
  timeout: 60_000,
}, async () => {
  const program = await startProgram(eagerCollection);
  const warmUp = await flood(program, 2_000, 1);
  const warmBytes = await program.residentBytes();
  const main = await flood(program, count, 1_001);
  const floodedBytes = await program.residentBytes();
  expect(main.malformed).toBeGreaterThanOrEqual(count);
  expect(main.kinds.size).toBe(13);

  const last = goodNotification();
  const answer = await exchange(program, { body: last.body });
  expect(answer).toMatchObject({ status: 200, body: '{"status":"stored"}' });

  const store = program.openStore();
  const sent = [...warmUp.goodAckIds, ...main.goodAckIds, last.ackId];
  expect(sent.length).toBeGreaterThan(count / 20);
  const rows = await collect(store.find({}));
  expect(rows.map((row) => row.ackId).toSorted()).toEqual(sent.toSorted());
  expect(await store.counts()).toEqual({
    notifications: sent.length,
    duplicates: 0,
    quarantined: warmUp.quarantined + main.quarantined,
  });
  expect(program.stderr()).not.toMatch(/"level":"error"|fault of the program|unhandled/i);
  if (warmBytes === null || floodedBytes === null) return;
  expect(floodedBytes - warmBytes).toBeLessThan(growthBytesMax);
});

interface MalformedTraffic {
  /** Sends one malformed request; throws when the response is not an allowed one. */
  send(): Promise<void>;
  /** The number sent of each kind, and the expected number of quarantined bodies. */
  sent: Record<string, number>;
  quarantined(): number;
}

const shapes = Object.values(refusedShapes);

const loginRefused = [401, 429];

/** The traffic of one sender; requests that leave the connection usable share a connection. */
function createMalformedTraffic(endpoint: Endpoint, seed: number): MalformedTraffic {
  const random = createRandom(seed);
  const sent: Record<string, number> = {};
  let quarantined = 0;
  let kept: Connection | undefined;

  async function onKeptConnection(parts: RequestParts, allowed: readonly number[]) {
    if (kept === undefined || kept.socket.destroyed) kept = await openConnection(endpoint);
    kept.send(requestBytes(parts));
    const { status } = await kept.answer();
    expectOneOf(allowed, status);
    if (status === 400) quarantined += 1;
  }

  async function onOwnConnection(bytes: string | Uint8Array, allowed: readonly number[]) {
    const connection = await openConnection(endpoint);
    connection.socket.end(bytes);
    const answer = await connection.answer().catch(() => null);
    connection.socket.destroy();
    if (answer !== null) expectOneOf(allowed, answer.status);
  }

  const kinds: Record<string, () => Promise<unknown>> = {
    wrongCredentials: () =>
      onKeptConnection({ ...good(), authorization: basic('x', random.hex(9)) }, loginRefused),
    fuzzedAuthorization: () =>
      onKeptConnection({ ...good(), authorization: fuzzedHeader(random) }, loginRefused),
    brokenJson: () => onKeptConnection({ body: brokenJson(random) }, [400]),
    randomBody: () => onKeptConnection({ body: randomBytes(random, 300) }, [400]),
    otherPath: () => onKeptConnection({ ...good(), path: `/${random.hex(20)}` }, [404]),
    otherMethod: () => onKeptConnection({ ...good(), method: 'DELETE' }, [405]),
    brokenRequest: async () => {
      const shape = shapes[random.integer(0, shapes.length - 1)];
      for (const { status } of await answersTo(endpoint, shape?.(good().body) ?? '')) {
        expectOneOf([...loginRefused, 400, 404, 405, 408, 413, 431], status);
      }
    },
    noiseInTls: () => onOwnConnection(randomBytes(random, 2_000), [400, 431]),
    noiseWithoutTls: async () => {
      const socket = await openTcp(endpoint);
      socket.end(randomBytes(random, 2_000)).resume();
      await once(socket, 'close');
    },
    headerFlood: () => onOwnConnection(requestBytes({ headers: headerFlood() }), [431]),
    huge: () => onKeptConnection({ body: 'x'.repeat(bodyBytesMax + 1) }, [413]),
    brokenOff: async () => {
      const connection = await openConnection(endpoint);
      const request = requestBytes(good());
      connection.send(request.subarray(0, random.integer(1, request.length - 1)));
      if (random.chance(0.5)) connection.socket.end();
      connection.socket.destroy();
    },
    slow: async () => {
      // Stays open until the receiver, or the end of the test, closes it.
      const connection = await openConnection(endpoint);
      connection.send(requestBytes(good()).subarray(0, random.integer(1, 100)));
    },
  };
  const commons = ['wrongCredentials', 'fuzzedAuthorization', 'brokenJson', 'randomBody'];
  const rare = ['huge', 'slow'];
  const others = Object.keys(kinds).filter((name) => ![...commons, ...rare].includes(name));

  return {
    sent,
    quarantined: () => quarantined,
    send: async () => {
      const group = random.chance(0.02) ? rare : random.chance(0.6) ? commons : others;
      const name = group[random.integer(0, group.length - 1)] ?? '';
      sent[name] = (sent[name] ?? 0) + 1;
      await kinds[name]?.();
    },
  };
}

const good = () => ({ body: goodNotification().body });

function expectOneOf(allowed: readonly number[], status: number): void {
  if (!allowed.includes(status)) throw new Error(`answered ${status}, not ${allowed.join(' or ')}`);
}

function randomBytes(random: Random, bytesMax: number): Buffer {
  const length = random.integer(1, bytesMax);
  // Never starts with an opening brace: the bytes must not form a notification by chance.
  return Buffer.from([0xff, ...Array.from({ length }, () => random.integer(0, 255))]);
}

/** A truncated notification, which can never be complete. */
function brokenJson(random: Random): string {
  const { body } = goodNotification();
  return body.slice(0, random.integer(0, body.length - 1));
}

/** Bytes that are allowed in a header, half of them with a scheme in front. */
function fuzzedHeader(random: Random): string {
  const length = random.integer(0, random.chance(0.1) ? 9_000 : 80);
  const letters = Array.from({ length }, () => random.integer(0x21, 0xff));
  const text = Buffer.from(letters.filter((letter) => letter !== 0x7f)).toString('latin1');
  return `${random.chance(0.5) ? 'Basic ' : ''}${text}`;
}

function headerFlood(): Record<string, string> {
  return Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`X-${i}`, 'y']));
}
