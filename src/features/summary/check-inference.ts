/** The doctor's checks of the inference service and its model. */
import { isAppError } from '../../core/terms/app-error.ts';
import { type Finding, failedFinding, finding } from '../../core/terms/evaluation.ts';
import { type ChatClient, inferenceFacts, modelAdvice } from './chat-client.ts';
import { type RefusedAnswer, refusalText } from './terms.ts';

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

const check = 'inference service';

/**
 * Lists the models, which costs nothing. A service without a list (it is not in the specification) is asked for one
 * short answer.
 */
export async function checkInference(options: InferenceCheckOptions): Promise<Finding[]> {
  const { client, model, refusedAnswer, signal } = options;
  try {
    const listed = await client.models(signal);
    if (listed !== null && !listed.includes(model)) {
      const named = listed.slice(0, namedMax).join(', ') || 'no model';
      const text = `The service does not list ${model} for this key. It lists: ${named}.`;
      return [finding(check, 'critical', text, modelAdvice)];
    }
    if (listed === null) {
      const messages = [{ role: 'user', content: 'Answer with the word: ready' }] as const;
      await client.complete({ model, messages }, signal);
    }
    const found = [finding(check, 'ok', `The service offers ${model}.`)];
    // An answer of another model says nothing about this one.
    if (refusedAnswer === null || refusedAnswer.model !== model) return found;
    const { cause, nextStep } = refusalText(refusedAnswer);
    return [...found, finding('summaries', 'warning', cause, nextStep)];
  } catch (error) {
    if (!isAppError(error)) throw error;
    const facts = inferenceFacts(error);
    // These imply that the service knows the key.
    const isReached = facts?.scope === 'answer' || facts?.status === 429;
    const level = facts?.scope === 'caller' ? 'unknown' : isReached ? 'warning' : 'critical';
    return [{ ...failedFinding(check, error, modelAdvice), level }];
  }
}
