/** Tells apart why the inference service refused, from the status and the words of its answer. */
import { retryAfterMs } from '../../http/outbound-client.ts';
import type { InferenceAnswer } from './inference-calls.ts';
import { type FaultWords, InferenceFault, type InferenceFaultKind } from './inference-fault.ts';
import { namesModel, readServiceWords, type ServiceWords, saying } from './service-words.ts';

/** What was asked, for the messages. */
export interface AskedService {
  /** Without `/openai/v1`. */
  baseUrl: string;
  /** Must not be shown. */
  apiKey: string;
  /** Null when the models were asked for. */
  model: string | null;
}

/** More are not named in a message. */
const modelsNamedMax = 20;

/** The fault of an answer that is no success. `available` asks what the service lists; null if it does not. */
export async function refusalFault(
  answer: InferenceAnswer,
  asked: AskedService,
  available: () => Promise<string[] | null>,
): Promise<InferenceFault> {
  const words = readServiceWords(answer, [asked.apiKey]);
  const kind = kindOf(answer.status, words, asked.model);
  const listed = kind === 'model_unavailable' ? await available() : null;
  const sentences =
    kind === 'model_unavailable'
      ? modelWords(answer, asked, words, listed)
      : wordsOf(kind, answer, asked, saying(words));
  return new InferenceFault(kind, sentences, { retryAfterMs: retryAfterMs(answer.headers) });
}

/** What the statuses mean is not shown in the specification: these are the customary meanings. */
function kindOf(status: number, words: ServiceWords, model: string | null): InferenceFaultKind {
  if (status >= 300 && status < 400) return 'redirected';
  if (status === 401) return 'wrong_key';
  if ([403, 400, 422].includes(status) && model !== null && namesModel(words, model)) {
    return 'model_unavailable';
  }
  // 402 asks for payment: the account's affair, not that of one request.
  if (status === 403 || status === 402) return 'key_refused';
  if ([404, 405, 410].includes(status)) return 'model_unavailable';
  if (status === 429) return 'rate_limited';
  return status >= 500 || [408, 409, 425].includes(status) ? 'service_error' : 'request_refused';
}

function modelWords(
  { status }: InferenceAnswer,
  { baseUrl, model }: AskedService,
  words: ServiceWords,
  listed: string[] | null,
): FaultWords {
  const service = `the inference service (${new URL(baseUrl).host})`;
  // A list shows that the address is right, so that it must be the model.
  if (model === null || (listed === null && !namesModel(words, model))) {
    const happened = `Nothing answers at /openai/v1 of ${service} as it should (${status}).${saying(words)}`;
    const perhaps = model === null ? '' : `, or the project of the key has no model ${model}`;
    const advice = `Perhaps EARSHOT_INFERENCE_URL is wrong, which is the address before /openai/v1${perhaps}.`;
    return { happened, advice };
  }
  const happened = `The model ${model} is not available to the project of the key at ${service} (${status}).${saying(words)}`;
  return { happened, advice: modelAdvice(model, listed) };
}

/** What to do when a model is not there; `listed` are those that are, null when that is not known. */
export function modelAdvice(model: string, listed: readonly string[] | null): string {
  if (listed === null || listed.includes(model)) {
    return 'Check EARSHOT_INFERENCE_MODEL against the models of the project in the control panel.';
  }
  if (listed.length === 0) {
    return 'The service lists no model for this key: in the control panel, take a key of a project that has some.';
  }
  const rest = listed.length - modelsNamedMax;
  const more = rest > 0 ? ` and ${rest} more` : '';
  return `Set EARSHOT_INFERENCE_MODEL to one of these: ${listed.slice(0, modelsNamedMax).join(', ')}${more}.`;
}

function wordsOf(
  kind: InferenceFaultKind,
  { status, headers }: InferenceAnswer,
  { baseUrl }: AskedService,
  said: string,
): FaultWords {
  const service = `The inference service (${new URL(baseUrl).host})`;
  switch (kind) {
    case 'redirected': {
      const happened = `${service} points to ${placeOf(headers)} (${status}), where earshot does not follow, as the key must not travel.`;
      return { happened, advice: 'Check EARSHOT_INFERENCE_URL.' };
    }
    case 'wrong_key': {
      const advice =
        'Check EARSHOT_INFERENCE_API_KEY. A key is shown only once: if it is lost, create a new one in the control panel.';
      return { happened: `${service} does not accept the key (${status}).${said}`, advice };
    }
    case 'key_refused': {
      const advice =
        'Perhaps it belongs to another project than intended, or lacks the right: the control panel shows which keys a project has.';
      return { happened: `${service} refuses what this key asks for (${status}).${said}`, advice };
    }
    case 'rate_limited': {
      const waitMs = retryAfterMs(headers);
      const seconds = Math.ceil((waitMs ?? 0) / 1000);
      const length = seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} minutes`;
      const when = waitMs === null ? 'later' : `in ${length}`;
      const advice = `Try again ${when}. If it happens often, lower EARSHOT_SUMMARY_REQUESTS_PER_HOUR.`;
      return { happened: `${service} was asked too often (${status}).${said}`, advice };
    }
    case 'service_error':
      return {
        happened: `${service} cannot answer at the moment (${status}).${said}`,
        advice: 'Try again later.',
      };
    default:
      return {
        happened: `${service} refuses this request (${status}).${said}`,
        advice: 'Sent again as it is, it would be refused again.',
      };
  }
}

/** Only the origin: the rest of the address may hold anything. */
function placeOf(headers: Headers): string {
  const origin = URL.parse(headers.get('location') ?? '')?.origin ?? 'null';
  return origin === 'null' ? 'another address' : origin;
}
