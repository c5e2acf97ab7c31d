/** The client library of the chat-completion interface, kept to what the specification shows. */
import type { APIError, OpenAI } from 'openai';
import { isAppError } from '../../domain/app-error.ts';
import { jsonOf } from '../../domain/json-of.ts';
import { createBoundedFetch, UnusableAnswer } from '../../http/bounded-fetch.ts';
import { networkFault } from '../../http/network-fault.ts';
import type { ChatRequest } from './chat-request.ts';
import { InferenceFault } from './inference-fault.ts';

/** An answer of any status. */
export interface InferenceAnswer {
  status: number;
  headers: Headers;
  /** As it came; empty for an error in JSON. */
  text: string;
  /** Undefined when the text is not JSON. Of an error, what its field `error` holds where it has one. */
  json: unknown;
}

/** One try each. Reject with InferenceFault when no answer came: timeout, unreachable, cancelled. */
export interface InferenceCalls {
  complete(request: ChatRequest, signal: AbortSignal): Promise<InferenceAnswer>;
  models(signal: AbortSignal): Promise<InferenceAnswer>;
}

export interface InferenceAccess {
  /** Without `/openai/v1`, and without a slash at its end. */
  baseUrl: string;
  apiKey: string;
  fetch: typeof fetch;
  /** For a whole answer. */
  timeoutMs: number;
}

type Library = typeof import('openai');

/** Loads the library with the first call: that costs what a process without a model need not pay. */
export function createInferenceCalls(access: InferenceAccess): InferenceCalls {
  const call = async (signal: AbortSignal, send: (client: OpenAI) => Promise<Response>) => {
    const library = await import('openai');
    const client = createClient(library, access);
    try {
      const { status, headers, text } = await whole(await send(client));
      return { status, headers, text, json: jsonOf(text) };
    } catch (error) {
      if (isAnswer(library, error)) return answerIn(error);
      throw faultOf(library, error, access, signal);
    }
  };
  return {
    complete: ({ model, messages }, signal) =>
      call(signal, ({ chat }) => {
        const body = { model, messages: [...messages] };
        return chat.completions.create(body, { signal }).asResponse();
      }),
    models: (signal) => call(signal, ({ models }) => models.list({ signal }).asResponse()),
  };
}

/** Everything that the library would else read from the environment is named. */
function createClient({ OpenAI }: Library, access: InferenceAccess): OpenAI {
  const options = {
    baseURL: `${access.baseUrl}/openai/v1`,
    apiKey: access.apiKey,
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    logLevel: 'off' as const,
    // The worker has a budget of its own for tries.
    maxRetries: 0,
    timeout: access.timeoutMs,
    fetch: createPlainFetch(access),
  };
  try {
    return new OpenAI(options);
  } catch {
    // The one variable that it reads whatever it is told; what it then sends is taken off below.
    const happened = 'The client library of the inference service cannot start.';
    const advice = 'Take OPENAI_CUSTOM_HEADERS out of the environment: earshot does not use it.';
    throw new InferenceFault('unreachable', { happened, advice });
  }
}

/**
 * Sends the headers of the specification and no others: the library adds some that tell about this
 * machine, and those of OPENAI_CUSTOM_HEADERS, which may even replace the key.
 */
function createPlainFetch({ apiKey, fetch: send }: InferenceAccess): typeof fetch {
  const bounded = createBoundedFetch(send);
  return (input, init) => {
    const json = 'application/json';
    const headers = new Headers({ accept: json, authorization: `Bearer ${apiKey}` });
    if (init?.body) headers.set('content-type', json);
    return bounded(input, { ...init, headers });
  };
}

async function whole(response: Response) {
  const { status, headers } = response;
  return { status, headers, text: await response.text() };
}

type ErrorAnswer = APIError & { status: number; headers: Headers };

function isAnswer({ APIError }: Library, error: unknown): error is ErrorAnswer {
  return error instanceof APIError && typeof error.status === 'number' && !!error.headers;
}

/** The library keeps the body's JSON, or else puts its text behind the status in the message. */
function answerIn({ status, headers, error: json, message }: ErrorAnswer): InferenceAnswer {
  if (json !== undefined) return { status, headers, text: '', json };
  const text = message.slice(`${status} `.length);
  return { status, headers, text: text === 'status code (no body)' ? '' : text, json };
}

function faultOf(
  { APIUserAbortError, APIConnectionError, APIConnectionTimeoutError }: Library,
  error: unknown,
  { baseUrl, timeoutMs }: InferenceAccess,
  signal: AbortSignal,
): InferenceFault {
  const service = `The inference service (${new URL(baseUrl).host})`;
  const cause = error instanceof APIConnectionError ? error.cause : undefined;
  if (error instanceof APIUserAbortError || signal.aborted || isAppError(cause, 'cancelled')) {
    const happened = `The request to the inference service was stopped.`;
    return new InferenceFault('cancelled', { happened, advice: 'Ask again when you like.' });
  }
  // A connection that cannot be made in time has another cause.
  const timedOut = error instanceof APIConnectionTimeoutError;
  if (timedOut && cause instanceof Error && cause.name === 'AbortError') {
    const happened = `${service} did not give its whole answer within ${timeoutMs / 1000} s.`;
    const advice = 'Try again later; if that goes on, choose a faster model.';
    return new InferenceFault('timeout', { happened, advice });
  }
  if (error instanceof APIConnectionError && !(cause instanceof UnusableAnswer)) {
    const happened = `${service} cannot be asked: ${networkFault(error)}.`;
    const advice = 'Try again later, or check EARSHOT_INFERENCE_URL.';
    return new InferenceFault('unreachable', { happened, advice });
  }
  const reason = cause instanceof UnusableAnswer ? cause.message : 'it cannot be read';
  const happened = `${service} gave an answer that cannot be used: ${reason}.`;
  return new InferenceFault('unexpected_form', {
    happened,
    advice: 'Check EARSHOT_INFERENCE_URL.',
  });
}
