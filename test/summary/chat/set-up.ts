/** A client, and a real server as its service with the given answers. */
import { expect } from 'vitest';
import { type ChatRequest, createChatClient } from '../../../src/summary/chat/chat-client.ts';
import { InferenceFault } from '../../../src/summary/chat/inference-fault.ts';
import { wholeTextOf } from '../../config/environment.ts';
import { type Answer, startServer } from '../../http/answering-server.ts';

/** Contains characters that are escaped in JSON and in URLs. */
export const key = 'sk-secret/of+mine"1234567890';
export const model = 'meta-llama/Llama-3.3-70B-Instruct';
export const request: ChatRequest = {
  model,
  messages: [
    { role: 'system', content: 'Summarise briefly.' },
    { role: 'user', content: 'größe "5" m' },
  ],
};

export const chatPath = '/openai/v1/chat/completions';
export const modelsPath = '/openai/v1/models';

/** A signal that is never aborted. */
export const neverAborted = () => new AbortController().signal;

export function completionOf(content: unknown, rest: object = {}, finish: unknown = 'stop') {
  return {
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: finish }],
    ...rest,
  };
}

export function clientOf(baseUrl: string, options: { timeoutMs?: number; apiKey?: string } = {}) {
  return createChatClient({ baseUrl, apiKey: key, fetch, ...options });
}

/**
 * Starts a service that answers completions with `chat`. By default it does not list its models.
 */
export async function startService(chat: Answer, models: Answer = { status: 404 }) {
  const server = await startServer(({ path }) => (path === chatPath ? chat : models));
  return { ...server, client: clientOf(server.url), host: new URL(server.url).host };
}

/** Returns the fault of a call. Fails if there was none, or if it contains the key. */
export async function faultOf(call: Promise<unknown>): Promise<InferenceFault> {
  const error = await call.then(
    () => 'no fault',
    (error: unknown) => error,
  );
  if (!(error instanceof InferenceFault)) return expect.fail(`not a fault: ${String(error)}`);
  for (const form of [key, encodeURIComponent(key), JSON.stringify(key).slice(1, -1)]) {
    expect(wholeTextOf(error)).not.toContain(form);
  }
  expect(error.cause).toBeUndefined();
  return error;
}

/**
 * Returns the fault of a completion with this answer, with `HOST` for the server's address in its
 * message.
 */
export async function faultWith(chat: Answer, models?: Answer) {
  const { client, host, requests } = await startService(chat, models);
  const fault = await faultOf(client.complete(request, neverAborted()));
  const { kind, retryAfterMs, tokens } = fault;
  return { kind, retryAfterMs, tokens, message: fault.message.replaceAll(host, 'HOST'), requests };
}
