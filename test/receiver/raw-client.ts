/** A client that sends exact bytes over TLS, and reads the response. */

import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from 'node:tls';
import { expect, onTestFinished } from 'vitest';
import { collect, notification } from '../helpers/deliveries.ts';
import { AnswerReader } from '../helpers/http-answers.ts';
import { type Endpoint, goodPair, type TestReceiver } from './running-receiver.ts';

export interface Connection {
  socket: TLSSocket;
  send(bytes: string | Uint8Array): void;
  /** Returns the next response; rejects when the connection ends before it is complete. */
  answer(options?: { head?: boolean }): Promise<Answer>;
  /** Resolves when the connection is closed, for any reason. */
  closed: Promise<void>;
}

export interface RequestParts {
  method?: string;
  path?: string;
  /** The complete Authorization value, with its scheme. Null sends none. */
  authorization?: string | null;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
}

/**
 * Opens a connection that is destroyed when the test has finished. Rejects when the handshake
 * fails.
 */
export async function openConnection(
  { port, caPem }: Endpoint,
  options: ConnectionOptions & { localAddress?: string } = {},
): Promise<Connection> {
  const socket = tlsConnect({ host: '127.0.0.1', port, ca: caPem, ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, 'secureConnect');
  return connectionOver(socket);
}

function connectionOver(socket: TLSSocket): Connection {
  const reader = new AnswerReader(socket);
  return {
    socket,
    closed: new Promise((resolve) => socket.once('close', () => resolve())),
    send: (bytes) => void socket.write(bytes),
    answer: async ({ head = false } = {}) => {
      const answer = await reader.next(head);
      if (answer === null)
        throw new Error('The connection ended before the response was complete.');
      return { ...answer, headers: Object.fromEntries(answer.headers) };
    },
  };
}

/** Opens a plain TCP connection that is destroyed when the test has finished. */
export async function openTcp({ port }: Endpoint): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port });
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  await once(socket, 'connect');
  return socket;
}

/** Sends one request on a new connection and reads the response. */
export async function exchange(endpoint: Endpoint, parts: RequestParts = {}): Promise<Answer> {
  const connection = await openConnection(endpoint);
  connection.send(requestBytes(parts));
  const answer = await connection.answer({ head: parts.method === 'HEAD' });
  connection.socket.destroy();
  return answer;
}

/** Sends bytes on a new connection; returns all responses until the receiver closes it. */
export async function answersTo(endpoint: Endpoint, bytes: string | Uint8Array): Promise<Answer[]> {
  const connection = await openConnection(endpoint);
  connection.send(bytes);
  const answers: Answer[] = [];
  for (;;) {
    try {
      answers.push(await connection.answer());
    } catch {
      return answers;
    }
  }
}

/** Builds a complete request: by default a POST with the right credentials. */
export function requestBytes(parts: RequestParts): Buffer {
  const { method = 'POST', path = '/notifications', authorization = basic(), headers } = parts;
  const body = Buffer.from(parts.body ?? '');
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...Object.entries({
      Host: 'localhost',
      ...(authorization === null ? {} : { Authorization: authorization }),
      ...(parts.body === undefined ? {} : { 'Content-Length': String(body.byteLength) }),
      ...headers,
    }).map(([name, value]) => `${name}: ${value}`),
  ];
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body]);
}

/** The Authorization value of a pair; the pair may be bytes in any encoding. */
export function basic(
  username = goodPair.username,
  password = goodPair.password,
  encoding: BufferEncoding = 'utf8',
): string {
  return `Basic ${Buffer.from(`${username}:${password}`, encoding).toString('base64')}`;
}

/** A response. Header names are in lower case; a repeated header keeps its last value. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Returns a different notification on each call. */
export function goodNotification() {
  const ackId = Buffer.from(`1726152772322-0:${randomUUID()}`).toString('base64');
  const productId = randomUUID();
  const fields = { AckId: ackId, ProductId: productId, value: { Id: productId } };
  return { ackId, productId, body: JSON.stringify(notification(1, fields)) };
}

/** Sends a notification; expects the usual response and exactly one row. */
export async function expectStillAcceptsNotifications(receiver: TestReceiver): Promise<void> {
  const { ackId, body } = goodNotification();
  const answer = await exchange(receiver, { path: '/notifications/still', body });
  expect(answer).toMatchObject({ status: 200, body: '{"status":"stored"}' });
  expect(await collect(receiver.store.find({ ackId }))).toHaveLength(1);
}
