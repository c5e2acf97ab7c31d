/** The bound on connections: who has to go, and who never does. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { capConnections } from '../../src/http/connection-cap.ts';

interface CappedServer {
  /** Opens a connection that is destroyed when the test is over. */
  open(): Promise<Client>;
  /** Requests that wait for their answer, oldest first. */
  held: ServerResponse[];
}

interface Client {
  socket: Socket;
  received: () => string;
  closed: () => boolean;
}

/** A server that answers only when the test says so. */
async function startCapped(connectionsMax: number): Promise<CappedServer> {
  const held: ServerResponse[] = [];
  const server = createServer((_request, response) => held.push(response));
  capConnections(server, connectionsMax);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo; // A TCP server that listens has one.
  const open = async () => {
    const accepted = once(server, 'connection');
    const socket = connect(port, '127.0.0.1');
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

const request = 'GET / HTTP/1.1\r\nHost: h\r\n\r\n';
const answersIn = (client: Client) => client.received().split('HTTP/1.1 200').length - 1;

it('closes the connection that has been silent longest, and no other', async () => {
  const server = await startCapped(2);
  const clients = [await server.open(), await server.open(), await server.open()];
  await expect.poll(() => clients.map((client) => client.closed())).toEqual([true, false, false]);
  clients.push(await server.open());
  await expect
    .poll(() => clients.map((client) => client.closed()))
    .toEqual([true, true, false, false]);
});

it('counts a connection as young again after each answer', async () => {
  const server = await startCapped(2);
  const [first, second] = [await server.open(), await server.open()];
  first.socket.write(request);
  await expect.poll(() => server.held.length).toBe(1);
  server.held[0]?.end();
  await expect.poll(() => answersIn(first)).toBe(1);
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
  for (let i = 0; i < 5; i += 1) {
    const client = await server.open();
    client.socket.write(request);
    await expect.poll(() => server.held.length).toBe(i + 1);
    server.held[i]?.end();
    await expect.poll(() => answersIn(client)).toBe(1);
    client.socket.destroy();
    await expect.poll(() => client.closed()).toBe(true);
  }
});
