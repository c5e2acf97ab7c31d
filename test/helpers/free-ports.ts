/** Ports for programs that need a port number before they listen. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Linux assigns 32768 and above as ephemeral ports: a number from there may be taken at any time.
 */
const first = 15_000;
const perWorker = 2_000;

/** Each test process has its own range, and starts at a random place in it. */
const worker = Number(process.env.VITEST_POOL_ID ?? 0) % 8;
let step = randomInt(perWorker);

/** Returns a loopback port on which nobody listens and which the system does not assign. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < perWorker; tries += 1) {
    step = (step + 1) % perWorker;
    const port = first + worker * perWorker + step;
    if (await canListen(port)) return port;
  }
  throw new Error('No port is free.');
}

/** Returns several different ports. */
export async function freePorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) ports.push(await freePort());
  return ports;
}

async function canListen(port: number): Promise<boolean> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch {
    return false;
  }
  server.close();
  await once(server, 'close');
  return true;
}
