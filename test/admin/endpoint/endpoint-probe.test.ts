/** The probe of an endpoint: each failure has a code, a reason and advice, and shows no credentials. */
import { createServer as createHttpServer } from 'node:http';
import type { ServerOptions } from 'node:https';
import type { Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createEndpointProbe } from '../../../src/admin/endpoint-probe.ts';
import {
  createCertificateAuthority,
  type KeyedCertificate,
} from '../../../src/sandbox/certificate-authority.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { listening, startTcpServer } from '../../helpers/tcp-server.ts';
import { createChain, createSelfSigned } from './certificate-chain.ts';
import { answering, createTrust, pair, receiver, startEndpoint } from './tls-endpoint.ts';

const dayMs = 86_400_000;

function probe(port: number, trusted: string[] = [], timeoutMs = 5_000) {
  const ask = createEndpointProbe({ extraCaPems: trusted, timeoutMs });
  return ask(`https://localhost:${port}/notifications`, pair);
}

it('an endpoint without a fault gets one request with the credentials, and none after a redirect', async () => {
  const { ca, certificate } = await createTrust();
  const seen: (string | undefined)[] = [];
  const port = await startEndpoint(certificate, (request, response) => {
    seen.push(`${request.method} ${request.headers.host} ${request.url}`);
    receiver(request, response);
  });
  const ask = createEndpointProbe({ extraCaPems: [ca] });
  for (const host of ['localhost', '127.0.0.1']) {
    const report = await ask(`https://${host}:${port}/notifications?a=1`, pair);
    expect(report).toMatchObject({ fault: null, status: 200, tls: { protocol: 'TLSv1.3' } });
    expect(report.tls?.certificate.validToDate.getTime()).toBeGreaterThan(Date.now());
  }
  expect(await ask(`https://localhost:${port}/`, null)).toMatchObject({ status: 401 });
  expect(seen).toEqual([
    `GET localhost:${port} /notifications?a=1`,
    `GET 127.0.0.1:${port} /notifications?a=1`,
    `GET localhost:${port} /`,
  ]);
});

it('an endpoint without a fault may serve a chain, and may send an endless answer', async () => {
  const { rootPem, middlePem, leafPem, keyPem } = await createChain();
  const endless = await startEndpoint(
    { certificatePem: `${leafPem}\n${middlePem}`, keyPem },
    (_request, response) => void response.write(Buffer.alloc(65_536)),
  );
  expect(await probe(endless, [rootPem])).toMatchObject({ fault: null, status: 200 });
});

describe('a refused certificate', () => {
  const issuedAt = async (now: () => number, notAfterMs?: number) => {
    const authority = await createCertificateAuthority({ now });
    const ended = notAfterMs === undefined ? {} : { notAfterMs };
    const issued = await authority.issue({ hosts: ['localhost'], ...ended });
    return { served: issued, trusted: [authority.certificatePem] };
  };
  const trust = async (hosts?: string[]) => {
    const { ca, certificate } = await createTrust(hosts);
    return { served: certificate, trusted: [ca] };
  };

  it.each<[string, string, () => Promise<{ served: KeyedCertificate; trusted: string[] }>]>([
    [
      'self-signed',
      'certificate-untrusted',
      async () => {
        const served = await createSelfSigned();
        return { served, trusted: [served.certificatePem] };
      },
    ],
    [
      'of an unknown authority',
      'certificate-untrusted',
      async () => {
        const { served, trusted } = await trust();
        const certificatePem = `${served.certificatePem}\n${trusted}`;
        return { served: { ...served, certificatePem }, trusted: [] };
      },
    ],
    [
      'without its intermediate',
      'certificate-chain',
      async () => {
        const { rootPem, leafPem, keyPem } = await createChain();
        return { served: { certificatePem: leafPem, keyPem }, trusted: [rootPem] };
      },
    ],
    ['for another name', 'certificate-name', () => trust(['elsewhere.example'])],
    [
      'that has expired',
      'certificate-expired',
      () => issuedAt(() => Date.now() - 10 * dayMs, Date.now() - 2 * dayMs),
    ],
    ['not valid yet', 'certificate-expired', () => issuedAt(() => Date.now() + 5 * dayMs)],
  ])('%s is reported, and receives no credentials', async (_title, code, create) => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    onTestFinished(() => {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    });
    const { served, trusted } = await create();
    let requests = 0;
    const port = await startEndpoint(served, () => {
      requests += 1;
    });
    const { fault, status, tls } = await probe(port, trusted);
    expect(fault?.code).toBe(code);
    expect(fault?.message).toMatch(/Issuer: CN=.*; valid until 20\d\d-/);
    expect(fault?.advice).not.toBe('');
    expect([status, tls?.protocol, requests]).toEqual([null, 'TLSv1.3', 0]);
  });
});

