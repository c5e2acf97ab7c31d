/** Client of the inference service: requests completions, and lists the models available to a key. */
import { z } from 'zod';
import { isAppError } from '../../domain/app-error.ts';
import { jsonOf } from '../../domain/text.ts';
import { createBoundedFetch, networkFault, UnusableAnswer } from '../../http/bounded-fetch.ts';
import { foreignText } from '../../http/foreign-text.ts';
import { answerText, messageContent } from './answer-text.ts';
import {
  type InferenceAnswer,
  InferenceFault,
  type InferenceFaultKind,
  type InferenceTarget,
  quotedMessage,
  readServiceMessage,
  refusalFault,
  serviceAt,
} from './inference-fault.ts';

/** Only fields of the specification: a service may reject others. */
export interface ChatRequest {
  /** `<vendor>/<model_name>`. */
  model: string;
  messages: readonly { role: 'system' | 'user'; content: string }[];
}

interface ChatAnswer {
  text: string;
  /** Tokens of request and answer; null if not reported. */
  totalTokens: number | null;
}

/** Each call sends one request, without retries. Rejects only with InferenceFault. */
export interface ChatClient {
  complete(request: ChatRequest, signal: AbortSignal): Promise<ChatAnswer>;
  /** Returns sanitized model ids; null if the service does not list models. */
  models(signal: AbortSignal): Promise<string[] | null>;
}

export const answerTimeoutMs = 90_000;

/** Timeout for listing the models that an error message names. */
const namingTimeoutMs = 10_000;

interface InferenceAccess {
  /** Without `/openai/v1` and trailing slash. */
  baseUrl: string;
  apiKey: string;
  fetch: typeof fetch;
  /** Timeout for a complete answer. */
  timeoutMs?: number;
}

/** Sends the key only to the origin of `baseUrl`, and never shows it. Ignores environment variables. */
export function createChatClient(access: InferenceAccess): ChatClient {
  const { baseUrl, apiKey } = access;
  const call = createCall(access);
  const asked = (model: string | null) => ({ baseUrl, apiKey, model });

  const models = async (signal: AbortSignal) => {
    const answer = await call('models', signal, null);
    if (isSuccess(answer)) return readModels(answer, asked(null));
    if ([404, 405, 501].includes(answer.status)) return null;
    throw await refusalFault(answer, asked(null), async () => null);
  };
  return {
    models,
    complete: async ({ model, messages }, signal) => {
      const answer = await call('chat/completions', signal, { model, messages });
      if (isSuccess(answer)) return readAnswer(answer, asked(model));
      throw await refusalFault(answer, asked(model), () =>
        models(AbortSignal.any([signal, AbortSignal.timeout(namingTimeoutMs)])).catch(() => null),
      );
    },
  };
}

/** Sends one attempt without following redirects. Rejects with InferenceFault if no answer arrives. */
function createCall({ baseUrl, apiKey, fetch, timeoutMs = answerTimeoutMs }: InferenceAccess) {
  const send = createBoundedFetch(fetch);
  return async (
    path: string,
    signal: AbortSignal,
    request: ChatRequest | null,
  ): Promise<InferenceAnswer> => {
    requireSendable(apiKey);
    const json = 'application/json';
    const headers = new Headers({ accept: json, authorization: `Bearer ${apiKey}` });
    const timeout = AbortSignal.timeout(timeoutMs);
    const init: RequestInit = { headers, signal: AbortSignal.any([signal, timeout]) };
    if (request !== null) {
      headers.set('content-type', json);
      Object.assign(init, { method: 'POST', body: JSON.stringify(request) });
    }
    try {
      const response = await send(`${baseUrl}/openai/v1/${path}`, init);
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, json: jsonOf(text) };
    } catch (error) {
      if (signal.aborted || isAppError(error, 'cancelled')) {
        const happened = 'The request to the inference service was cancelled.';
        throw new InferenceFault('cancelled', { happened, advice: 'Run the command again.' });
      }
      throw faultOf(error, baseUrl, timeout.aborted ? timeoutMs : null);
    }
  };
}

