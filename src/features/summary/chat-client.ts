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

/** Returns the facts of a failed request; null for any other error. */
export function inferenceFacts(error: unknown): InferenceFacts | null {
  return isAppError(error) && 'scope' in error.facts
    ? (error.facts as unknown as InferenceFacts)
    : null;
}

export const answerTimeoutMs = 90_000;

interface InferenceAccess {
  /** Without `/openai/v1` and trailing slash. */
  baseUrl: string;
  apiKey: string;
  fetch: typeof fetch;
  /** Timeout for a complete answer. */
  timeoutMs?: number;
}

export type ChatClient = ReturnType<typeof createChatClient>;

/**
 * Sends the key only to the origin of `baseUrl`, without following redirects, and never shows it. Each call sends one
 * request, without retries, and rejects with an AppError, whose facts are `InferenceFacts`.
 */
export function createChatClient(access: InferenceAccess) {
  const { baseUrl, apiKey, timeoutMs = answerTimeoutMs } = access;
  const send = createBoundedFetch(access.fetch);
  const fault = (
    [scope, what, advice]: Failure,
    { body, ...known }: Partial<InferenceFacts> & { body?: string } = {},
  ) => {
    const hint = foreignText(hintOf(body ?? ''), { secrets: [apiKey], charactersMax: 300 });
    const response = hint === '' ? '' : ` Response: "${hint}".`;
    const facts = { status: null, retryAfterMs: null, tokens: null, ...known, scope };
    const message = `The inference service (${new URL(baseUrl).host}) ${what}${response}`;
    return new AppError(scope === 'caller' ? 'cancelled' : 'unavailable', message, {
      advice,
      facts,
    });
  };
  const post = async (request: ChatRequest, signal: AbortSignal) => {
    const timeout = AbortSignal.timeout(timeoutMs);
    const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
    try {
      const response = await send(`${baseUrl}/openai/v1/chat/completions`, {
        ...{ method: 'POST', headers, body: JSON.stringify(request) },
        signal: AbortSignal.any([signal, timeout]),
      });
      const { status, headers: named } = response;
      return { status, headers: named, body: await response.text() };
    } catch (error) {
      if (signal.aborted) throw fault(stopped);
      const what = timeout.aborted
        ? `did not complete its answer within ${timeoutMs / 1000} s.`
        : `cannot be reached: ${networkFault(error)}.`;
      const advice = 'Retry later. If this repeats, check EARSHOT_INFERENCE_URL.';
      throw fault(['service', what, advice]);
    }
  };
  return {
    /** Returns the text without reasoning, and the tokens of request and answer; null if not reported. */
    complete: async (request: ChatRequest, signal: AbortSignal) => {
      // The error of an invalid header would quote the key.
      if (!/^[\x21-\x7e]+$/.test(apiKey)) throw fault(invalidKey);
      const { status, headers, body } = await post(request, signal);
      if (status >= 300) {
        // The message about a key is not quoted: some services repeat a part of the key.
        const quoted = isKeyRefused(status) ? {} : { body };
        const known = { status, retryAfterMs: retryAfterMs(headers), ...quoted };
        throw fault(refusalOf(status, body, request.model), known);
      }
      const answer = completion.safeParse(jsonOf(body)).data;
      if (answer === undefined) throw fault(noCompletion, { status, body });
      const tokens = answer.usage?.total_tokens ?? null;
      const [first] = answer.choices;
      const text = first?.message.content?.replace(reasoning, '').split('<|')[0]?.trim() ?? '';
      const reason = first?.finish_reason;
      const isCut = reason === 'length' || reason === 'content_filter';
      if (text !== '' && !isCut) return { text, tokens };
      const what = isCut ? `ended the text early (${reason}).` : 'returned no text.';
      throw fault(['answer', what, 'Choose another model.'], { status, tokens });
    },
  };
}

type Failure = readonly [scope: InferenceFacts['scope'], what: string, advice: string];

const stopped: Failure = [
  'caller',
  'did not answer before the stop.',
  'The next run repeats the request.',
];

const invalidKey: Failure = [
  'settings',
  'was not called: the key has invalid characters.',
  'Check EARSHOT_INFERENCE_API_KEY: a key has only ASCII characters, no spaces.',
];

const noCompletion: Failure = [
  'service',
  'returned no answer of a chat model.',
  'Check EARSHOT_INFERENCE_URL.',
];

/** Advice for an unavailable model, also of the doctor. */
export const modelAdvice =
  'Set EARSHOT_INFERENCE_MODEL to a model that the control panel of the service lists for the project of the key.';

const isKeyRefused = (status: number) => status >= 401 && status <= 403;

/** Returns the meaning of a status, which the specification does not define. */
function refusalOf(status: number, body: string, model: string): Failure {
  if (status < 400) {
    const what = `redirects (${status}). earshot does not follow redirects, to protect the key.`;
    return ['settings', what, 'Check EARSHOT_INFERENCE_URL.'];
  }
  if (isKeyRefused(status)) {
    const advice =
      'Check EARSHOT_INFERENCE_API_KEY, and that the model belongs to the project of the key.';
    return ['settings', `refuses the key (${status}).`, advice];
  }
  const said = messageOf(body);
  const isModel = /\bmodel\b/i.test(said) && !/token|length|long/i.test(said);
  if ([404, 405, 410].includes(status) || ([400, 422].includes(status) && isModel)) {
    const advice = `${modelAdvice} Check that EARSHOT_INFERENCE_URL is the URL before /openai/v1.`;
    return ['settings', `has no model ${model} at this URL (${status}).`, advice];
  }
  if (status === 429) {
    const advice = 'If this repeats, lower EARSHOT_SUMMARY_REQUESTS_PER_DAY.';
    return ['service', 'received too many requests (429).', advice];
  }
  return status >= 500 || [408, 409, 425].includes(status)
    ? ['service', `is not available (${status}).`, 'Retry later.']
    : ['answer', `refuses this request (${status}).`, 'Choose another model.'];
}

const text = z.string().optional().catch(undefined);

/** Forms of errors; the specification shows none. */
const errorBody = z.object({
  error: z
    .union([z.string(), z.object({ message: text }).transform((one) => one.message)])
    .catch(undefined),
  ...{ message: text, detail: text },
});

/** Returns the message of an error, or the whole body. Other fields may name the model of each request. */
function messageOf(body: string): string {
  const { error, message, detail } = errorBody.safeParse(jsonOf(body)).data ?? {};
  return error ?? message ?? detail ?? body;
}

const part = z.union([
  z.string(),
  z
    .object({ type: z.string().default('text'), text: z.string().catch('') })
    .transform(({ type, text }) => (/^(?:output_)?text$/.test(type) ? text : '')),
]);

/** The content is a text, or a list of parts. */
const choice = z.object({
  message: z.object({
    content: z
      .union([z.string(), z.array(part).transform((parts) => parts.join(''))])
      .nullable()
      .catch(null),
  }),
  finish_reason: z.string().nullish().catch(null),
});

const completion = z.object({
  choices: z.array(choice.nullable().catch(null)),
  usage: z
    .object({ total_tokens: z.int().min(0).max(1e8).nullable().catch(null) })
    .nullish()
    .catch(null),
});

/** Everything up to the end of the reasoning (facts, catalogue 6), and the marks of gpt-oss. */
const reasoning =
  /^[\s\S]*(?:<\/(?:mm:)?think(?:ing)?>|<\|channel\|>\s*final[^<]*(?:<\|constrain\|>[^<]*)?<\|message\|>)/i;
