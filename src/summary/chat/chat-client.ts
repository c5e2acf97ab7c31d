/** Asks the inference service for a text, and for the models that a key may use. */

import { z } from 'zod';
import { foreignText } from '../../http/foreign-text.ts';
import {
  type ChatRequest,
  createInferenceCalls,
  type InferenceAnswer,
  InferenceFault,
  type InferenceFaultKind,
} from './inference-calls.ts';
import { type AskedService, readServiceWords, refusalFault, saying } from './refusal-fault.ts';

export type { ChatAnswer };

/** Each call is one request, never repeated. Rejects with InferenceFault, and with nothing else. */
export interface ChatClient {
  complete(request: ChatRequest, signal: AbortSignal): Promise<ChatAnswer>;
  /** Ids as the service lists them, made safe to show; null where it does not list. */
  models(signal: AbortSignal): Promise<string[] | null>;
}

export const answerTimeoutMs = 90_000;

/** For naming models in a message: nobody waits long for that. */
const namingTimeoutMs = 10_000;

/**
 * `baseUrl` comes without `/openai/v1` and without a slash at its end; `timeoutMs` is for a whole answer.
 * The key is sent to the origin of `baseUrl` alone, and shown nowhere. The environment has no say.
 */
export function createChatClient(options: {
  baseUrl: string;
  apiKey: string;
  fetch: typeof fetch;
  timeoutMs?: number;
}): ChatClient {
  const { baseUrl, apiKey, timeoutMs = answerTimeoutMs } = options;
  const calls = createInferenceCalls({ ...options, timeoutMs });
  const asked = (model: string | null) => ({ baseUrl, apiKey, model });

  const models = async (signal: AbortSignal) => {
    requireSendable(apiKey);
    const answer = await calls.models(signal);
    if (isSuccess(answer)) return readModels(answer, asked(null));
    if ([404, 405, 501].includes(answer.status)) return null;
    throw await refusalFault(answer, asked(null), async () => null);
  };
  return {
    models,
    complete: async (request, signal) => {
      requireSendable(apiKey);
      const answer = await calls.complete(request, signal);
      if (isSuccess(answer)) return readAnswer(answer, asked(request.model));
      throw await refusalFault(answer, asked(request.model), () =>
        models(AbortSignal.any([signal, AbortSignal.timeout(namingTimeoutMs)])).catch(() => null),
      );
    },
  };
}

function isSuccess({ status }: { status: number }): boolean {
  return status >= 200 && status < 300;
}

/** An error about a header that cannot be sent would quote it. */
function requireSendable(apiKey: string): void {
  if (/^[\x21-\x7e]+$/.test(apiKey)) return;
  throw new InferenceFault('wrong_key', {
    happened: 'The key of the inference service holds characters that no key has, or none at all.',
    advice: 'Check EARSHOT_INFERENCE_API_KEY: it is one word of ASCII characters.',
  });
}

interface ChatAnswer {
  text: string;
  /** Of question and answer together; null when the service does not tell. */
  totalTokens: number | null;
}

const tokensMax = 100_000_000;

const modelsMax = 1_000;

const idCharactersMax = 200;

/** A shorter key might stand in a text by chance. */
const keyCharactersMin = 12;

/** Nothing of it but the text is in the specification. */
const completion = z.object({
  choices: z.array(z.unknown()),
  usage: z
    .object({ total_tokens: z.int().min(0).max(tokensMax).nullable().catch(null) })
    .nullish()
    .catch(null),
});

const choice = z.object({
  message: z.object({ content: z.string().nullish() }),
  finish_reason: z.string().nullish().catch(null),
});

/** Throws InferenceFault: not_json, unexpected_form, empty, cut. */
function readAnswer(answer: InferenceAnswer, asked: AskedService): ChatAnswer {
  const whole = completion.safeParse(answer.json).data;
  const totalTokens = whole?.usage?.total_tokens ?? null;
  const fault = (kind: InferenceFaultKind, what: string, advice: string) => {
    const happened = `The inference service (${new URL(asked.baseUrl).host}) ${what}`;
    return new InferenceFault(kind, { happened, advice }, { tokens: totalTokens });
  };
  const said = () => saying(readServiceWords(answer, [asked.apiKey]));
  if (answer.json === undefined) {
    const what = `answered with something else than JSON (${answer.status}).${said()}`;
    throw fault('not_json', what, 'Perhaps EARSHOT_INFERENCE_URL is wrong.');
  }
  const [head] = whole?.choices ?? [];
  const first = choice.safeParse(head).data;
  if (whole === undefined || (head !== undefined && first === undefined)) {
    const what = `answered with JSON that is no chat completion (${answer.status}).${said()}`;
    throw fault('unexpected_form', what, 'Perhaps EARSHOT_INFERENCE_URL is wrong.');
  }
  const reason = first?.finish_reason ?? '';
  if (reason === 'length' || reason === 'content_filter') {
    const by = reason === 'length' ? 'at the length that the model may write' : 'by its filter';
    throw fault('cut', `cut the text off ${by}.`, 'Try again, or choose another model.');
  }
  const text = first?.message.content?.trim() ?? '';
  if (text === '') {
    throw fault('empty', 'answered without a text.', 'Try again, or choose another model.');
  }
  if (asked.apiKey.length >= keyCharactersMin && text.includes(asked.apiKey)) {
    const advice = 'Replace the key, and ask who runs the service.';
    throw fault('unexpected_form', 'answered with a text that holds our key.', advice);
  }
  return { text, totalTokens };
}

const modelList = z.object({ data: z.array(z.unknown()) });

const listedModel = z.object({ id: z.string().min(1) });

/** The ids of a list, made safe to show; null for what is no list (the specification shows none). */
function readModels({ json }: InferenceAnswer, { apiKey }: AskedService): string[] | null {
  const list = modelList.safeParse(json).data?.data;
  if (list === undefined) return null;
  const ids = list.slice(0, modelsMax).flatMap((entry) => {
    const id = listedModel.safeParse(entry).data?.id;
    const options = { secrets: [apiKey], charactersMax: idCharactersMax };
    return id === undefined ? [] : [foreignText(id, options)];
  });
  return [...new Set(ids)];
}
