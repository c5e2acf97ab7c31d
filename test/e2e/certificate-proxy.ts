/** Proxy between earshot and Pebble: records the requests, and lets a test intervene. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { Agent, createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import type { Pebble } from '../helpers/pebble.ts';

/** Pebble's names for the steps of an order, as in its URLs. */
export type AcmeStep = 'sign-me-up' | 'order-plz' | 'chalZ' | 'finalize-order' | 'certZ';

/** Moment of a request: before it reaches Pebble, or after Pebble has processed it, before the answer. */
export interface AcmeMoment {
  /** Counted from 1, without requests for nonces, which change nothing. */
  number: number;
  moment: 'before' | 'after';
  path: string;
}

export interface CertificateProxy {
  directoryUrl: string;
  /** PEM: root certificate of its HTTPS. */
  caPem: string;
  /** Counts successful requests of a step: 201 for created objects, otherwise 200. */
  granted(step: AcmeStep): number;
  /** Called at each moment; its delay postpones the request. When it rejects, the request gets no answer. */
  watch(look: (at: AcmeMoment) => void | Promise<void>): void;
}

/** Pebble builds its URLs from the request's Host, so all requests of an order pass through this proxy. */
export async function startCertificateProxy(pebble: Pebble): Promise<CertificateProxy> {
  const authority = await createCertificateAuthority({ now: Date.now });
  const own = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const agent = new Agent({ keepAlive: true, ca: pebble.caPem });
  const answered: { path: string; status: number }[] = [];
  let count = 0;
  let look: (at: AcmeMoment) => void | Promise<void> = () => undefined;
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const path = incoming.url ?? '/';
    const counts = path !== '/nonce-plz';
    if (counts) count += 1;
    const at = { number: count, path };
    const body = await bytesOf(incoming);
    if (counts) await look({ ...at, moment: 'before' });
    const answer = await forward(pebble.ports.acme, agent, incoming, body);
    answered.push({ path, status: answer.status });
    if (counts) await look({ ...at, moment: 'after' });
    outgoing.writeHead(answer.status, answer.headers).end(answer.body);
  };
  const pair = { cert: own.certificatePem, key: own.keyPem };
  const server = createServer(pair, (incoming, outgoing) => {
    handle(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    agent.destroy();
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    directoryUrl: `https://localhost:${port}/dir`,
    caPem: authority.certificatePem,
    granted: (step) => {
      const status = step === 'sign-me-up' || step === 'order-plz' ? 201 : 200;
      const isSame = (one: { path: string; status: number }) =>
        one.path.startsWith(`/${step}`) && one.status === status;
      return answered.filter(isSame).length;
    },
    watch: (watching) => {
      look = watching;
    },
  };
}

function forward(port: number, agent: Agent, incoming: IncomingMessage, body: Buffer) {
  const { method = 'GET', url: path = '/', headers } = incoming;
  const target = { host: '127.0.0.1', servername: 'localhost', port, agent, method, path, headers };
  return new Promise<{ status: number; headers: IncomingHttpHeaders; body: Buffer }>(
    (resolve, reject) => {
      const sent = request(target, (response) => {
        const { statusCode: status = 0 } = response;
        bytesOf(response).then((answer) => {
          resolve({ status, headers: response.headers, body: answer });
        }, reject);
      });
      sent.on('error', reject).end(body);
    },
  );
}

async function bytesOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}
