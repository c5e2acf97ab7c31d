/** A sandbox with a stopped clock, clients of its services, and an endpoint that records its requests. */
import { existsSync, readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer } from 'node:https';
import { onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/settings.ts';
import { listening } from '../helpers/tcp-server.ts';

const fixtures = new URL('../../../shared/fixtures/', import.meta.url);
/** True without the folder of recorded answers and records. */
export const missing = !existsSync(fixtures);
/** Returns the text, or the JSON document, of a recorded file. */
export const recordedText = (name: string) => readFileSync(new URL(name, fixtures), 'utf8');
export const recorded = (name: string) => JSON.parse(recordedText(name));

export const startMs = Date.UTC(2026, 4, 1, 12);
export const dayMs = 86_400_000;
export const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
export const unknownId = '991c4730-cf6f-432a-9f6c-47be0230ff45';
export const iso = (ms: number) => new Date(ms).toISOString();

/** Body of a creation, as a client would send it. */
export const pushRequest = {
  SubscriptionType: 'push',
  SubscriptionEvent: ['created'],
  FilterParam: "Collection/Name eq 'SENTINEL-2'",
  StageOrder: true,
  Priority: 1,
  Status: 'running',
  NotificationEndpoint: 'https://localhost:1/notifications/default',
  NotificationEpUsername: 'catalogue',
  NotificationEpPassword: 'hunter2:secret',
};
const loginFields = {
  client_id: 'cdse-public',
  grant_type: 'password',
  username: 'sandbox',
  password: 'sandbox',
};

/** Answer of a service; the assertions check its form. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: the answers of a service are what is under test.
  readonly json: any;
}

/** Sends a request and reads the whole answer; `json` is undefined for other content types. */
export async function send(
  url: string,
  method = 'GET',
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const text = body === undefined || typeof body === 'string' ? body : JSON.stringify(body);
  const isForm = body instanceof URLSearchParams;
  const init = text === undefined ? {} : { body: isForm ? body : text };
  const response = await fetch(url, { method, headers, ...init });
  const answer = await response.text();
  const isJson = /[/+]json/.test(response.headers.get('content-type') ?? '');
  const json = isJson ? JSON.parse(answer) : undefined;
  return { status: response.status, headers: response.headers, text: answer, json };
}

/** Client of the catalogue that logs in, again after nine minutes. */
export function clientOf(catalogueUrl: string, now: () => number) {
  const tokenUrl = `${catalogueUrl}/auth/realms/CDSE/protocol/openid-connect/token`;
  const login = (fields: Record<string, string> = {}) =>
    send(tokenUrl, 'POST', new URLSearchParams({ ...loginFields, ...fields }));
  let token = { text: '', untilMs: 0 };
  const call = async (method: string, path: string, body?: unknown) => {
    if (now() >= token.untilMs) {
      const { access_token: text } = (await login()).json;
      token = { text, untilMs: now() + 540_000 };
    }
    const headers = { Authorization: `Bearer ${token.text}` };
    return send(`${catalogueUrl}/odata/v1${path}`, method, body, headers);
  };
  return {
    ...{ login, call },
    create: (changes: Record<string, unknown> = {}) =>
      call('POST', '/Subscriptions', { ...pushRequest, ...changes }),
    list: async () => (await call('GET', '/Subscriptions/Info')).json,
    edit: (id: string, body: unknown) => call('PATCH', `/Subscriptions(${id})`, body),
  };
}

/** Starts a sandbox that publishes only on request. Closed at the end of the test. */
export async function startTestSandbox(options: Partial<SandboxOptions> = {}) {
  const sandbox = await startSandbox({ count: 0, now: () => startMs, ...options });
  onTestFinished(sandbox.close);
  return { sandbox, ...clientOf(sandbox.catalogueUrl, sandbox.clock.now) };
}

interface ReceivedRequest {
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Returns the status of the answer to the nth request (from 1); 'hang' never answers. */
export type EndpointAnswer = (nth: number, request: ReceivedRequest) => number | 'hang';

/** Starts an endpoint on loopback with a certificate of a new authority. Closed at the end of the test. */
export async function startEndpoint(answer: EndpointAnswer = () => 200) {
  const authority = await createCertificateAuthority({ now: Date.now });
  const { certificatePem: cert, keyPem: key } = await authority.issue({ hosts: ['localhost'] });
  const requests: ReceivedRequest[] = [];
  const server = createServer({ cert, key });
  server.on('request', (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { url: path, headers } = request;
      const received = { path, headers, body: Buffer.concat(chunks) };
      requests.push(received);
      const status = answer(requests.length, received);
      if (status !== 'hang') response.writeHead(status).end();
    });
  });
  // A refused certificate causes this error; the test checks the sender's side.
  server.on('tlsClientError', () => {});
  const port = await listening(server);
  const url = `https://localhost:${port}/notifications/default`;
  const trustedCaPems: [string] = [authority.certificatePem];
  return { url, requests, trustedCaPems };
}
