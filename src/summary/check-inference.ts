/** The doctor's checks of the inference service and its model. */
import { type AppError, isAppError } from '../domain/app-error.ts';
import type { Finding } from '../domain/finding.ts';
import { type RefusedAnswer, refusalText } from '../domain/summaries.ts';
import { type ChatClient, inferenceFacts, modelAdvice } from './chat-client.ts';

interface InferenceCheckOptions {
  client: ChatClient;
  /** Value of EARSHOT_INFERENCE_MODEL. */
  model: string;
  /** Last answer of a model that does not follow the form; null if it does. */
  refusedAnswer: RefusedAnswer | null;
  signal: AbortSignal;
}

/** Maximum number of models named in a message. */
const namedMax = 20;

/**
 * Lists the models, which costs nothing. A service without a list (it is not in the specification) is asked for one
 * short answer.
 */
export async function checkInference(options: InferenceCheckOptions): Promise<Finding[]> {
  const { client, model, signal } = options;
  const check = 'inference service';
  try {
    const listed = await client.models(signal);
    if (listed !== null && !listed.includes(model)) {
      const named = listed.slice(0, namedMax).join(', ') || 'no model';
      const message = `The service does not list ${model} for this key. It lists: ${named}.`;
      return [{ check, state: 'fail', message, advice: modelAdvice }];
    }
    if (listed === null) {
      const messages = [{ role: 'user', content: 'Answer with the word: ready' }] as const;
      await client.complete({ model, messages }, signal);
    }
    const how = listed === null ? 'answers a short question' : 'is in the list of the service';
    return [{ check, state: 'pass', message: `${model} ${how}.` }, ...formFinding(options)];
  } catch (error) {
    if (!isAppError(error)) throw error;
    return [faultFinding(check, error)];
  }
}

function faultFinding(check: string, error: AppError): Finding {
  const { message, advice } = error;
  const facts = inferenceFacts(error);
  if (facts?.scope === 'caller') return { check, state: 'skipped', message };
  // These imply that the service knows the key.
  const isReached = facts?.scope === 'answer' || facts?.status === 429;
  return {
    check,
    state: isReached ? 'warn' : 'fail',
    message,
    ...(advice === undefined ? {} : { advice }),
  };
}

/** An answer of another model says nothing about this one. */
function formFinding({ model, refusedAnswer }: InferenceCheckOptions): Finding[] {
  if (refusedAnswer === null || refusedAnswer.model !== model) return [];
  const { cause: message, nextStep: advice } = refusalText(refusedAnswer);
  return [{ check: 'summaries', state: 'warn', message, advice }];
}
