/** The requests to the inference service: what its specification shows, and nothing else. */
import { isAppError } from '../../domain/app-error.ts';
import { jsonOf } from '../../domain/text.ts';
import { createBoundedFetch, networkFault, UnusableAnswer } from '../../http/bounded-fetch.ts';

/** An answer of any status. */
export interface InferenceAnswer {
  status: number;
  headers: Headers;
  /** The body as it came. */
  text: string;
  /** Undefined when the text is not JSON. */
  json: unknown;
}

/** One attempt each. Reject with InferenceFault when no answer came: timeout, unreachable, cancelled. */
interface InferenceCalls {
  complete(request: ChatRequest, signal: AbortSignal): Promise<InferenceAnswer>;
  models(signal: AbortSignal): Promise<InferenceAnswer>;
}

interface InferenceAccess {
  /** Without `/openai/v1`, and without a slash at its end. */
  baseUrl: string;
  apiKey: string;
  fetch: typeof fetch;
  /** For a whole answer. */
  timeoutMs: number;
}

/** Sends the key to the origin of `baseUrl` alone: a redirect comes back as an answer. */
export function createInferenceCalls(access: InferenceAccess): InferenceCalls {
  const { baseUrl, apiKey, timeoutMs } = access;
  const send = createBoundedFetch(access.fetch);
  const call = async (path: string, signal: AbortSignal, request: object | null) => {
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
      const { status, headers: answered } = response;
      const text = await response.text();
      return { status, headers: answered, text, json: jsonOf(text) };
    } catch (error) {
      throw faultOf(error, access, { isStopped: signal.aborted, isLate: timeout.aborted });
    }
  };
  return {
    complete: ({ model, messages }, signal) =>
      call('chat/completions', signal, { model, messages }),
    models: (signal) => call('models', signal, null),
  };
}

function faultOf(
  error: unknown,
  { baseUrl, timeoutMs }: InferenceAccess,
  { isStopped, isLate }: { isStopped: boolean; isLate: boolean },
): InferenceFault {
  const service = `The inference service (${new URL(baseUrl).host})`;
  if (isStopped || isAppError(error, 'cancelled')) {
    const happened = 'The request to the inference service was stopped.';
    return new InferenceFault('cancelled', { happened, advice: 'Run the command again.' });
  }
  if (error instanceof UnusableAnswer) {
    const happened = `${service} gave an answer that cannot be used: ${error.message}.`;
    return new InferenceFault('unexpected_form', {
      happened,
      advice: 'Check EARSHOT_INFERENCE_URL.',
    });
  }
  if (isLate) {
    const happened = `${service} did not give its whole answer within ${timeoutMs / 1000} s.`;
    const advice = 'Try again later; if that continues, choose a faster model.';
    return new InferenceFault('timeout', { happened, advice });
  }
  const happened = `${service} cannot be asked: ${networkFault(error)}.`;
  const advice = 'Try again later, or check EARSHOT_INFERENCE_URL.';
  return new InferenceFault('unreachable', { happened, advice });
}

interface ChatMessage {
  role: 'system' | 'user';
  content: string;
}

/** Nothing but what the specification shows: options beyond it may be refused. */
export interface ChatRequest {
  /** `<vendor>/<model_name>`. */
  model: string;
  messages: readonly ChatMessage[];
}

export const inferenceFaultKinds = [
  'wrong_key',
  'key_refused',
  'model_unavailable',
  'request_refused',
  'rate_limited',
  'service_error',
  'timeout',
  'unreachable',
  'redirected',
  'not_json',
  'unexpected_form',
  'empty',
  'cut',
  'cancelled',
] as const;

export type InferenceFaultKind = (typeof inferenceFaultKinds)[number];

/**
 * `settings`: nothing goes until a person changes something. `service`: all requests fail alike, and may
 * go later. `job`: this request alone fails. `caller`: who asked has stopped it.
 */
export type FaultScope = 'settings' | 'service' | 'job' | 'caller';

const scopes: Readonly<Record<InferenceFaultKind, FaultScope>> = {
  wrong_key: 'settings',
  key_refused: 'settings',
  model_unavailable: 'settings',
  redirected: 'settings',
  rate_limited: 'service',
  service_error: 'service',
  timeout: 'service',
  unreachable: 'service',
  not_json: 'service',
  unexpected_form: 'service',
  request_refused: 'job',
  empty: 'job',
  cut: 'job',
  cancelled: 'caller',
};

export function faultScope(kind: InferenceFaultKind): FaultScope {
  return scopes[kind];
}

/** What happened and why, and what to do next: whole sentences, without a secret. */
export interface FaultWords {
  happened: string;
  advice: string;
}

/**
 * A request that brought no text. Its message is safe to show to anybody; it has no cause, since errors of
 * the network and of the client library may quote the key.
 */
export class InferenceFault extends Error {
  readonly kind: InferenceFaultKind;
  /** The two parts of the message. */
  readonly happened: string;
  readonly advice: string;
  /** The wait that the service asks for, of any length; null when it asks for none. */
  readonly retryAfterMs: number | null;
  /** Tokens that were spent all the same; null when the service does not tell. */
  readonly tokens: number | null;

  constructor(
    kind: InferenceFaultKind,
    { happened, advice }: FaultWords,
    told: { retryAfterMs?: number | null; tokens?: number | null } = {},
  ) {
    super(`${happened} ${advice}`);
    this.name = 'InferenceFault';
    this.kind = kind;
    this.happened = happened;
    this.advice = advice;
    this.retryAfterMs = told.retryAfterMs ?? null;
    this.tokens = told.tokens ?? null;
  }
}
