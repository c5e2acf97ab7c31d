/** Client of the inference service: requests completions (spec, inference service). */
import { z } from 'zod';
import { createBoundedFetch, networkFault, retryAfterMs } from '../../core/http/bounded-fetch.ts';
import { foreignText, hintOf } from '../../core/http/service-error.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import { jsonOf } from '../../core/terms/text.ts';

/** Only fields of the specification: a service may reject others. */
export interface ChatRequest {
  /** `<vendor>/<model_name>`. */
  model: string;
  messages: readonly { role: 'system' | 'user'; content: string }[];
}

export interface ChatAnswer {
  text: string;
  /** Tokens of request and answer; null if not reported. */
  tokens: number | null;
}

/** Each call sends one request, without retries. Rejects with an AppError, whose facts are `InferenceFacts`. */
export interface ChatClient {
  complete(request: ChatRequest, signal: AbortSignal): Promise<ChatAnswer>;
}

/**
 * Facts of a failed request. `settings`: every request fails until a person changes the settings. `service`: every
 * request fails now, and may succeed later. `answer`: only this answer is not usable. `caller`: the signal was aborted.
 */
export interface InferenceFacts {
  scope: 'settings' | 'service' | 'answer' | 'caller';
  status: number | null;
  /** `Retry-After`; null without one. */
  retryAfterMs: number | null;
  /** Tokens spent nevertheless; null if not reported. */
  tokens: number | null;
}

export const answerTimeoutMs = 90_000;

/** Returns the facts of a failed request; null for any other error. */
export function inferenceFacts(error: unknown): InferenceFacts | null {
  return isAppError(error) && 'scope' in error.facts
    ? (error.facts as unknown as InferenceFacts)
    : null;
}

interface InferenceAccess {
  /** Without `/openai/v1` and trailing slash. */
  baseUrl: string;
  apiKey: string;
  fetch: typeof fetch;
  /** Timeout for a complete answer. */
  timeoutMs?: number;
}

interface Answer {
  status: number;
  headers: Headers;
  body: string;
}

/** Sends the key only to the origin of `baseUrl`, and never shows it. */
export function createChatClient(access: InferenceAccess): ChatClient {
  const call = createCall(access);
  const fault = createFault(access);
  return {
    complete: async (request, signal) => {
      const answer = await call(request, signal);
      if (answer.status >= 300) throw refusalOf(answer, fault, request.model);
      return readAnswer(answer, fault);
    },
  };
}

const messageCharactersMax = 300;

type Fault = ReturnType<typeof createFault>;

/** Returns a function that creates errors, which name the service and contain no secret. */
function createFault({ baseUrl, apiKey }: InferenceAccess) {
  const service = `The inference service (${new URL(baseUrl).host})`;
  const clean = (text: string) =>
    foreignText(text, { secrets: [apiKey], charactersMax: messageCharactersMax });
  const create = (
    scope: InferenceFacts['scope'],
    what: string,
    advice: string,
    known: Partial<InferenceFacts> = {},
  ) => {
    const facts = { status: null, retryAfterMs: null, tokens: null, ...known, scope };
    const code = scope === 'caller' ? 'cancelled' : 'unavailable';
    return new AppError(code, `${service} ${what}`, { advice, facts });
  };
  return Object.assign(create, { clean });
}

/** Sends one attempt without following redirects. */
function createCall(access: InferenceAccess) {
  const { baseUrl, apiKey, timeoutMs = answerTimeoutMs } = access;
  const send = createBoundedFetch(access.fetch);
  const fault = createFault(access);
  return async (request: ChatRequest, signal: AbortSignal): Promise<Answer> => {
    // The error of an invalid header would quote the key.
    if (!/^[\x21-\x7e]+$/.test(apiKey)) {
      const advice = 'Check EARSHOT_INFERENCE_API_KEY: a key has only ASCII characters, no spaces.';
      throw fault('settings', 'was not called: the key has invalid characters.', advice);
    }
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      const response = await send(`${baseUrl}/openai/v1/chat/completions`, {
        method: 'POST',
        headers: {
          accept: 'application/json',
          authorization: `Bearer ${apiKey}`,
          'content-type': 'application/json',
        },
        body: JSON.stringify(request),
        signal: AbortSignal.any([signal, timeout]),
      });
      return { status: response.status, headers: response.headers, body: await response.text() };
    } catch (error) {
      if (signal.aborted) {
        throw fault(
          'caller',
          'did not answer before the stop.',
          'The next run repeats the request.',
        );
      }
      const what = timeout.aborted
        ? `did not complete its answer within ${timeoutMs / 1000} s.`
        : `cannot be reached: ${networkFault(error)}.`;
      throw fault('service', what, 'Retry later. If this repeats, check EARSHOT_INFERENCE_URL.');
    }
  };
}

