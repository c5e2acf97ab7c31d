/** Endpoints for the probe: TLS servers on loopback with different certificates. */
import type { RequestListener } from 'node:http';
import { createServer, type ServerOptions } from 'node:https';
import {
  createCertificateAuthority,
  type KeyedCertificate,
} from '../../../src/sandbox/certificate-authority.ts';
import { listening } from '../../helpers/tcp-server.ts';

export const pair = { username: 'catalogue', password: 'ä:secret' };

/** Answers 200 to the pair, 401 to anything else, as the receiver does. */
export const receiver: RequestListener = ({ headers }, response) => {
  const expected = Buffer.from(`${pair.username}:${pair.password}`, 'utf8').toString('base64');
  response.statusCode = headers.authorization === `Basic ${expected}` ? 200 : 401;
  response.end();
};

/** Answers every request with one status. */
export function answering(status: number, headers: Record<string, string> = {}): RequestListener {
  return (_request, response) => response.writeHead(status, headers).end('some text');
}

/** An authority, and its certificate for this machine. */
export async function createTrust(hosts = ['localhost', '127.0.0.1']) {
  const authority = await createCertificateAuthority({ now: Date.now });
  return { ca: authority.certificatePem, certificate: await authority.issue({ hosts }) };
}

/** Starts an HTTPS server and returns its port; closes it after the test. */
export function startEndpoint(
  certificate: KeyedCertificate,
  listener: RequestListener = receiver,
  options: ServerOptions = {},
): Promise<number> {
  const { certificatePem: cert, keyPem: key } = certificate;
  const server = createServer({ ...options, cert, key }, listener);
  // In many tests, the client refuses the certificate.
  server.on('tlsClientError', () => undefined);
  return listening(server);
}