describe('a failed connection', () => {
  it.each([
    ['https://earshot.invalid/notifications', 'name-not-found'],
    ['http://localhost/notifications', 'wrong-protocol'],
  ])('to "%s" is reported: %s', async (endpoint, code) => {
    const { fault, ...rest } = await createEndpointProbe()(endpoint, pair);
    expect(fault?.code).toBe(code);
    expect(rest).toEqual({ status: null, tls: null });
  });

  type Served = Awaited<ReturnType<typeof createTrust>>['certificate'];

  const tcp = async (serve: (socket: Socket) => unknown) => (await startTcpServer(serve)).port;
  const tls =
    (options: ServerOptions): ((served: Served) => Promise<number>) =>
    (served) =>
      startEndpoint(served, receiver, options);
  const old = {
    minVersion: 'TLSv1',
    maxVersion: 'TLSv1.1',
    ciphers: 'DEFAULT@SECLEVEL=0',
  } as const;
  const startSsh = ({ certificatePem, keyPem }: Served) =>
    listening(
      createTlsServer({ cert: certificatePem, key: keyPem }, (socket) => {
        socket.on('error', () => undefined).end('SSH-2.0-OpenSSH_9.6\r\n');
      }),
    );

  it.each<[string, string, (served: Served) => Promise<number>, timeoutMs?: number]>([
    ['nothing', 'no-answer', () => tcp((socket) => socket.pause()), 200],
    ['a closed port', 'connection-refused', () => freePort()],
    [
      'a reset',
      'connection-lost',
      () => tcp((socket) => socket.once('data', () => socket.resetAndDestroy())),
    ],
    [
      'plain HTTP',
      'wrong-protocol',
      () => listening(createHttpServer((_request, response) => response.end())),
    ],
    ['no answer', 'no-answer', (served) => startEndpoint(served, () => undefined), 500],
    ['SSH', 'wrong-protocol', startSsh],
    ['TLS 1.1', 'wrong-protocol', tls(old)],
  ])('to a server of %s is reported: %s', async (_title, code, start, timeoutMs) => {
    const { ca, certificate } = await createTrust();
    const { fault, status } = await probe(await start(certificate), [ca], timeoutMs);
    expect(fault?.code).toBe(code);
    expect(fault?.advice).not.toBe('');
    expect(status).toBeNull();
  });
});

it.each([
  [204, 'endpoint-not-receiver'],
  [302, 'endpoint-redirects'],
  [401, 'endpoint-login'],
  [500, 'endpoint-not-receiver'],
])('an answer with status %i is a fault, without the credentials', async (status, code) => {
  const { ca, certificate } = await createTrust();
  const location = { Location: 'https://localhost:1/elsewhere' };
  const report = await probe(await startEndpoint(certificate, answering(status, location)), [ca]);
  expect(report).toMatchObject({ status, fault: { code } });
  expect(report.fault?.message).toContain(`(HTTP ${status})`);
  expect(JSON.stringify(report.fault)).not.toMatch(/secret|Y2F0YWxv/);
});

it('rejects an invalid authority certificate before any probe', () => {
  expect(() => createEndpointProbe({ extraCaPems: ['not a certificate'] })).toThrow(
    expect.objectContaining({ code: 'configuration' }),
  );
});
