/** Asks the inference service for a text, and for the models that a key may use, as its specification shows. */
import { z } from 'zod';
import { isAppError } from '../../domain/app-error.ts';
import { jsonOf } from '../../domain/text.ts';
import { createBoundedFetch, networkFault, UnusableAnswer } from '../../http/bounded-fetch.ts';
import { foreignText } from '../../http/foreign-text.ts';
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

/** Nothing but what the specification shows: options beyond it may be refused. */
export interface ChatRequest {
  /** `<vendor>/<model_name>`. */
  model: string;
  messages: readonly { role: 'system' | 'user'; content: string }[];
}

interface ChatAnswer {
  text: string;
  /** Of question and answer together; null when the service does not report them. */
  totalTokens: number | null;
}

/** Each call is one request, never repeated. Rejects with InferenceFault, and with nothing else. */
export interface ChatClient {
  complete(request: ChatRequest, signal: AbortSignal): Promise<ChatAnswer>;
  /** Ids as the service lists them, made safe to show; null where it does not list. */
  models(signal: AbortSignal): Promise<string[] | null>;
}

export const answerTimeoutMs = 90_000;

/** For naming models in a message: nobody waits long for that. */
const namingTimeoutMs = 10_000;

interface InferenceAccess {
  /** Without `/openai/v1`, and without a slash at its end. */
  baseUrl: string;
  apiKey: string;
  fetch: typeof fetch;
  /** For a whole answer. */
  timeoutMs?: number;
}

/** The key is sent to the origin of `baseUrl` alone, and shown nowhere. The environment has no say. */
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

/** One attempt: a redirect comes back as an answer. Rejects with InferenceFault when no answer came. */
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
        const happened = 'The request to the inference service was stopped.';
        throw new InferenceFault('cancelled', { happened, advice: 'Run the command again.' });
      }
      throw faultOf(error, baseUrl, timeout.aborted ? timeoutMs : null);
    }
  };
}

/** `lateMs`: the time that was over; null where it was not. */
function faultOf(error: unknown, baseUrl: string, lateMs: number | null): InferenceFault {
  const fault = (kind: InferenceFaultKind, what: string, advice: string) =>
    new InferenceFault(kind, { happened: `The ${serviceAt(baseUrl)} ${what}.`, advice });
  if (error instanceof UnusableAnswer) {
    const what = `gave an answer that cannot be used: ${error.message}`;
    return fault('unexpected_form', what, 'Check EARSHOT_INFERENCE_URL.');
  }
  if (lateMs !== null) {
    const what = `did not give its whole answer within ${lateMs / 1000} s`;
    return fault('timeout', what, 'Try again later; if that continues, choose a faster model.');
  }
  const advice = 'Try again later, or check EARSHOT_INFERENCE_URL.';
  return fault('unreachable', `cannot be asked: ${networkFault(error)}`, advice);
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
function readAnswer(answer: InferenceAnswer, asked: InferenceTarget): ChatAnswer {
  const whole = completion.safeParse(answer.json).data;
  const totalTokens = whole?.usage?.total_tokens ?? null;
  const fault = (kind: InferenceFaultKind, what: string, advice: string) => {
    const happened = `The ${serviceAt(asked.baseUrl)} ${what}`;
    return new InferenceFault(kind, { happened, advice }, { tokens: totalTokens });
  };
  const said = () => quotedMessage(readServiceMessage(answer, [asked.apiKey]));
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
