/** A sandbox with a stopped clock, clients of its services, and an endpoint that records its requests. */
import { writeFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, vi } from 'vitest';
import {
  createCertificateAuthority,
  type KeyedCertificate,
} from '../../src/sandbox/certificate-authority.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

export const startMs = Date.UTC(2026, 4, 1, 12);
export const dayMs = 86_400_000;
export const endpoint = 'https://localhost:1/notifications/default';
export const uuid = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
export const unknownId = '991c4730-cf6f-432a-9f6c-47be0230ff45';
export const iso = (ms: number) => new Date(ms).toISOString();
export const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Body of a creation, as a client would send it. */
export const pushRequest = {
  SubscriptionType: 'push',
  SubscriptionEvent: ['created'],
  FilterParam: "Collection/Name eq 'SENTINEL-2'",
  StageOrder: true,
  Priority: 1,
  Status: 'running',
  NotificationEndpoint: endpoint,
  NotificationEpUsername: 'catalogue',
  NotificationEpPassword: 'hunter2-secret',
};
export const loginFields = {
  client_id: 'cdse-public',
  grant_type: 'password',
  username: 'sandbox',
  password: 'sandbox',
};

/** Time after which a new token is requested, less than its lifetime of ten minutes. */
const tokenUseMs = 500_000;

/** Answer of a service; the assertions check its form. */
// biome-ignore lint/suspicious/noExplicitAny: the answers of a service are what is under test.
type Json = any;
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Json;
}

/** Sends a request and reads the whole answer; `json` is undefined for other content types. */
export async function send(url: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(url, init);
  const text = await response.text();
  const { status, headers } = response;
  const isJson = /[/+]json/.test(headers.get('content-type') ?? '');
  return { status, headers, text, json: isJson ? JSON.parse(text) : undefined };
}

const bodyOf = (body: unknown) =>
  body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) };

/** Writes the records to a file and returns its path. */
export function recordsFileOf(records: readonly object[]): string {
  const file = join(temporaryDirectory(), 'records.jsonl');
  writeFileSync(file, records.map((one) => JSON.stringify(one)).join('\n'));
  return file;
}

export type TestSandbox = Awaited<ReturnType<typeof startTestSandbox>>;

/** Starts a sandbox that publishes only on request. Closed at the end of the test. */
export async function startTestSandbox(options: Partial<SandboxOptions> = {}) {
  const sandbox = await startSandbox({ count: 0, now: () => startMs, ...options });
  onTestFinished(sandbox.close);
  const askToken = (fields: Record<string, string>) =>
    send(sandbox.tokenUrl, { method: 'POST', body: new URLSearchParams(fields) });
  const login = (fields: Record<string, string> = {}) => askToken({ ...loginFields, ...fields });
  const root = `${sandbox.catalogueUrl}/odata/v1`;
  let token = { text: '', untilMs: 0 };
  /** Calls the catalogue with a valid token. */
  const call = async (method: string, path: string, body?: unknown) => {
    if (sandbox.clock.now() >= token.untilMs) {
      const { access_token: text } = (await login()).json;
      token = { text, untilMs: sandbox.clock.now() + tokenUseMs };
    }
    const headers = { Authorization: `Bearer ${token.text}` };
    return send(`${root}${path}`, { method, headers, ...bodyOf(body) });
  };
  const create = (changes: Record<string, unknown> = {}) =>
    call('POST', '/Subscriptions', { ...pushRequest, ...changes });
  const list = async () => (await call('GET', '/Subscriptions/Info')).json;
  const edit = (id: string, body: unknown) => call('PATCH', `/Subscriptions(${id})`, body);
  const control = (method: string, path: string, body?: unknown) =>
    send(`${sandbox.controlUrl}${path}`, { method, ...bodyOf(body) });
  const publish = (count: number, event = 'created') =>
    control('POST', '/publish', { count, event });
  return { sandbox, root, askToken, login, call, create, list, edit, control, publish };
}

