/** The limit on connections: which ones are closed, and which never are. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { capConnections } from '../../../src/core/http/connection-cap.ts';
import { listening } from '../../helpers/tcp-server.ts';

interface CappedServer {
  /** Opens a connection from an address of this machine; destroyed when the test has finished. */
  open(localAddress?: string): Promise<Client>;
  /** Requests that wait for their response, oldest first. */
  pending: ServerResponse[];
}

interface Client {
  socket: Socket;
  received: () => string;
  closed: () => boolean;
}

/** A server whose responses the test sends. */
async function startCapped(connectionsMax: number, protectionMs = 0): Promise<CappedServer> {
  const pending: ServerResponse[] = [];
  const server = createServer((_request, response) => pending.push(response));
  capConnections(server, { connectionsMax, protectionMs });
  const port = await listening(server);
  const open = async (localAddress = '127.0.0.1') => {
    const accepted = once(server, 'connection');
    const socket = connect({ port, host: '127.0.0.1', localAddress });
    onTestFinished(() => void socket.destroy());
    let text = '';
    let closed = false;
    socket.on('data', (bytes) => {
      text += bytes.toString();
    });
    socket
      .on('error', () => {})
      .on('close', () => {
        closed = true;
      });
    await accepted;
    return { socket, received: () => text, closed: () => closed };
  };
  return { open, pending };
}

async function openAll(server: CappedServer, count: number, address?: string): Promise<Client[]> {
  const clients: Client[] = [];
  for (let i = 0; i < count; i += 1) clients.push(await server.open(address));
  return clients;
}

const expectClosed = (clients: Client[], closed: boolean[]) =>
  expect.poll(() => clients.map((client) => client.closed())).toEqual(closed);

const request = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';
const responsesIn = (client: Client) => client.received().split('HTTP/1.1 200').length - 1;

it('never closes a connection whose request is in flight; a newcomer is closed instead', async () => {
  const server = await startCapped(2);
  const [first, second] = [await server.open(), await server.open()];
  for (const client of [first, second]) client.socket.write(request);
  await expect.poll(() => server.pending.length).toBe(2);
  const third = await server.open();
  await expect.poll(() => third.closed()).toBe(true);
  for (const response of server.pending) response.end();
  await expect.poll(() => [responsesIn(first), responsesIn(second)]).toEqual([1, 1]);
});

// Only Linux accepts every address of 127.0.0.0/8 without configuration.
it.runIf(process.platform === 'linux')(
  'closes the oldest connection of the address with the most, though others have been idle longer',
  async () => {
    const server = await startCapped(4);
    const other = await server.open('127.0.0.3');
    const crowd = await openAll(server, 6, '127.0.0.2');
    await expectClosed(crowd, [true, true, true, false, false, false]);
    expect(other.closed()).toBe(false);
  },
);

it('closes unknown clients before one whose last request succeeded', async () => {
  const server = await startCapped(2);
  const [knownClient, unknownClient] = [await server.open(), await server.open()];
  await answered(server, knownClient, 200);
  await answered(server, unknownClient, 401);
  await server.open();
  await expect.poll(() => unknownClient.closed()).toBe(true);
  await server.open();
  await server.open();
  expect(knownClient.closed()).toBe(false);
});

describe('while all open connections are new', () => {
  const protectionMs = 60_000;

  it('a newcomer is closed', async () => {
    const server = await startCapped(2, protectionMs);
    await expectClosed(await openAll(server, 3), [false, false, true]);
  });

  it('a newcomer from an address with an earlier success is accepted', async () => {
    const server = await startCapped(2, protectionMs);
    const knownClient = await server.open();
    await answered(server, knownClient, 200);
    knownClient.socket.destroy();
    await expect.poll(() => knownClient.closed()).toBe(true);
    await expectClosed(await openAll(server, 3), [true, false, false]);
  });

  // Only Linux accepts every address of 127.0.0.0/8 without configuration.
  it.runIf(process.platform === 'linux')(
    'a newcomer from an address with few connections is accepted',
    async () => {
      const server = await startCapped(4, protectionMs);
      const crowd = await openAll(server, 4, '127.0.0.2');
      const newcomer = await server.open('127.0.0.3');
      await expectClosed(crowd, [true, false, false, false]);
      expect(newcomer.closed()).toBe(false);
    },
  );
});

/** Sends a request, which gets the given status. */
async function answered(server: CappedServer, client: Client, status: number): Promise<void> {
  const before = server.pending.length;
  client.socket.write(request);
  await expect.poll(() => server.pending.length).toBe(before + 1);
  server.pending[before]?.writeHead(status).end();
  await expect.poll(() => client.received()).toContain(`HTTP/1.1 ${status}`);
}

it('closes the connection with the slowest body before it refuses a newcomer', async () => {
  const server = await startCapped(3, 60_000);
  const slowClients = [await server.open(), await server.open(), await server.open()];
  for (const { socket } of slowClients)
    socket.write('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx');
  await expect.poll(() => server.pending.length).toBe(3);
  const newcomerIsServed = async () => {
    const newcomer = await server.open();
    newcomer.socket.write(request);
    await expect.poll(() => server.pending.length === 4 || newcomer.closed()).toBe(true);
    return server.pending.length === 4;
  };
  // Newcomers are refused while the bodies may still arrive normally.
  expect(await newcomerIsServed()).toBe(false);
  await expect.poll(newcomerIsServed, { timeout: 10_000 }).toBe(true);
  expect(slowClients.map((client) => client.closed())).toEqual([true, false, false]);
}, 20_000);
