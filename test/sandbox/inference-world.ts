/** A client of the inference service of a sandbox whose time stands still. */
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';
import { type Answer, send, startWorld } from './world.ts';

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

/** A user message as a client makes it. */
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

/** `inference` are the knobs to start with. */
export async function startInferenceWorld(
  inference: NonNullable<SandboxOptions['inference']> = {},
  options: Partial<SandboxOptions> = {},
) {
  const { sandbox, control } = await startWorld({ inference, ...options });
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

/** The text of an answer. */
export function textOf({ json }: Answer): unknown {
  return json.choices[0].message.content;
}
