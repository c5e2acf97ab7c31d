/** The probe of an endpoint: accepted endpoints, and the text of every failure. */
import { createServer as createHttpServer } from 'node:http';
import { createServer as createTlsServer } from 'node:tls';
import { describe, expect, it } from 'vitest';
import { createEndpointProbe } from '../../../src/admin/endpoint-probe.ts';
import { faultOf, type ProbeStage } from '../../../src/admin/probe-fault.ts';
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

/** Probes localhost with the pair; trusts the given authorities. */
function probe(port: number, extraCaPems: string[] = [], timeoutMs = 5_000) {
  const endpoint = `https://localhost:${port}/notifications/default`;
  return createEndpointProbe({ extraCaPems, timeoutMs })(endpoint, pair);
}

describe('a valid endpoint', () => {
  it('has no fault, and the report describes its TLS', async () => {
    const { ca, certificate } = await createTrust();
    const report = await probe(await startEndpoint(certificate), [ca]);
    expect(report).toMatchObject({ fault: null, status: 200 });
    expect(report.tls).toMatchObject({
      protocol: 'TLSv1.3',
      issuer: 'CN=earshot sandbox authority',
    });
    const days = ((report.tls?.notAfter.getTime() ?? 0) - Date.now()) / dayMs;
    expect(days).toBeGreaterThan(29);
    expect(days).toBeLessThan(31);
  });

  it('receives a GET on its own path, with any credentials in UTF-8', async () => {
    const { ca, certificate } = await createTrust();
    const seen: unknown[] = [];
    const port = await startEndpoint(certificate, (request, response) => {
      seen.push([request.method, request.url, request.headers.authorization]);
      receiver(request, response);
    });
    const ask = createEndpointProbe({ extraCaPems: [ca] });
    await ask(`https://localhost:${port}/notifications/s1`, pair);
    const bare = await ask(`https://localhost:${port}/notifications`, null);
    expect(seen).toEqual([
      ['GET', '/notifications/s1', 'Basic Y2F0YWxvZ3VlOsOkOnNlY3JldA=='],
      ['GET', '/notifications', undefined],
    ]);
    expect(bare).toMatchObject({ status: 401, fault: { stage: 'answer' } });
    expect(bare.fault?.message).toContain('requires credentials');
  });

  it('may be an IP address', async () => {
    const { ca, certificate } = await createTrust();
    const port = await startEndpoint(certificate);
    const ask = createEndpointProbe({ extraCaPems: [ca] });
    expect(await ask(`https://127.0.0.1:${port}/notifications`, pair)).toMatchObject({
      fault: null,
    });
  });

  it('may serve a chain, and may send an endless answer', async () => {
    const { rootPem, middlePem, leafPem, keyPem } = await createChain();
    const endless = await startEndpoint(
      { certificatePem: `${leafPem}\n${middlePem}`, keyPem },
      (_request, response) => {
        const more = () => {
          while (!response.destroyed && response.write(Buffer.alloc(65_536)));
        };
        response.on('drain', more);
        more();
      },
    );
    expect(await probe(endless, [rootPem])).toMatchObject({ fault: null, status: 200 });
  });
});

describe('a certificate', () => {
  it('that is self-signed is refused, trusted or not', async () => {
    const own = await createSelfSigned({ hosts: ['localhost'], now: Date.now });
    const port = await startEndpoint(own);
    for (const trusted of [[], [own.certificatePem]]) {
      const { fault, status, tls } = await probe(port, trusted);
      expect(fault).toMatchObject({ stage: 'certificate' });
      expect(fault?.message).toContain('self-signed');
      expect(status).toBeNull();
      expect(tls?.issuer).toBe('CN=localhost');
    }
  });

  it('of an unknown authority is refused, and the message names its issuer', async () => {
    const { ca, certificate } = await createTrust();
    const port = await startEndpoint({
      ...certificate,
      certificatePem: `${certificate.certificatePem}\n${ca}`,
    });
    const { fault, tls } = await probe(port);
    expect(fault).toMatchObject({ stage: 'certificate' });
    expect(fault?.message).toMatch(/not publicly trusted \(issuer: CN=earshot sandbox authority\)/);
    expect(fault?.advice).toContain('EARSHOT_PROBE_CA');
    expect(tls).toMatchObject({ protocol: 'TLSv1.3' });
  });

  it('without its intermediate is refused with the advice to serve the full chain', async () => {
    const { rootPem, leafPem, keyPem } = await createChain();
    const port = await startEndpoint({ certificatePem: leafPem, keyPem });
    const { fault } = await probe(port, [rootPem]);
    expect(fault).toMatchObject({ stage: 'certificate' });
    expect(fault?.message).toMatch(
      /intermediate certificates are missing.*issuer: CN=an intermediate/,
    );
    expect(fault?.advice).toContain('fullchain.pem');
  });

  it('that has expired is refused, and the message names the day', async () => {
    let nowMs = Date.now() - 10 * dayMs;
    const authority = await createCertificateAuthority({ now: () => nowMs });
    const notAfterMs = Date.now() - 2 * dayMs;
    const expired = await authority.issue({ hosts: ['localhost'], notAfterMs });
    const day = new Date(notAfterMs).toISOString().slice(0, 10);
    const { fault, tls } = await probe(await startEndpoint(expired), [authority.certificatePem]);
    expect(fault).toMatchObject({ stage: 'certificate' });
    expect(fault?.message).toContain(`has expired (certificate valid until ${day})`);
    expect(tls?.notAfter.getTime()).toBeLessThan(Date.now());
    nowMs = Date.now() + 5 * dayMs;
    const future = await authority.issue({ hosts: ['localhost'] });
    const early = await probe(await startEndpoint(future), [authority.certificatePem]);
    expect(early.fault?.message).toContain('not valid yet');
    expect(early.fault?.advice).toContain('clock');
  });

  it('for another name is refused', async () => {
    const { ca, certificate } = await createTrust(['elsewhere.example']);
    const { fault } = await probe(await startEndpoint(certificate), [ca]);
    expect(fault).toMatchObject({ stage: 'certificate' });
    expect(fault?.message).toContain('not valid for localhost');
  });

  it('is checked despite NODE_TLS_REJECT_UNAUTHORIZED', async () => {
    const { certificate } = await createTrust();
    const port = await startEndpoint(certificate);
    process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    try {
      expect(await probe(port)).toMatchObject({ fault: { stage: 'certificate' }, status: null });
    } finally {
      delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
    }
  });
});

