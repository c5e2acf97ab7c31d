/** `earshot admin health`: the results that a container's health check gets. */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { writeCredentialsFile } from '../../../src/core/config/endpoint-credentials.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';
import type { Intake } from '../../../src/core/terms/ports.ts';
import { expectEnd, runCommand } from '../../helpers/fake-io.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { goodPair, startReceiver, startReceiverWith } from '../../receiver/running-receiver.ts';

const takes = (url: string) => ({
  code: 0,
  out: `The receiver accepts notifications (${url}).\n`,
  err: '',
});

function health(port: number, env: Record<string, string> = {}) {
  return runCommand('admin health', {
    env: {
      EARSHOT_LISTEN: `127.0.0.1:${port}`,
      EARSHOT_ENDPOINT_USERNAME: goodPair.username,
      EARSHOT_ENDPOINT_PASSWORD: goodPair.password,
      ...env,
    },
  });
}

async function portOf(server: Server, host = '127.0.0.1'): Promise<number> {
  onTestFinished(() => void server.close());
  server.listen(0, host);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function expectUnhealthy(ended: Awaited<ReturnType<typeof health>>, reason: RegExp): void {
  expect(ended).toMatchObject({ code: 1, out: '' });
  expect(ended.err).toMatch(
    /^earshot: The receiver does not accept notifications \(https?:\/\/[^ ]+\): /,
  );
  expect(ended.err).toMatch(reason);
  expect(ended.err.trim().split('\n')).toHaveLength(1);
  expect(ended.err).not.toContain(goodPair.password);
}

describe('earshot admin health', () => {
  it('exits with 0 and one line when the receiver, here on all addresses, accepts notifications', async () => {
    const { port } = await startReceiver();
    const ended = await health(port, { EARSHOT_LISTEN: `0.0.0.0:${port}` });
    expect(ended).toMatchObject(takes(`https://127.0.0.1:${port}`));
  });

  it('uses plain HTTP with EARSHOT_TLS=off, also over IPv6', async () => {
    let authorization: string | undefined;
    const server = createHttpServer((incoming, outgoing) => {
      authorization = incoming.headers.authorization;
      outgoing.writeHead(incoming.url === '/notifications' ? 200 : 404).end();
    });
    const port = await portOf(server, '::1');
    const ended = await health(port, { EARSHOT_TLS: 'off', EARSHOT_LISTEN: `[::]:${port}` });
    expect(ended).toMatchObject(takes(`http://[::1]:${port}`));
    expect(authorization).toBe(`Basic ${btoa(`${goodPair.username}:${goodPair.password}`)}`);
  });

  it('logs in with the newest credentials of the data directory', async () => {
    const { port } = await startReceiver();
    const dataDir = join(temporaryDirectory(), 'data');
    await writeCredentialsFile(dataDir, [
      { username: 'old', password: 'the old password' },
      goodPair,
    ]);
    const env = { EARSHOT_LISTEN: `127.0.0.1:${port}`, EARSHOT_DATA_DIR: dataDir };
    expect(await runCommand('admin health', { env })).toMatchObject({ code: 0 });
  });
});

describe('earshot admin health exits with 1 and the reason', () => {
  it('when nothing listens', async () => {
    const server = createTcpServer();
    const port = await portOf(server);
    server.close();
    expectUnhealthy(
      await health(port),
      /: the connection was refused \(ECONNREFUSED\)\. Start the receiver/,
    );
  });

  it('when the receiver has other credentials', async () => {
    const { port } = await startReceiver();
    const ended = await health(port, { EARSHOT_ENDPOINT_PASSWORD: 'another password' });
    expectUnhealthy(ended, /: the receiver has different credentials/);
  });

  it('when nothing can be stored', async () => {
    const intake: Intake = {
      accept: () => Promise.reject(new AppError('unavailable', 'The disk is full.')),
      checkWritable: () => Promise.reject(new AppError('unavailable', 'The disk is full.')),
    };
    const { port } = await startReceiverWith(intake);
    expectUnhealthy(
      await health(port),
      /: the receiver cannot store notifications\. Check the log/,
    );
  });

  it('when there is no answer within five seconds', async () => {
    const port = await portOf(createTcpServer());
    expectUnhealthy(await health(port), /: the receiver did not answer within 5 s\./);
  });
});

it('earshot admin health exits with 2 and every problem of the configuration', async () => {
  const dataDir = temporaryDirectory();
  const env = { EARSHOT_LISTEN: '127.0.0.1:0', EARSHOT_DATA_DIR: dataDir, EARSHOT_LISTN: 'off' };
  const { err } = await expectEnd(runCommand('admin health', { env }), 2);
  for (const part of ['Did you mean EARSHOT_LISTEN?', 'No endpoint credentials', 'has port 0'])
    expect(err).toContain(part);
});