/** `elapsedTimeoutMs` is null if the timeout did not elapse. */
function faultOf(error: unknown, baseUrl: string, elapsedTimeoutMs: number | null): InferenceFault {
  const fault = (kind: InferenceFaultKind, what: string, advice: string) =>
    new InferenceFault(kind, { happened: `The ${serviceAt(baseUrl)} ${what}.`, advice });
  if (error instanceof UnusableAnswer) {
    const what = `returned an unusable answer: ${error.message}`;
    return fault('unexpected_form', what, 'Check EARSHOT_INFERENCE_URL.');
  }
  if (elapsedTimeoutMs !== null) {
    const what = `did not complete its answer within ${elapsedTimeoutMs / 1000} s`;
    return fault('timeout', what, 'Retry later. If this happens again, choose a faster model.');
  }
  const advice = 'Retry later. If this happens again, check EARSHOT_INFERENCE_URL.';
  return fault('unreachable', `cannot be reached: ${networkFault(error)}`, advice);
}

function isSuccess({ status }: { status: number }): boolean {
  return status >= 200 && status < 300;
}

/** Rejects invalid keys here, because the error about an invalid header would quote the key. */
function requireSendable(apiKey: string): void {
  if (/^[\x21-\x7e]+$/.test(apiKey)) return;
  throw new InferenceFault('wrong_key', {
    happened: 'The key of the inference service is empty or contains invalid characters.',
    advice: 'Check EARSHOT_INFERENCE_API_KEY: a key has only ASCII characters and no spaces.',
  });
}

const tokensMax = 100_000_000;
const modelsMax = 1_000;
const idCharactersMax = 200;

/** A shorter key may occur in a text by chance. */
const keyCharactersMin = 12;

/** Only the text is in the specification. */
const completion = z.object({
  choices: z.array(z.unknown()),
  usage: z
    .object({ total_tokens: z.int().min(0).max(tokensMax).nullable().catch(null) })
    .nullish()
    .catch(null),
});

const choice = z.object({
  message: z.object({ content: messageContent }),
  finish_reason: z.string().nullish().catch(null),
});

/** Throws InferenceFault: not_json, unexpected_form, empty, cut. */
function readAnswer(answer: InferenceAnswer, asked: InferenceTarget): ChatAnswer {
  const whole = completion.safeParse(answer.json).data;
  const totalTokens = whole?.usage?.total_tokens ?? null;
  const fault = (kind: InferenceFaultKind, what: string, advice: string) => {
    const happened = `The ${serviceAt(asked.baseUrl)} ${what}`;
    return new InferenceFault(kind, { happened, advice }, { tokens: totalTokens });
  };
  const quote = () => quotedMessage(readServiceMessage(answer, [asked.apiKey]));
  if (answer.json === undefined) {
    const what = `returned an answer that is not JSON (${answer.status}).${quote()}`;
    throw fault('not_json', what, 'Check EARSHOT_INFERENCE_URL.');
  }
  const [head] = whole?.choices ?? [];
  const first = choice.safeParse(head).data;
  if (whole === undefined || (head !== undefined && first === undefined)) {
    const what = `returned JSON that is not the answer of a chat model (${answer.status}).${quote()}`;
    throw fault('unexpected_form', what, 'Check EARSHOT_INFERENCE_URL.');
  }
  const reason = first?.finish_reason ?? '';
  if (reason === 'length' || reason === 'content_filter') {
    const why =
      reason === 'length' ? "at the model's maximum length" : 'because of its content filter';
    throw fault('cut', `truncated the text ${why}.`, 'Retry, or choose another model.');
  }
  const text = answerText(first?.message.content);
  if (text === '') {
    throw fault('empty', 'returned no text.', 'Retry, or choose another model.');
  }
  if (asked.apiKey.length >= keyCharactersMin && text.includes(asked.apiKey)) {
    const advice = 'Replace the key, and contact the operator of the service.';
    throw fault('unexpected_form', 'returned a text that contains the API key.', advice);
  }
  return { text, totalTokens };
}

const modelList = z.object({ data: z.array(z.unknown()) });
const listedModel = z.object({ id: z.string().min(1) });

/** Returns sanitized model ids; null if the answer is not a list (the specification has none). */
function readModels({ json }: InferenceAnswer, { apiKey }: InferenceTarget): string[] | null {
  const list = modelList.safeParse(json).data?.data;
  if (list === undefined) return null;
  const ids = list.slice(0, modelsMax).flatMap((entry) => {
    const id = listedModel.safeParse(entry).data?.id;
    const options = { secrets: [apiKey], charactersMax: idCharactersMax };
    return id === undefined ? [] : [foreignText(id, options)];
  });
  return [...new Set(ids)];
}
