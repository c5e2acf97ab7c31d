/** Connecting to a NATS server that does not answer: no socket stays open. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { openNats } from '../../../../src/features/sinks/targets/nats-connection.ts';
import { startSilentServer } from '../../../helpers/silent-server.ts';
import { hasNats, startNats } from '../nats-server.ts';

const options = (...ports: number[]) => ({
  servers: ports.map((port) => `127.0.0.1:${port}`),
  noRandomize: true,
  reconnect: false,
  timeout: 300,
});

it('closes the socket at the timeout', async () => {
  const silent = await startSilentServer();
  const { signal } = new AbortController();
  await expect(openNats(options(silent.port), { signal })).rejects.toThrow();
  expect(silent.connections()).toBe(1);
  await expect.poll(silent.open).toBe(0);
});

it('closes the socket at once when it is aborted', async () => {
  const silent = await startSilentServer();
  const givingUp = new AbortController();
  const patient = { ...options(silent.port), timeout: 600_000 };
  const opening = openNats(patient, { signal: givingUp.signal });
  await expect.poll(silent.open).toBe(1);
  givingUp.abort(new Error('the program ends'));
  await expect(opening).rejects.toThrow('the program ends');
  await expect.poll(silent.open).toBe(0);
});

it('leaves other sockets alone, aborted or not', async () => {
  const silent = await startSilentServer();
  const givingUp = new AbortController();
  const { promise: failed, reject: fail } = Promise.withResolvers<never>();
  const own = Promise.withResolvers<Socket>();
  const connectNats = () => {
    own.resolve(connect(silent.port, '127.0.0.1'));
    return failed;
  };
  const opening = openNats(options(silent.port), { signal: givingUp.signal, connectNats });
  const destroy = vi.spyOn(await own.promise, 'destroy');
  givingUp.abort(new Error('the program ends'));
  expect(destroy).toHaveBeenCalledOnce();
  const foreign = connect(silent.port, '127.0.0.1');
  onTestFinished(() => void foreign.destroy());
  await once(foreign, 'connect');
  expect(destroy).toHaveBeenCalledOnce();
  fail(new Error('undefined error'));
  await expect(opening).rejects.toThrow('the program ends');
  expect(foreign.destroyed).toBe(false);
});

it.skipIf(!hasNats)(
  'continues with the next server, and stays connected (needs nats-server)',
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