/** Advice for an unavailable model, also of the doctor. */
export const modelAdvice =
  'Set EARSHOT_INFERENCE_MODEL to a model that the control panel of the service lists for the project of the key.';

/** Meanings of statuses, which the specification does not define. */
function refusalOf(answer: Answer, fault: Fault, model: string): AppError {
  const { status, headers } = answer;
  const known = { status, retryAfterMs: retryAfterMs(headers) };
  const said = messageOf(answer);
  const quote = said === '' ? '' : ` Response: "${fault.clean(said)}".`;
  if (status < 400) {
    const what = `redirects (${status}). earshot does not follow redirects, to protect the key.`;
    return fault('settings', what, 'Check EARSHOT_INFERENCE_URL.', known);
  }
  if (status === 401 || status === 402 || status === 403) {
    // The message is not quoted: some services repeat a part of the key.
    const advice =
      'Check EARSHOT_INFERENCE_API_KEY, and that the model belongs to the project of the key.';
    return fault('settings', `refuses the key (${status}).`, advice, known);
  }
  const isModel = /\bmodel\b/i.test(said) && !/token|length|long/i.test(said);
  if ([404, 405, 410].includes(status) || ([400, 422].includes(status) && isModel)) {
    const advice = `${modelAdvice} Check that EARSHOT_INFERENCE_URL is the URL before /openai/v1.`;
    return fault(
      'settings',
      `has no model ${model} at this URL (${status}).${quote}`,
      advice,
      known,
    );
  }
  if (status === 429) {
    const advice = 'If this repeats, lower EARSHOT_SUMMARY_REQUESTS_PER_DAY.';
    return fault('service', `received too many requests (429).${quote}`, advice, known);
  }
  return status >= 500 || status === 408 || status === 409 || status === 425
    ? fault('service', `is not available (${status}).${quote}`, 'Retry later.', known)
    : fault('answer', `refuses this request (${status}).${quote}`, 'Choose another model.', known);
}

const errorBody = z.object({
  error: z
    .union([z.string(), z.object({ message: z.string() })])
    .nullish()
    .catch(null),
  message: z.string().nullish().catch(null),
  detail: z.string().nullish().catch(null),
});

/** Returns the message of an error body in the usual forms (facts, catalogue 6), or a hint. */
function messageOf({ body }: Answer): string {
  const known = errorBody.safeParse(jsonOf(body)).data;
  const { error } = known ?? {};
  return (
    (typeof error === 'object' ? error?.message : error) ??
    known?.message ??
    known?.detail ??
    hintOf(body)
  );
}

const completion = z.object({
  choices: z.array(z.unknown()),
  usage: z
    .object({ total_tokens: z.int().min(0).max(1e8).nullable().catch(null) })
    .nullish()
    .catch(null),
});

const part = z.object({ type: z.string().default('text'), text: z.string().catch('') });

/** The content is a text, or a list of parts. */
const choice = z.object({
  message: z.object({
    content: z
      .union([z.string(), z.array(z.union([z.string(), part]))])
      .nullable()
      .catch(null),
  }),
  finish_reason: z.string().nullish().catch(null),
});

/** Everything up to the end of the reasoning (facts, catalogue 6), and the marks of gpt-oss. */
const reasoning =
  /^[\s\S]*(?:<\/(?:mm:)?think(?:ing)?>|<\|channel\|>\s*final[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>)/i;

/** Returns the text without reasoning. Throws for every other form of a success. */
function readAnswer(answer: Answer, fault: Fault): ChatAnswer {
  const json = jsonOf(answer.body);
  const read = completion.safeParse(json).data;
  if (read === undefined) {
    const what = `returned no answer of a chat model (${answer.status}): "${fault.clean(messageOf(answer))}".`;
    throw fault('service', what, 'Check EARSHOT_INFERENCE_URL.', { status: answer.status });
  }
  const tokens = read.usage?.total_tokens ?? null;
  const first = choice.safeParse(read.choices[0]).data;
  const content = first?.message.content ?? '';
  const parts = typeof content === 'string' ? [content] : content;
  const whole = parts.map((one) => {
    if (typeof one === 'string') return one;
    return /^(?:output_)?text$/.test(one.type) ? one.text : '';
  });
  const text = whole.join('').replace(reasoning, '').split('<|')[0]?.trim() ?? '';
  const reason = first?.finish_reason;
  const isCut = reason === 'length' || reason === 'content_filter';
  if (text !== '' && !isCut) return { text, tokens };
  const what = isCut ? `ended the text early (${reason}).` : 'returned no text.';
  throw fault('answer', what, 'Choose another model.', { status: answer.status, tokens });
}
