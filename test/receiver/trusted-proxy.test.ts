/** Failed logins through a proxy: they count for the client, as far as the proxy is trusted. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Agent, request } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createAnswerReader } from './answer-reader.ts';
import { goodNotification } from './good-notification.ts';
import { basic, type RequestParts, requestBytes } from './raw-client.ts';
import { type Endpoint, startReceiver } from './running-receiver.ts';

const proxyAddress = '127.0.0.9';

/** A proxy as nginx is set up: it adds the address it was asked from to what the client sent. */
async function startProxy({ port, caPem }: Endpoint): Promise<number> {
  const agent = new Agent({ keepAlive: true, ca: caPem, localAddress: proxyAddress });
  const server = createServer((incoming, outgoing) => {
    const { remoteAddress, remotePort } = incoming.socket;
    const claimed = incoming.headers['x-forwarded-for'];
    const forwarded = [
      ...(claimed === undefined ? [] : [claimed]),
      `${remoteAddress}:${remotePort}`,
    ];
    const headers = { ...incoming.headers, 'x-forwarded-for': forwarded.join(', ') };
    const { method, url: path } = incoming;
    const target = { host: '127.0.0.1', port, agent, method, path, headers };
    const onward = request(target, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    agent.destroy();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

/** The statuses of so many requests on one connection from one address. */
async function statuses(port: number, from: string, requests: RequestParts[]): Promise<number[]> {
  const socket = connect({ host: '127.0.0.1', port, localAddress: from });
  onTestFinished(() => void socket.destroy());
  const reader = createAnswerReader();
  const answers: number[] = [];
  for (const parts of requests) {
    socket.write(requestBytes(parts));
    let answer = reader.take({ head: false, ended: false });
    while (answer === null) {
      const [bytes] = await once(socket, 'data');
      reader.add(bytes);
      answer = reader.take({ head: false, ended: false });
    }
    answers.push(answer.status);
  }
  return answers;
}

/** Guesses, each with another forged address. */
function guesses(count: number): RequestParts[] {
  return Array.from({ length: count }, (_, i) => ({
    method: 'GET',
    authorization: basic('x', `${i}`),
    headers: { 'X-Forwarded-For': `198.51.100.${i % 250}` },
  }));
}

const good = (): RequestParts => ({ body: goodNotification().body });

// Only Linux answers on every address of 127.0.0.0/8 without being told.
describe.runIf(process.platform === 'linux')('failed logins through a proxy', () => {
  it('count for each client alone when the proxy is trusted, whatever the client claims', async () => {
    const receiver = await startReceiver(undefined, { trustedProxies: [proxyAddress] });
    const port = await startProxy(receiver);
    const guessed = await statuses(port, '127.0.0.2', guesses(103));
    expect(new Set(guessed.slice(0, 100))).toEqual(new Set([401]));
    expect(guessed.slice(100)).toEqual([429, 429, 429]);
    expect(await statuses(port, '127.0.0.3', guesses(1))).toEqual([401]);
    expect(await statuses(port, '127.0.0.2', [good()])).toEqual([200]);
    const addresses = receiver.log
      .filter(({ message }) => message === 'wrong or no credentials')
      .map(({ fields }) => ('address' in fields ? fields.address : null));
    expect(addresses).toEqual([...Array(10).fill('127.0.0.2'), '127.0.0.3']);
  });

  it('count for the proxy when it is not trusted, and right ones pass all the same', async () => {
    const receiver = await startReceiver(undefined, { trustedProxies: ['127.0.0.8'] });
    const port = await startProxy(receiver);
    await statuses(port, '127.0.0.2', guesses(100));
    expect(await statuses(port, '127.0.0.3', guesses(1))).toEqual([429]);
    expect(await statuses(port, '127.0.0.3', [good()])).toEqual([200]);
    expect(receiver.log[0]?.fields).toMatchObject({ address: proxyAddress });
  });
});
