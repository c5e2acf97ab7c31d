/** Connecting to a NATS server that says nothing: no socket stays behind. */
import { expect, it } from 'vitest';
import { openNats } from '../../src/sinks/open-nats.ts';
import { startSilentServer } from '../helpers/silent-server.ts';
import { hasNats, startNats } from './nats-server.ts';

const options = (...ports: number[]) => ({
  servers: ports.map((port) => `127.0.0.1:${port}`),
  noRandomize: true,
  reconnect: false,
  timeout: 300,
});

it('closes the socket when the time is up', async () => {
  const silent = await startSilentServer();
  const { signal } = new AbortController();
  await expect(openNats(options(silent.port), { signal })).rejects.toThrow();
  expect(silent.connections()).toBe(1);
  await expect.poll(silent.open).toBe(0);
});

it('closes it at once when it is given up', async () => {
  const silent = await startSilentServer();
  const givingUp = new AbortController();
  const patient = { ...options(silent.port), timeout: 600_000 };
  const opening = openNats(patient, { signal: givingUp.signal });
  await expect.poll(silent.open).toBe(1);
  givingUp.abort();
  await expect(opening).rejects.toThrow();
  await expect.poll(silent.open).toBe(0);
});

it.skipIf(!hasNats)(
  'goes on to the next server, and keeps that one (needs nats-server)',
  async () => {
    const silent = await startSilentServer();
    const server = await startNats();
    const { signal } = new AbortController();
    const connection = await openNats(options(silent.port, server.port), { signal });
    await expect.poll(silent.open).toBe(0);
    expect(silent.connections()).toBe(1);
    await connection.flush();
    await connection.close();
  },
);
