/** A sandbox whose time stands still, and a client of its services that is logged in. */
import { onTestFinished } from 'vitest';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';

export const startMs = Date.UTC(2026, 4, 1, 12);
export const dayMs = 86_400_000;
export const endpoint = 'https://localhost:1/notifications/default';
/** A creation as a client would send it. */
export const pushRequest = {
  SubscriptionType: 'push',
  SubscriptionEvent: ['created'],
  FilterParam: "Collection/Name eq 'SENTINEL-2'",
  StageOrder: true,
  Priority: 1,
  Status: 'running',
  NotificationEndpoint: endpoint,
  NotificationEpUsername: 'catalogue',
  NotificationEpPassword: 'hunter2-not-to-be-told',
};
const loginFields = {
  client_id: 'cdse-public',
  grant_type: 'password',
  username: 'sandbox',
  password: 'sandbox',
};
/** A token is used for less than the ten minutes that it lives. */
const tokenUseMs = 500_000;

/** What the tests look at of the documented answers; their assertions check what it really is. */
// biome-ignore lint/suspicious/noExplicitAny: the answers of a service are what is under test.
type Json = any;

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: Json;
}

export type AccountWorld = Awaited<ReturnType<typeof startAccountWorld>>;

/** Nothing is published unless a test says so. The sandbox is closed when the test is over. */
export async function startAccountWorld(options: Partial<SandboxOptions> = {}) {
  const sandbox = await startSandbox({ count: 0, now: () => startMs, ...options });
  onTestFinished(sandbox.close);
  const askToken = (fields: Record<string, string>) =>
    send(sandbox.tokenUrl, { method: 'POST', body: new URLSearchParams(fields) });
  const login = (fields: Record<string, string> = {}) => askToken({ ...loginFields, ...fields });
  let token = { text: '', untilMs: 0 };

  /** Calls the catalogue with a token that lives. */
  const call = async (method: string, path: string, body?: unknown) => {
    if (sandbox.clock.now() >= token.untilMs) {
      const { access_token: text } = (await login()).json;
      token = { text, untilMs: sandbox.clock.now() + tokenUseMs };
    }
    return send(`${sandbox.catalogueUrl}/odata/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${token.text}` },
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
  };
  const create = (changes: Record<string, unknown> = {}) =>
    call('POST', '/Subscriptions', { ...pushRequest, ...changes });
  const list = async () => (await call('GET', '/Subscriptions/Info')).json;
  const edit = (id: string, body: unknown) => call('PATCH', `/Subscriptions(${id})`, body);
  const control = (method: string, path: string, body?: unknown) =>
    send(`${sandbox.controlUrl}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const publish = (count: number, event = 'created') =>
    control('POST', '/publish', { count, event });
  return { sandbox, askToken, login, call, create, list, edit, control, publish };
}

/** Sends a request and reads the answer to its end; `json` is undefined for what is no JSON. */
export async function send(url: string, init: RequestInit): Promise<Answer> {
  const response = await fetch(url, init);
  const text = await response.text();
  const { status, headers } = response;
  const isJson = /[/+]json/.test(headers.get('content-type') ?? '');
  return { status, headers, text, json: isJson ? JSON.parse(text) : undefined };
}
