/** Ports for programs that must be told one before they listen. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Linux gives 32768 and above to those who ask for any port: a number from there may be taken at once. */
const first = 15_000;
const perWorker = 2_000;

/** Each test process has a range of its own, and begins anywhere in it. */
const worker = Number(process.env.VITEST_POOL_ID ?? 0) % 8;
let step = randomInt(perWorker);

/** A port of loopback on which nobody listens, and that nobody is given by chance. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < perWorker; tries += 1) {
    step = (step + 1) % perWorker;
    const port = first + worker * perWorker + step;
    if (await canListen(port)) return port;
  }
  throw new Error('No port is free.');
}

/** Several of them, each another one. */
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
