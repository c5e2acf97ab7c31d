/** Clients that ask for more than they take: bounds that hold before anybody has logged in. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type ListenerOptions, startListener } from '../../src/http/listener.ts';

interface Started {
  port: number;
  /** Paths that the app was asked for. */
  asked: string[];
}

async function start(options: Partial<ListenerOptions> = {}): Promise<Started> {
  const asked: string[] = [];
  const listener = await startListener({
    fetch: (request) => {
      asked.push(new URL(request.url).pathname);
      return new Response('here');
    },
    listen: { host: '127.0.0.1', port: 0 },
    listenVariable: 'EARSHOT_LISTEN',
    ...options,
  });
  onTestFinished(() => listener.close(0));
  return { port: listener.address.port, asked };
}

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

/** However it goes. */
function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => void socket.once('close', () => resolve()));
}

/** All that comes until the connection is closed. */
async function allOf(socket: Socket): Promise<string> {
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  await closed(socket);
  return text;
}

const get = 'GET /x HTTP/1.1\r\nHost: h\r\n\r\n';
const statusesIn = (text: string) => [...text.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, one]) => one);

describe('requests sent in one packet', () => {
  it('are parsed as far as they may wait, and the connection is closed', async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const asked: string[] = [];
    const { port } = await start({
      fetch: async (request) => {
        asked.push(request.url);
        await held;
        return new Response('late');
      },
    });
    const socket = await open(port);
    socket.write(get.repeat(2_000));
    await allOf(socket);
    release();
    expect(asked).toHaveLength(20);
  });

  it('are answered one after the other when they are few', async () => {
    const { port } = await start();
    const socket = await open(port);
    socket.write(get.repeat(19) + get.replace('Host', 'Connection: close\r\nHost'));
    expect(statusesIn(await allOf(socket))).toEqual(Array(20).fill('200'));
  });
});

describe('an answer that nobody takes', () => {
  // More than the kernel keeps for a connection.
  const large = 'x'.repeat(32 * 2 ** 20);

  it('is dropped in time, and the connection with it', async () => {
    const { port } = await start({
      fetch: () => new Response(large),
      limits: { answerTimeoutMs: 300 },
    });
    const socket = await open(port);
    socket.pause().write(get);
    // Whoever does not read sees no end, but a blank line between requests bounces off once we have left.
    const timer = setInterval(() => socket.write('\r\n'), 50);
    onTestFinished(() => clearInterval(timer));
    await closed(socket);
  });

  it('makes room for a newcomer when all places are taken', async () => {
    const { port } = await start({
      fetch: (request) => new Response(request.url.endsWith('/x') ? large : 'here'),
      limits: { connectionsMax: 3 },
    });
    for (let i = 0; i < 3; i += 1) (await open(port)).pause().write(get);
    const newcomer = await open(port);
    newcomer.write('GET /y HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n');
    expect(statusesIn(await allOf(newcomer))).toEqual(['200']);
  });
});

describe('what cannot be read', () => {
  const chunked = 'POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n';

  it('is answered once, without a word about us', async () => {
    const { port, asked } = await start();
    const socket = await open(port);
    socket.write('GET / HTTP/9.9\r\nHost: h\r\n\r\n');
    const text = await allOf(socket);
    expect(text).toBe('HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n');
    expect(asked).toEqual([]);
  });

  it('gets no second answer where the request has been answered early', async () => {
    const { port } = await start();
    const socket = await open(port);
    socket.write(chunked);
    await once(socket, 'readable');
    socket.write('no chunk\r\n\r\n');
    expect(statusesIn(await allOf(socket))).toEqual(['200']);
  });

  it('does not take away the answer to the request before it', async () => {
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const { port } = await start({
      fetch: async () => {
        await held;
        return new Response('late');
      },
    });
    const socket = await open(port);
    socket.write(`${get}nonsense\r\n\r\n`);
    const answer = allOf(socket);
    release();
    expect(statusesIn(await answer)).toEqual(['200']);
  });

  it('is told to have been too slow, or too long', async () => {
    const { port } = await start({ limits: { headersTimeoutMs: 300, requestTimeoutMs: 300 } });
    const slow = await open(port);
    slow.write('GET / HTTP/1.1\r\n');
    expect(statusesIn(await allOf(slow))).toEqual(['408']);
    const long = await open(port);
    long.write(`GET / HTTP/1.1\r\nHost: h\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
    expect(statusesIn(await allOf(long))).toEqual(['431']);
  });
});

it('every answer says what browsers must not do with it, and of what it is made of nothing', async () => {
  const { port } = await start();
  const answer = await fetch(`http://127.0.0.1:${port}/x`);
  expect(Object.fromEntries(answer.headers)).toEqual({
    'cache-control': 'no-store',
    connection: 'keep-alive',
    'content-length': '4',
    'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    'content-type': 'text/plain; charset=UTF-8',
    date: expect.any(String),
    'keep-alive': 'timeout=60',
    'x-content-type-options': 'nosniff',
  });
});

it.each(['content-security-policy', 'Content-Security-Policy'])(
  'an answer with a %s of its own has that one alone',
  async (name) => {
    const { port } = await start({
      fetch: () => new Response('here', { headers: { [name]: "default-src 'self'" } }),
    });
    const answer = await fetch(`http://127.0.0.1:${port}/x`);
    expect(answer.headers.get(name)).toBe("default-src 'self'");
    expect(answer.headers.get('cache-control')).toBe('no-store');
  },
);
