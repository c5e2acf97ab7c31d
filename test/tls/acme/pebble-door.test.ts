/** Who answers challenges on the one port that there is: the receiver, a command beside it, or neither. */
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import { connect, createServer as createTcpServer } from 'node:net';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  type ChallengeDoor,
  createChallengeDoor,
  createSharedDoor,
} from '../../../src/tls/acme/challenge-door.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { hasPebble, type Pebble, startPebble } from '../../helpers/pebble.ts';
import { createClock, minuteUs, openProgram, watchRequests } from './pebble-world.ts';
import { servedSerial, startReceiver, untilSaved } from './receiver-world.ts';

const soon = { timeout: 10_000, interval: 10 };
const host = '127.0.0.1';

function doorOf(pebble: Pick<Pebble, 'ports'>): ChallengeDoor {
  const door = createSharedDoor({ host, port: pebble.ports.http }, { fetch, newId: randomUUID });
  onTestFinished(() => door.close());
  return door;
}

/** A program of its own data directory, or the one named, that opens this door when it orders. */
function openBeside(pebble: Pebble, door: ChallengeDoor, dataDir?: string) {
  const openDoor: ChallengeDoor['open'] = (challenges) => door.open(challenges);
  return openProgram(pebble, { openDoor, ...(dataDir === undefined ? {} : { dataDir }) });
}

async function takePort(port: number, answer: RequestListener): Promise<void> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    socket.on('connect', () => socket.destroy());
  });
}

describe.skipIf(!hasPebble)('a command that orders (needs pebble)', () => {
  it('beside a receiver lets that one answer, and leaves its port open', async () => {
    const pebble = await startPebble();
    const receiver = await startReceiver(pebble);
    await untilSaved(receiver);
    const first = await servedSerial(receiver.port);
    const door = doorOf(pebble);
    const { look, path } = openBeside(pebble, door, receiver.dataDir);
    const renewed = async () => expect((await look('anyway')).outcome).toBe('renewed');
    // The receiver may hold the lock at this moment, to ask for advice.
    await vi.waitFor(renewed, soon);
    await door.close();
    expect(await isOpen(pebble.ports.http)).toBe(true);
    await vi.waitFor(async () => expect(await servedSerial(receiver.port)).not.toBe(first), soon);
    expect(existsSync(path('challenges'))).toBe(false);
  });

  it('without a receiver answers itself, and closes the port again', async () => {
    const pebble = await startPebble();
    const door = doorOf(pebble);
    expect((await openBeside(pebble, door).look()).outcome).toBe('renewed');
    expect(await isOpen(pebble.ports.http)).toBe(true);
    await door.close();
    expect(await isOpen(pebble.ports.http)).toBe(false);
  });

  it('beside a receiver of another data directory says that the port is taken', async () => {
    const pebble = await startPebble();
    const requests = watchRequests(pebble);
    await untilSaved(await startReceiver(pebble));
    const orders = requests.orders();
    const stranger = openBeside(pebble, doorOf(pebble));
    expect(await stranger.fail()).toContain('Set EARSHOT_ACME_HTTP_LISTEN to another address');
    expect(requests.orders()).toBe(orders);
  });
});

describe.skipIf(!hasPebble)('a receiver whose port for challenges is taken (needs pebble)', () => {
  it('gets its certificate as soon as the port is free', async () => {
    const pebble = await startPebble();
    const other = createChallengeDoor({ host, port: pebble.ports.http });
    await other.open(openProgram(pebble).world.challenges);
    const { port, clock, lines } = await startReceiver(pebble);
    const told = () => lines.filter(({ reason }) => reason?.startsWith('Cannot listen on'));
    await vi.waitFor(() => expect(told().length).toBeGreaterThanOrEqual(2), soon);
    await other.close();
    clock.advance(minuteUs);
    await vi.waitFor(async () => expect(await servedSerial(port)).not.toBeNull(), soon);
  });

  it('says so once, also beside another failure, however often it looks', async () => {
    const pebble = await startPebble();
    await pebble.setAddress('127.0.0.2');
    const failed = openProgram(pebble);
    await failed.fail();
    const { dataDir } = failed;
    // The listener of the program above has the port.
    const real = createClock(failed.clock.nowUs());
    let looks = 0;
    const nowUs = () => {
      looks += 1;
      return real.nowUs();
    };
    const { lines, port } = await startReceiver(pebble, { dataDir, clock: { ...real, nowUs } });
    await vi.waitFor(() => expect(looks).toBeGreaterThan(200), soon);
    expect(await servedSerial(port)).toBeNull();
    const reasons = lines.flatMap(({ reason }) => reason ?? []);
    expect(reasons.toSorted()).toEqual([
      expect.stringContaining('Cannot listen on'),
      expect.stringContaining('Port 80 of'),
    ]);
  });
});

describe('a shared door', () => {
  /** Answers that are not those of a receiver on this data directory. */
  const strangers: [string, RequestListener][] = [
    ['does not know it', (_, outgoing) => void outgoing.writeHead(404).end()],
    ['says something', (_, outgoing) => void outgoing.end('It works!')],
    ['echoes', ({ url = '' }, outgoing) => void outgoing.end(url.split('/').at(-1))],
    [
      'sends it elsewhere',
      ({ url }, outgoing) =>
        void outgoing.writeHead(302, { location: `http://${host}${url}` }).end(),
    ],
  ];

  it.each(strangers)('says that the port is taken by one that %s', async (_, answer) => {
    const port = await freePort();
    await takePort(port, answer);
    const { world, dataDir } = openProgram(standIn(port));
    const door = doorOf(standIn(port));
    await expect(door.open(world.challenges)).rejects.toMatchObject({
      code: 'configuration',
      text: expect.stringContaining(`Cannot listen on ${host}:${port}: another program uses`),
    });
    expect(readdirSync(dataDir, { recursive: true }).map(String).filter(isKnock)).toEqual([]);
  });

  it('does not wait long for one that is silent', async () => {
    const server = createTcpServer();
    await new Promise<void>((resolve) => server.listen(0, host, resolve));
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const { world } = openProgram(standIn(port));
    const opened = doorOf(standIn(port)).open(world.challenges);
    await expect(opened).rejects.toMatchObject({ code: 'configuration' });
  });
});

const isKnock = (name: string) => name.includes('knock-');

/** As much of an authority as a door needs. */
function standIn(http: number): Pebble {
  const ports = { acme: 0, management: 0, dns: 0, dnsManagement: 0, http, tls: 0 };
  const never = () => Promise.reject(new Error('There is no authority.'));
  const directoryUrl = 'https://localhost:1/dir';
  return {
    directoryUrl,
    ports,
    caPem: '',
    readRoot: never,
    setAddress: never,
    stop: never,
    start: never,
  };
}
