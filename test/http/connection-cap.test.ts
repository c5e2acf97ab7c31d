/** The bound on connections: who has to go, and who never does. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { capConnections } from '../../src/http/connection-cap.ts';

interface CappedServer {
  /** Opens a connection, from an address of this machine, that is destroyed when the test is over. */
  open(localAddress?: string): Promise<Client>;
  /** Requests that wait for their answer, oldest first. */
  held: ServerResponse[];
}

interface Client {
  socket: Socket;
  received: () => string;
  closed: () => boolean;
}

/** A server that answers only when the test says so. */
async function startCapped(connectionsMax: number, protectionMs = 0): Promise<CappedServer> {
  const held: ServerResponse[] = [];
  const server = createServer((_request, response) => held.push(response));
  capConnections(server, { connectionsMax, protectionMs });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo; // A TCP server that listens has one.
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
  return { open, held };
}

async function openAll(server: CappedServer, count: number, address?: string): Promise<Client[]> {
  const clients: Client[] = [];
  for (let i = 0; i < count; i += 1) clients.push(await server.open(address));
  return clients;
}

const expectClosed = (clients: Client[], closed: boolean[]) =>
  expect.poll(() => clients.map((client) => client.closed())).toEqual(closed);

const request = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';
const answersIn = (client: Client) => client.received().split('HTTP/1.1 200').length - 1;

it('closes the connection that has been silent longest, and no other', async () => {
  const server = await startCapped(2);
  const clients = await openAll(server, 3);
  await expectClosed(clients, [true, false, false]);
  clients.push(await server.open());
  await expectClosed(clients, [true, true, false, false]);
});

it('counts a connection as young again after each answer', async () => {
  const server = await startCapped(2);
  const [first, second] = [await server.open(), await server.open()];
  await answered(server, first, 200);
  await server.open();
  await expect.poll(() => second.closed()).toBe(true);
  expect(first.closed()).toBe(false);
});

it('never closes a connection whose request is in hand; a newcomer has to go instead', async () => {
  const server = await startCapped(2);
  const [first, second] = [await server.open(), await server.open()];
  for (const client of [first, second]) client.socket.write(request);
  await expect.poll(() => server.held.length).toBe(2);
  const third = await server.open();
  await expect.poll(() => third.closed()).toBe(true);
  for (const response of server.held) response.end();
  await expect.poll(() => [answersIn(first), answersIn(second)]).toEqual([1, 1]);
});

it('never closes a connection whose second request is in hand, sent before the first answer', async () => {
  const server = await startCapped(2);
  const first = await server.open();
  first.socket.write(request + request);
  await expect.poll(() => server.held.length).toBe(2);
  server.held[0]?.end();
  await expect.poll(() => answersIn(first)).toBe(1);
  const second = await server.open();
  await server.open();
  await expect.poll(() => first.closed() || second.closed()).toBe(true);
  server.held[1]?.end();
  await expect.poll(() => answersIn(first)).toBe(2);
});

it('gives the place of a closed connection to the next', async () => {
  const server = await startCapped(1);
  for (let times = 0; times < 5; times += 1) {
    const client = await server.open();
    await answered(server, client, 200);
    client.socket.destroy();
    await expect.poll(() => client.closed()).toBe(true);
  }
});

// Only Linux answers on every address of 127.0.0.0/8 without being told.
it.runIf(process.platform === 'linux')(
  'closes the oldest of the address that holds most places, though others have been silent longer',
  async () => {
    const server = await startCapped(4);
    const other = await server.open('127.0.0.3');
    const crowd = await openAll(server, 6, '127.0.0.2');
    await expectClosed(crowd, [true, true, true, false, false, false]);
    expect(other.closed()).toBe(false);
  },
);

it('closes strangers before one whose last request succeeded', async () => {
  const server = await startCapped(2);
  const [friend, stranger] = [await server.open(), await server.open()];
  await answered(server, friend, 200);
  await answered(server, stranger, 401);
  await server.open();
  await expect.poll(() => stranger.closed()).toBe(true);
  await server.open();
  await server.open();
  expect(friend.closed()).toBe(false);
});

describe('while those who hold the places have just come', () => {
  const protectionMs = 60_000;

  it('a newcomer has to go', async () => {
    const server = await startCapped(2, protectionMs);
    await expectClosed(await openAll(server, 3), [false, false, true]);
  });

  it('one from an address that has succeeded before is let in', async () => {
    const server = await startCapped(2, protectionMs);
    const friend = await server.open();
    await answered(server, friend, 200);
    friend.socket.destroy();
    await expect.poll(() => friend.closed()).toBe(true);
    await expectClosed(await openAll(server, 3), [true, false, false]);
  });

  // Only Linux answers on every address of 127.0.0.0/8 without being told.
  it.runIf(process.platform === 'linux')('one that belongs to no crowd is let in', async () => {
    const server = await startCapped(4, protectionMs);
    const crowd = await openAll(server, 4, '127.0.0.2');
    const newcomer = await server.open('127.0.0.3');
    await expectClosed(crowd, [true, false, false, false]);
    expect(newcomer.closed()).toBe(false);
  });
});

/** Sends a request, which is answered with the status. */
async function answered(server: CappedServer, client: Client, status: number): Promise<void> {
  const before = server.held.length;
  client.socket.write(request);
  await expect.poll(() => server.held.length).toBe(before + 1);
  server.held[before]?.writeHead(status).end();
  await expect.poll(() => client.received()).toContain(`HTTP/1.1 ${status}`);
}

it('closes the one whose body has taken longest before it refuses a newcomer', async () => {
  const server = await startCapped(3, 60_000);
  const drips = [await server.open(), await server.open(), await server.open()];
  for (const { socket } of drips)
    socket.write('POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx');
  await expect.poll(() => server.held.length).toBe(3);
  const comes = async () => {
    const newcomer = await server.open();
    newcomer.socket.write(request);
    await expect.poll(() => server.held.length === 4 || newcomer.closed()).toBe(true);
    return server.held.length === 4;
  };
  // Refused while the bodies may still come as usual.
  expect(await comes()).toBe(false);
  await expect.poll(comes, { timeout: 10_000 }).toBe(true);
  expect(drips.map((client) => client.closed())).toEqual([true, false, false]);
}, 20_000);
