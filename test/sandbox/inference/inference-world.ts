/** A sandbox whose time stands still, and a client of its inference service. */
import { onTestFinished } from 'vitest';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import type { SandboxOptions } from '../../../src/sandbox/sandbox-options.ts';
import { type Answer, send, startMs } from '../account-world.ts';

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

/** A user message as a client makes it; `told` are its facts. */
export function messageOf(told: unknown): string {
  const json = JSON.stringify(told).replaceAll('<', '\\u003c').replaceAll('>', '\\u003e');
  return `Write the text about one satellite product.\n<facts>\n${json}\n</facts>`;
}

export interface AskOptions {
  readonly key?: string | null;
  readonly model?: string;
  readonly content?: string;
  readonly extra?: object;
  readonly signal?: AbortSignal;
}

/** Nothing is published. The sandbox is closed when the test is over. */
export async function startInferenceWorld(options: Partial<SandboxOptions> = {}) {
  const sandbox = await startSandbox({ count: 0, now: () => startMs, ...options });
  onTestFinished(sandbox.close);
  const url = `${sandbox.inferenceUrl}/openai/v1`;
  const post = (body: string, { key: given = key, signal }: AskOptions = {}): Promise<Answer> =>
    send(`${url}/chat/completions`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        ...(given === null ? {} : { Authorization: `Bearer ${given}` }),
      },
      body,
      ...(signal ? { signal } : {}),
    });
  const ask = (options: AskOptions = {}) => {
    const { model: asked = model, content = messageOf(facts), extra = {} } = options;
    const messages = [
      { role: 'system', content: 'Write a short text.' },
      { role: 'user', content },
    ];
    return post(JSON.stringify({ model: asked, messages, ...extra }), options);
  };
  const models = (given: string = key) =>
    send(`${url}/models`, { headers: { Authorization: `Bearer ${given}` } });
  const control = (method: string, path: string, body?: unknown) =>
    send(`${sandbox.controlUrl}${path}`, {
      method,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  return { sandbox, inference: sandbox.inference, url, post, ask, models, control };
}

/** The text of an answer. */
export function textOf({ json }: Answer): unknown {
  return json.choices[0].message.content;
}
