/** The probe of an endpoint: each failure has a code, a reason and advice, and shows no credentials. */
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { createEndpointProbe } from '../../../src/admin/endpoint-probe.ts';
import {
  createCertificateAuthority,
  createSelfSigned,
} from '../../../src/sandbox/certificate-authority.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { createChain } from './certificate-chain.ts';
import {
  answering,
  createTrust,
  listening,
  pair,
  receiver,
  startEndpoint,
  startTcp,
} from './tls-endpoint.ts';

const dayMs = 86_400_000;

function probe(port: number, trusted: string[] = [], timeoutMs = 5_000) {
  const ask = createEndpointProbe({ extraCaPems: trusted, timeoutMs });
  return ask(`https://localhost:${port}/notifications`, pair);
}

describe('an endpoint without a fault', () => {
  it('gets one request with the credentials, and none after a redirect', async () => {
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

  it('may serve a chain, and may send an endless answer', async () => {
    const { rootPem, middlePem, leafPem, keyPem } = await createChain();
    const endless = await startEndpoint(
      { certificatePem: `${leafPem}\n${middlePem}`, keyPem },
      (_request, response) => void response.write(Buffer.alloc(65_536)),
    );
    expect(await probe(endless, [rootPem])).toMatchObject({ fault: null, status: 200 });
  });
});

describe('a refused certificate', () => {
  const trusted = async (now: () => number, notAfterMs?: number) => {
    const authority = await createCertificateAuthority({ now });
    const issued = await authority.issue({
      hosts: ['localhost'],
      ...(notAfterMs && { notAfterMs }),
    });
    return probe(await startEndpoint(issued), [authority.certificatePem]);
  };

  it.each([
    [
      'self-signed',
      'certificate-untrusted',
      async () => {
        const own = await createSelfSigned({ hosts: ['localhost'], now: Date.now });
        return probe(await startEndpoint(own), [own.certificatePem]);
      },
    ],
    [
      'of an unknown authority',
      'certificate-untrusted',
      async () => {
        const { ca, certificate } = await createTrust();
        const certificatePem = `${certificate.certificatePem}\n${ca}`;
        return probe(await startEndpoint({ ...certificate, certificatePem }));
      },
    ],
    [
      'without its intermediate',
      'certificate-chain',
      async () => {
        const { rootPem, leafPem, keyPem } = await createChain();
        return probe(await startEndpoint({ certificatePem: leafPem, keyPem }), [rootPem]);
      },
    ],
    [
      'for another name',
      'certificate-name',
      async () => {
        const { ca, certificate } = await createTrust(['elsewhere.example']);
        return probe(await startEndpoint(certificate), [ca]);
      },
    ],
    [
      'that has expired',
      'certificate-expired',
      () => trusted(() => Date.now() - 10 * dayMs, Date.now() - 2 * dayMs),
    ],
    ['that is not valid yet', 'certificate-expired', () => trusted(() => Date.now() + 5 * dayMs)],
  ])('%s is reported', async (_title, code, ask) => {
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    const { fault, status, tls } = await ask().finally(() => {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    });
    expect(fault?.code).toBe(code);
    expect(fault?.message).toMatch(/Issuer: CN=.*; valid until 20\d\d-/);
    expect(fault?.advice).not.toBe('');
    expect([status, tls?.protocol]).toEqual([null, 'TLSv1.3']);
  });

  it('receives no credentials', async () => {
    const { certificate } = await createTrust();
    let requests = 0;
    const port = await startEndpoint(certificate, () => {
      requests += 1;
    });
    expect((await probe(port)).fault?.code).toBe('certificate-chain');
    expect(requests).toBe(0);
  });
});

describe('a failed connection', () => {
  it.each([
    ['https://earshot.invalid/notifications', 'name-not-found'],
    ['http://localhost/notifications', 'wrong-protocol'],
    ['localhost:8443', 'wrong-protocol'],
    ['', 'wrong-protocol'],
  ])('to "%s" is reported: %s', async (endpoint, code) => {
    const { fault, ...rest } = await createEndpointProbe()(endpoint, pair);
    expect(fault?.code).toBe(code);
    expect(rest).toEqual({ status: null, tls: null });
  });

  it('to a closed port is reported', async () => {
    const port = await freePort();
    expect((await probe(port)).fault?.code).toBe('connection-refused');
  });

  it.each<[string, number | null, string, Parameters<typeof startEndpoint>[2]?]>([
    ['nothing', 200, 'no-answer'],
    ['a reset', null, 'connection-lost'],
    ['plain HTTP', null, 'wrong-protocol'],
    ['no answer', 500, 'no-answer'],
    ['a broken answer', null, 'connection-lost'],
    ['SSH', null, 'wrong-protocol'],
    [
      'TLS 1.1',
      null,
      'wrong-protocol',
      { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' },
    ],
    ['mutual TLS', null, 'wrong-protocol', { requestCert: true }],
  ])('to a server of %s is reported', async (kind, timeoutMs, code, options) => {
    const { ca, certificate } = await createTrust();
    const servers: Record<string, () => Promise<number>> = {
      nothing: () => startTcp(() => undefined),
      'a reset': () => startTcp((socket) => socket.once('data', () => socket.resetAndDestroy())),
      'plain HTTP': () => listening(createHttpServer((_request, response) => response.end())),
      'no answer': () => startEndpoint(certificate, () => undefined),
      'a broken answer': () => startEndpoint(certificate, ({ socket }) => void socket.destroy()),
      SSH: () => {
        const keys = { cert: certificate.certificatePem, key: certificate.keyPem };
        return listening(
          createTlsServer(keys, (socket) => {
            socket.on('error', () => undefined).end('SSH-2.0-OpenSSH_9.6\r\n');
          }),
        );
      },
    };
    const start = servers[kind] ?? (() => startEndpoint(certificate, receiver, options));
    const { fault, status } = await probe(await start(), [ca], timeoutMs ?? 5_000);
    expect(fault?.code).toBe(code);
    expect(fault?.advice).not.toBe('');
    expect(status).toBeNull();
  });
});

it.each([
  [204, 'endpoint-not-receiver'],
  [302, 'endpoint-redirects'],
  [401, 'endpoint-login'],
  [403, 'endpoint-not-receiver'],
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