/** Starts a sandbox and an endpoint for its subscriptions. Failed attempts are retried immediately. */
export async function startDelivering(
  options: Partial<SandboxOptions> = {},
  answer?: EndpointAnswer,
) {
  const { url, requests, trustedCaPems } = await startTrustedEndpoint(answer);
  const test = await startTestSandbox({ trustedCaPems, retryDelaysMs: [0, 0, 0], ...options });
  /** Creates a subscription with a path of its own. */
  const subscribe = async (name: string, changes: Record<string, unknown> = {}) => {
    const NotificationEndpoint = new URL(`/notifications/${name}`, url).href;
    const own = { NotificationEndpoint, NotificationEpUsername: `user-${name}`, FilterParam: '' };
    return (await test.create({ ...own, ...changes })).json.Id as string;
  };
  /** Publishes, and waits until all notifications are delivered or lost. */
  const publishAll = async (count: number, event?: string) => {
    expect((await test.publish(count, event)).json).toEqual({ published: count });
    await vi.waitFor(() => expect(test.sandbox.totals().pending).toBe(0), 10_000);
  };
  const sentTo = (name: string) => requests.filter(({ path }) => path?.endsWith(`/${name}`));
  return { ...test, requests, subscribe, publishAll, sentTo };
}

export interface PullOptions extends Partial<SandboxOptions> {
  readonly changes?: Record<string, unknown>;
}

export const ackIdsOf = ({ json }: Answer): string[] =>
  json.map(({ AckId }: { AckId: string }) => AckId);
export const productIdsOf = ({ json }: Answer): string[] =>
  json.map(({ ProductId }: { ProductId: string }) => ProductId);

/** Starts a sandbox with a pull subscription, and a reader of its queue. */
export async function startPull({ changes = {}, ...options }: PullOptions = {}) {
  const test = await startTestSandbox(options);
  const subscribe = async (own: Record<string, unknown> = {}): Promise<string> => {
    const pull = { SubscriptionType: 'pull', NotificationEndpoint: undefined, FilterParam: '' };
    return (await test.create({ ...pull, ...own })).json.Id;
  };
  const id = await subscribe(changes);
  const read = (top?: number | string, of = id) =>
    test.call('GET', `/Subscriptions(${of})/Read${top === undefined ? '' : `?$top=${top}`}`);
  const ack = (ackId: string, of = id) =>
    test.call('POST', `/Subscriptions(${of})/Ack?$ackid=${encodeURIComponent(ackId)}`);
  /** Acknowledges a number of entries, oldest first. */
  const ackFirst = async (count: number) => ack(ackIdsOf(await read(count)).at(-1) ?? '');
  const state = () => {
    const [queue] = test.sandbox.queues();
    if (queue === undefined) throw new RangeError('There is no queue.');
    return queue;
  };
  const outcomes = () =>
    test.sandbox
      .entries()
      .map(({ outcome }) => outcome[0])
      .join('');
  return { ...test, subscribe, id, read, ack, ackFirst, state, outcomes };
}

/** Returns the expected answer to an Ack. */
export const ackAnswer = (AckMessagesNum: number, CurrentQueueLength: number) => ({
  '@odata.context': '$metadata#Notification/$entity',
  AckMessagesNum,
  CurrentQueueLength,
  MaxQueueLength: 100_000,
});

export interface ReceivedRequest {
  readonly method: string | undefined;
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Port of the sender; identifies the connection. */
  readonly remotePort: number | undefined;
}

export const jsonOf = ({ body }: { body: Buffer }) => JSON.parse(body.toString());

