/** A scriptable certificate authority for tests: ACME (RFC 8555, RFC 9773) on loopback. */
import { webcrypto } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import 'reflect-metadata';
import * as x509 from '@peculiar/x509';
import { crypto } from 'acme-client';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import { listening } from './tcp-server.ts';

/** The step that a request belongs to. */
export type Step =
  | 'directory'
  | 'nonce'
  | 'newAccount'
  | 'account'
  | 'newOrder'
  | 'order'
  | 'authorization'
  | 'challenge'
  | 'finalize'
  | 'certificate'
  | 'renewalInfo';

export interface Answer {
  status: number;
  headers: Record<string, string>;
  /** A text is sent as it is, anything else as JSON. */
  body: unknown;
}

/** Turns the correct response into another one; or breaks the connection, or never responds. */
export type Fault = (answer: Answer) => Answer | 'reset' | 'silence';

export interface StubRequest {
  step: Step;
  path: string;
  /** Payload of a signed request (RFC 8555, 6.2); empty for a POST-as-GET. */
  payload: Record<string, unknown>;
}

export interface StubOptions {
  /** Clock for the start of validity, ms since 1970. */
  nowMs: () => number;
  lifetimeMs?: number;
  /** Issues for this name instead of the ordered one. */
  issueFor?: string;
  /** Offers renewal information: the response for a certificate. */
  renewalInfo?: (certificateId: string) => { start: unknown; end: unknown };
  /** Requires proof of the name first; any response to the challenge is accepted. */
  unproved?: boolean;
  /** The token of that challenge. */
  token?: string;
}

export interface StubAuthority {
  directoryUrl: string;
  /** PEM: the authority for its own HTTPS. */
  caPem: string;
  requests: StubRequest[];
  count(step: Step): number;
  /** Number of requests that got no answer since the last call. */
  silenced(): number;
  /** Lets the next `times` responses of a step fail (default: all); replaces an earlier fault. */
  break(step: Step, fault: Fault, times?: number): void;
  repair(step: Step): void;
}

interface Order {
  status: 'pending' | 'ready' | 'valid';
  chain: string | undefined;
}

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' };

/** Resolves when it responds; stopped when the test has finished. */
export async function startStubAuthority(options: StubOptions): Promise<StubAuthority> {
  const tls = await createCertificateAuthority({ now: Date.now });
  const own = await tls.issue({ hosts: ['localhost'] });
  const requests: StubRequest[] = [];
  let silenced = 0;
  const faults = new Map<Step, { fault: Fault; left: number }>();
  const answerTo = await createAnswers(options);
  const server = createServer({ cert: own.certificatePem, key: own.keyPem });
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    void read(request).then(async (received) => {
      requests.push(received);
      const correct = await answerTo(received, originOf(server.address()));
      const planned = faults.get(received.step);
      if (planned === undefined || planned.left <= 0) return send(response, correct);
      planned.left -= 1;
      const answer = planned.fault(correct);
      if (answer === 'silence') silenced += 1;
      return send(response, answer);
    });
  });
  await listening(server);
  return {
    directoryUrl: `${originOf(server.address())}/directory`,
    caPem: tls.certificatePem,
    requests,
    count: (step) => requests.filter((request) => request.step === step).length,
    silenced: () => {
      const count = silenced;
      silenced = 0;
      return count;
    },
    break: (step, fault, times = Number.POSITIVE_INFINITY) => {
      faults.set(step, { fault, left: times });
    },
    repair: (step) => void faults.delete(step),
  };
}