describe('the connection', () => {
  it('fails for a name that does not resolve', async () => {
    const report = await createEndpointProbe()('https://earshot.invalid/notifications', pair);
    expect(report).toMatchObject({ fault: { stage: 'name' }, status: null, tls: null });
    expect(report.fault?.message).toContain('The name earshot.invalid');
  });

  it('fails at a closed port', async () => {
    const port = await freePort();
    const { fault } = await probe(port);
    expect(fault).toMatchObject({ stage: 'connection' });
    expect(fault?.message).toContain(`refuses connections on port ${port}`);
  });

  it('fails at a port that sends nothing', async () => {
    const { fault } = await probe(await startTcp(() => undefined), [], 200);
    expect(fault).toMatchObject({ stage: 'certificate' });
    expect(fault?.message).toContain('sent no certificate within 0.2 s');
  });

  it('fails at a receiver that never answers', async () => {
    const { ca, certificate } = await createTrust();
    const port = await startEndpoint(certificate, () => undefined);
    const { fault, tls } = await probe(port, [ca], 500);
    expect(fault).toMatchObject({ stage: 'answer' });
    expect(fault?.message).toContain('no complete answer within 0.5 s');
    expect(tls).not.toBeNull();
  });

  it('fails for an answer that does not end in time', async () => {
    const { ca, certificate } = await createTrust();
    const port = await startEndpoint(certificate, (_request, response) => {
      response.writeHead(200, { 'Content-Length': '10' }).write('half');
    });
    const { fault, status } = await probe(port, [ca], 500);
    expect(fault).toMatchObject({ stage: 'answer' });
    expect(status).toBeNull();
  });

  it.each([
    ['before', 'certificate', 'during the TLS handshake'],
    ['after', 'answer', 'before the answer was complete'],
  ])('fails when it is closed %s the handshake', async (moment, stage, words) => {
    const { ca, certificate } = await createTrust();
    const port =
      moment === 'before'
        ? await startTcp((socket) => socket.once('data', () => socket.resetAndDestroy()))
        : await startEndpoint(certificate, ({ socket }) => void socket.destroy());
    const { fault } = await probe(port, [ca]);
    expect(fault).toMatchObject({ stage });
    expect(fault?.message).toContain(words);
  });

  it('fails at plain HTTP', async () => {
    const port = await listening(createHttpServer((_request, response) => response.end()));
    const { fault, tls } = await probe(port);
    expect(fault).toMatchObject({ stage: 'certificate' });
    expect(fault?.message).toContain('does not use HTTPS');
    expect(tls).toBeNull();
  });

  it('fails with an old TLS version', async () => {
    const { ca, certificate } = await createTrust();
    const port = await startEndpoint(certificate, receiver, {
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    });
    const { fault } = await probe(port, [ca]);
    expect(fault).toMatchObject({ stage: 'certificate' });
    expect(fault?.message).toContain('TLS version of the endpoint is too old');
  });

  it('fails at a server that requires a client certificate', async () => {
    const { ca, certificate } = await createTrust();
    const port = await startEndpoint(certificate, receiver, { requestCert: true });
    const { fault } = await probe(port, [ca]);
    expect(fault?.message).toContain(`TLS handshake on port ${port} failed`);
  });

  it('fails at a server that does not use HTTP', async () => {
    const { ca, certificate } = await createTrust();
    const server = createTlsServer({ cert: certificate.certificatePem, key: certificate.keyPem });
    server.on('secureConnection', (socket) => {
      socket.on('error', () => undefined);
      socket.end('SSH-2.0-OpenSSH_9.6\r\n');
    });
    const { fault } = await probe(await listening(server), [ca]);
    expect(fault).toMatchObject({ stage: 'answer' });
    expect(fault?.message).toContain('does not use HTTP');
  });

  it.each(['http://localhost/notifications', 'localhost:8443', ''])(
    'is not attempted with an invalid URL: "%s"',
    async (endpoint) => {
      const report = await createEndpointProbe()(endpoint, pair);
      expect(report).toMatchObject({ fault: { stage: 'name' }, status: null, tls: null });
      expect(report.fault?.message).toContain('not an https URL');
    },
  );
});

