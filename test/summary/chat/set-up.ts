/** A client and the service that it asks, for tests: a real server with the given answers. */
import { expect } from 'vitest';
import { type ChatRequest, createChatClient } from '../../../src/summary/chat/chat-client.ts';
import { InferenceFault } from '../../../src/summary/chat/inference-fault.ts';
import { wholeTextOf } from '../../config/environment.ts';
import { type Answer, startServer } from '../../http/answering-server.ts';

/** With characters that change their form in JSON and in addresses. */
export const key = 'sk-secret/of+mine"1234567890';
export const model = 'meta-llama/Llama-3.3-70B-Instruct';
export const request: ChatRequest = {
  model,
  messages: [
    { role: 'system', content: 'Tell it in short.' },
    { role: 'user', content: 'größe "5" m' },
  ],
};

export const chatPath = '/openai/v1/chat/completions';
export const modelsPath = '/openai/v1/models';

/** Never aborted. */
export const lasting = () => new AbortController().signal;

export function completionOf(content: unknown, rest: object = {}, finish: unknown = 'stop') {
  return {
    choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: finish }],
    ...rest,
  };
}

export function clientOf(baseUrl: string, options: { timeoutMs?: number; apiKey?: string } = {}) {
  return createChatClient({ baseUrl, apiKey: key, fetch, ...options });
}

/** A service that answers completions so; its models are not listed by default. */
export async function startService(chat: Answer, models: Answer = { status: 404 }) {
  const server = await startServer(({ path }) => (path === chatPath ? chat : models));
  return { ...server, client: clientOf(server.url), host: new URL(server.url).host };
}

/** The fault of a call; fails when there was none, or when the key is anywhere in it. */
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

/** What a completion answered so comes to, with `HOST` for the server's address in its message. */
export async function faultWith(chat: Answer, models?: Answer) {
  const { client, host, requests } = await startService(chat, models);
  const fault = await faultOf(client.complete(request, lasting()));
  const { kind, retryAfterMs, tokens } = fault;
  return { kind, retryAfterMs, tokens, message: fault.message.replaceAll(host, 'HOST'), requests };
}
