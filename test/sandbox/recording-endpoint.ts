/** A user's endpoint for tests: real HTTPS on loopback, remembers every request, answers as told. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import {
  createCertificateAuthority,
  type KeyedCertificate,
} from '../../src/sandbox/certificate-authority.ts';

export interface ReceivedRequest {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** The sender's port: the same one means the same connection. */
  readonly remotePort: number | undefined;
}

/** What the endpoint answers to its nth request (from 1); a number is a status; 'hang' never answers. */
export type Answer = (nth: number, request: ReceivedRequest) => number | 'hang' | AnswerParts;
export interface AnswerParts {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

export interface RecordingEndpoint {
  readonly url: URL;
  readonly port: number;
  readonly requests: ReceivedRequest[];
  /** How many connections are open now. */
  connections(): Promise<number>;
}

/** Starts an endpoint that is closed when the test is over. Without a certificate it speaks plain HTTP. */
export async function startEndpoint({
  certificate,
  answer = () => 200,
  host = 'localhost',
}: {
  certificate?: KeyedCertificate;
  answer?: Answer;
  host?: string;
}): Promise<RecordingEndpoint> {
  const requests: ReceivedRequest[] = [];
  const tls = certificate && { cert: certificate.certificatePem, key: certificate.keyPem };
  const server = tls ? createTlsServer(tls) : createServer();
  server.on('request', (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method, url: path, headers } = request;
      const { remotePort } = request.socket;
      const received = { method, path, headers, body: Buffer.concat(chunks), remotePort };
      requests.push(received);
      const given = answer(requests.length, received);
      if (given === 'hang') return;
      const parts: AnswerParts = typeof given === 'number' ? { status: given } : given;
      response.writeHead(parts.status, parts.headers).end(parts.body);
    });
  });
  // A refused certificate shows here as a broken handshake; the test looks at the sender's side.
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const { port } = server.address() as AddressInfo; // A TCP server that listens has one.
  const url = new URL(`${tls ? 'https' : 'http'}://${host}:${port}/notifications/try-out`);
  const connections = () =>
    new Promise<number>((resolve, reject) => {
      server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
    });
  return { url, port, requests, connections };
}

/** An endpoint with a certificate of a fresh authority, and that authority's root to trust. */
export async function startTrustedEndpoint(answer?: Answer) {
  const authority = await createCertificateAuthority({ now: Date.now });
  const certificate = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const endpoint = await startEndpoint({ certificate, ...(answer ? { answer } : {}) });
  return { ...endpoint, trustedCaPems: [authority.certificatePem] };
}