/** The correct responses: one order after the other, for any account. */
async function createAnswers(options: StubOptions) {
  const issue = await createIssuer(options);
  const orders: Order[] = [];
  let nonces = 0;
  return async ({ step, path, payload }: StubRequest, origin: string): Promise<Answer> => {
    const number = Number(path.split('/').at(-1));
    const order = orders[number] ?? { status: 'pending', chain: undefined };
    nonces += 1;
    const answer = (body: unknown, status = 200, headers = {}): Answer => ({
      status,
      headers: { 'replay-nonce': `nonce-${nonces}`, ...headers },
      body,
    });
    const orderBody = (index: number, { status }: Order) => ({
      status,
      authorizations: [`${origin}/authorization/${index}`],
      finalize: `${origin}/finalize/${index}`,
      ...(status === 'valid' ? { certificate: `${origin}/certificate/${index}` } : {}),
    });
    const answers: Record<Step, () => Answer | Promise<Answer>> = {
      directory: () => answer(directoryOf(origin, options)),
      nonce: () => answer('', 200),
      newAccount: () => answer({ status: 'valid' }, 201, { location: `${origin}/account/0` }),
      account: () => answer({ status: 'valid' }),
      newOrder: () => {
        orders.push({ status: options.unproved === true ? 'pending' : 'ready', chain: undefined });
        const index = orders.length - 1;
        const location = `${origin}/order/${index}`;
        return answer(orderBody(index, orders[index] ?? order), 201, { location });
      },
      order: () => answer(orderBody(number, order)),
      authorization: () => answer(authorizationOf(order, `${origin}/challenge/${number}`, options)),
      challenge: () => {
        order.status = 'ready';
        return answer({ type: 'http-01', url: path, status: 'valid' });
      },
      finalize: async () => {
        order.chain = await issue(String(payload.csr));
        order.status = 'valid';
        return answer(orderBody(number, order));
      },
      certificate: () => answer(order.chain),
      renewalInfo: () => answer({ suggestedWindow: options.renewalInfo?.(path.slice(13)) }),
    };
    return answers[step]();
  };
}

function directoryOf(origin: string, { renewalInfo }: StubOptions) {
  return {
    newNonce: `${origin}/nonce`,
    newAccount: `${origin}/newAccount`,
    newOrder: `${origin}/newOrder`,
    ...(renewalInfo === undefined ? {} : { renewalInfo: `${origin}/renewalInfo` }),
  };
}

function authorizationOf({ status }: Order, url: string, { token = 'token-1' }: StubOptions) {
  const isProved = status !== 'pending';
  const challenge = { type: 'http-01', url, token, status: isProved ? 'valid' : 'pending' };
  const identifier = { type: 'dns', value: 'earshot.example.org' };
  return { status: isProved ? 'valid' : 'pending', identifier, challenges: [challenge] };
}

/** Signs requests for certificates: base64url in, PEM out. */
async function createIssuer({ nowMs, lifetimeMs = 90 * 86_400_000, issueFor }: StubOptions) {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const issuer = await x509.AuthorityKeyIdentifierExtension.create(keys.publicKey);
  return async (csr: string): Promise<string> => {
    const request = new x509.Pkcs10CertificateRequest(Buffer.from(csr, 'base64url'));
    const names = issueFor === undefined ? crypto.readCsrDomains(pemOf(csr)).altNames : [issueFor];
    const leaf = await x509.X509CertificateGenerator.create({
      subject: request.subject,
      issuer: 'CN=stub authority',
      publicKey: request.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: algorithm,
      notBefore: new Date(nowMs()),
      notAfter: new Date(nowMs() + lifetimeMs),
      extensions: [
        issuer,
        new x509.SubjectAlternativeNameExtension(
          names.map((value) => ({ type: 'dns', value }) as const),
        ),
      ],
    });
    return leaf.toString('pem');
  };
}

function pemOf(csr: string): string {
  const text = Buffer.from(csr, 'base64url').toString('base64');
  return `-----BEGIN CERTIFICATE REQUEST-----\n${text}\n-----END CERTIFICATE REQUEST-----\n`;
}

async function read(request: IncomingMessage): Promise<StubRequest> {
  let text = '';
  for await (const bytes of request.setEncoding('utf8')) text += bytes;
  const { payload = '' } = text === '' ? {} : JSON.parse(text);
  const [path = ''] = (request.url ?? '').split('?');
  return {
    // The first part of a path is the name of its step.
    step: path.split('/')[1] as Step,
    path,
    payload: payload === '' ? {} : JSON.parse(Buffer.from(payload, 'base64url').toString()),
  };
}

function send(response: ServerResponse, answer: ReturnType<Fault>): void {
  if (answer === 'silence') return;
  if (answer === 'reset') return void response.socket?.destroy();
  const { status, headers, body } = answer;
  const isText = typeof body === 'string';
  const type = isText ? 'application/pem-certificate-chain' : 'application/json';
  response.writeHead(status, { 'content-type': type, ...headers });
  response.end(isText ? body : JSON.stringify(body));
}

function originOf(address: ReturnType<ReturnType<typeof createServer>['address']>): string {
  return `https://localhost:${typeof address === 'object' ? address?.port : 0}`;
}