describe('an answer', () => {
  it.each([
    [201, /not from earshot/],
    [204, /not from earshot/],
    [302, /redirect/],
    [308, /redirect/],
    [400, /not from earshot/],
    [401, /the running receiver has other credentials/],
    [403, /denies access/],
    [404, /another program/],
    [405, /another program/],
    [429, /too many logins/],
    [500, /internal error/],
    [502, /cannot reach the receiver/],
    [503, /cannot write/],
    [504, /cannot reach the receiver/],
  ])('with status %i is a fault with a specific message', async (status, words) => {
    const { ca, certificate } = await createTrust();
    const location = { Location: 'https://localhost:1/elsewhere' };
    const report = await probe(await startEndpoint(certificate, answering(status, location)), [ca]);
    expect(report).toMatchObject({ status, fault: { stage: 'answer' } });
    expect(report.fault?.message).toMatch(words);
    expect(report.fault?.message).toContain(`returns ${status}`);
    expect(report.fault?.advice).not.toBe('');
    expect(report.tls).not.toBeNull();
    expect(JSON.stringify(report)).not.toMatch(/secret|Y2F0YWxv/);
  });
});

it('rejects an invalid authority certificate before any probe', () => {
  expect(() => createEndpointProbe({ extraCaPems: ['not a certificate'] })).toThrow(
    expect.objectContaining({ code: 'configuration' }),
  );
});

function failure(code: string): Error {
  return Object.assign(new Error('Authorization: Basic c2VjcmV0'), { code });
}

function faultWith(error: unknown, stage: ProbeStage = 'connection') {
  const host = 'earshot.example.org';
  return faultOf(error, { stage, host, port: '8443', timeoutMs: 15_000, tls: null });
}

describe('a failure', () => {
  it.each([
    ['ENOTFOUND', 'connection', 'name', /does not resolve/],
    ['EAI_AGAIN', 'name', 'name', /does not resolve/],
    ['EHOSTUNREACH', 'connection', 'connection', /no route/],
    ['ENETUNREACH', 'connection', 'connection', /no route/],
    ['ETIMEDOUT', 'connection', 'connection', /did not answer on port 8443 in time/],
    ['PROBE_TIMEOUT', 'connection', 'connection', /within 15 s\. A firewall may block the port/],
    ['PROBE_TIMEOUT', 'name', 'name', /DNS servers do not answer/],
    ['ECONNRESET', 'connection', 'connection', /closed immediately/],
    ['EPIPE', 'answer', 'answer', /closed before the answer was complete/],
    ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'certificate', 'certificate', /not publicly trusted/],
    ['CERT_REVOKED', 'certificate', 'certificate', /is not trusted \(CERT_REVOKED\)/],
    ['INVALID_PURPOSE', 'certificate', 'certificate', /is not trusted/],
    ['EPROTO', 'certificate', 'certificate', /handshake on port 8443 failed/],
  ] as const)('%s in the stage %s is reported as a fault of %s', (code, at, stage, words) => {
    const fault = faultWith(failure(code), at);
    expect(fault).toMatchObject({ stage, message: expect.stringMatching(words) });
    expect(fault.advice).not.toBe('');
    expect(JSON.stringify(fault)).not.toMatch(/Basic|c2VjcmV0/);
  });

  it.each([
    [['ETIMEDOUT', 'ECONNREFUSED'], /refuses connections/],
    [['ENETUNREACH', 'ETIMEDOUT'], /did not answer/],
    [['ENETUNREACH', 'EHOSTUNREACH'], /no route/],
  ])('of several addresses is the most specific one: %j', (codes, words) => {
    const fault = faultWith(new AggregateError(codes.map(failure), ''));
    expect(fault.message).toMatch(words);
  });

  it('without a code is reported without its text', () => {
    for (const error of [new Error('c2VjcmV0'), 'c2VjcmV0', new AggregateError([])]) {
      expect(faultWith(error).message).toContain('closed immediately (unknown)');
    }
  });
});