interface AnswerParts {
  readonly status: number;
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** Returns the answer to the nth request (from 1); a number is a status; 'hang' never answers. */
export type EndpointAnswer = (
  nth: number,
  request: ReceivedRequest,
) => number | 'hang' | AnswerParts;

/** Starts an endpoint on loopback, with plain HTTP if there is no certificate. Closed at the end of the test. */
export async function startEndpoint({
  certificate,
  answer = () => 200,
}: {
  certificate?: KeyedCertificate;
  answer?: EndpointAnswer | undefined;
}) {
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
  // A refused certificate causes this error; the test checks the sender's side.
  server.on('tlsClientError', () => {});
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const close = (resolve: () => void) => {
    server.close(() => resolve());
    server.closeAllConnections();
  };
  onTestFinished(() => new Promise<void>(close));
  const { port } = server.address() as AddressInfo; // Not null while a TCP server listens.
  const url = new URL(`${tls ? 'https' : 'http'}://localhost:${port}/notifications/try-out`);
  const connections = () =>
    new Promise<number>((resolve, reject) => {
      server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
    });
  return { url, port, requests, connections };
}

/** Starts an endpoint with a certificate of a new authority, and returns its root certificate. */
export async function startTrustedEndpoint(answer?: EndpointAnswer) {
  const authority = await createCertificateAuthority({ now: Date.now });
  const certificate = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const started = await startEndpoint({ certificate, answer });
  return { ...started, trustedCaPems: [authority.certificatePem] };
}

export const key = 'sandbox-key';
export const otherKey = 'other-sandbox-key';
export const model = 'openai/gpt-oss-120b';
export const demoModels = [model, 'meta-llama/Llama-3.3-70B-Instruct'];
export const otherModel = 'mistralai/Mistral-Small-3.2-24B-Instruct-2506';
export const facts = [
  { label: 'product', text: 'Sentinel-2B Level-2A, surface reflectance' },
  { label: 'name', text: 'S2B_MSIL2A_20240520T101559_N0510_R065_T34UCF_20240520T121203.SAFE' },
  { label: 'sensed', text: '20 May 2024 10:15 UTC' },
  { label: 'countries', text: 'mostly Poland, partly Slovakia' },
  { label: 'cloud cover', text: '12.3 %' },
];
export const rightText =
  'The product is Sentinel-2B Level-2A, surface reflectance. It was sensed on 20 May 2024 10:15 UTC. It covers mostly Poland, partly Slovakia.';

/** Returns a user message as a client sends it. */
export function messageOf(given: unknown): string {
  const json = JSON.stringify(given).replaceAll('<', '\\u003c').replaceAll('>', '\\u003e');
  return `Write the text about one satellite product.\n<facts>\n${json}\n</facts>`;
}

export interface AskOptions {
  readonly key?: string | null;
  readonly model?: string;
  readonly content?: string;
  readonly extra?: object;
  readonly signal?: AbortSignal;
}

/** Starts a sandbox with the given settings of its inference service, and a client of that service. */
export async function startInference(
  inference: NonNullable<SandboxOptions['inference']> = {},
  options: Partial<SandboxOptions> = {},
) {
  const { sandbox, control } = await startTestSandbox({ inference, ...options });
  const url = `${sandbox.inferenceUrl}/openai/v1`;
  const authorized = (given: string | null) =>
    given === null ? {} : { Authorization: `Bearer ${given}` };
  const post = (body: string, { key: given = key, signal }: AskOptions = {}): Promise<Answer> => {
    const headers = { 'Content-Type': 'application/json', ...authorized(given) };
    const init = { method: 'POST', headers, body, signal: signal ?? null };
    return send(`${url}/chat/completions`, init);
  };
  const ask = (asked: AskOptions = {}) => {
    const { model: name = model, content = messageOf(facts), extra = {} } = asked;
    const system = { role: 'system', content: 'Write a short text.' };
    const messages = [system, { role: 'user', content }];
    return post(JSON.stringify({ model: name, messages, ...extra }), asked);
  };
  const models = (given: string = key) => send(`${url}/models`, { headers: authorized(given) });
  return { sandbox, inference: sandbox.inference, url, post, ask, models, control };
}

/** Returns the text of an answer. */
export function textOf({ json }: Answer): unknown {
  return json.choices[0].message.content;
}
