/** Asks the inference service for a text, and for the models that a key may use. */
import type { ChatRequest } from './chat-request.ts';
import { createInferenceCalls } from './inference-calls.ts';
import { InferenceFault } from './inference-fault.ts';
import { type ChatAnswer, readAnswer, readModels } from './read-answer.ts';
import { refusalFault } from './refusal-fault.ts';

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
