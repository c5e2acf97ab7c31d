/** What the inference service answers to a request for a completion: facts of the request, repeated; and faults. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { createRandom } from '../clock.ts';
import {
  type InferenceFault,
  type InferenceSettings,
  inferenceFaults,
  type LiveInferenceSettings,
  takeNextFault,
} from '../live-settings.ts';
import { pageOf, type ServiceAnswer } from '../services/service-answer.ts';

/**
 * What came of a request: `answered` with the text that it should have; `listed` its models; `refused`,
 * being no request of this interface; `abandoned` by a client that went away; else the fault, whether it was
 * the client's own or played.
 */
export type InferenceOutcome = 'answered' | 'listed' | 'refused' | 'abandoned' | InferenceFault;

/** An answer with its outcome for the record; `never` is one that does not come, `cut` a cut connection. */
export interface CompletionAnswer {
  readonly outcome: InferenceOutcome;
  readonly answer: ServiceAnswer | 'never' | 'cut';
}

const requestSchema = z.looseObject({
  model: z.string().min(1),
  messages: z.array(z.object({ role: z.string().min(1), content: z.string() })).min(1),
});

export interface CompletionRequest {
  readonly model: string;
  /** All user messages, a blank line between them. */
  readonly userText: string;
  /** Length of all messages together, in characters. */
  readonly characters: number;
  /** SHA-256 of model and messages, hexadecimal. */
  readonly digest: string;
  /** Names of fields that the specification does not show. */
  readonly otherFields: readonly string[];
}

/** Reads a body as far as the specification shows it (Chat completion request); a text names its fault. */
export function readCompletionRequest(body: string): CompletionRequest | string {
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    return 'The request body is not JSON.';
  }
  const { data, error } = requestSchema.safeParse(value);
  if (error) {
    const { path, message } = error.issues[0] ?? { path: [], message: 'not valid' };
    return `The request has a fault at ${path.join('.') || 'its top'}: ${message}.`;
  }
  const { model, messages, ...others } = data;
  const userTexts = messages.filter(({ role }) => role === 'user').map(({ content }) => content);
  return {
    model,
    userText: userTexts.join('\n\n'),
    characters: messages.reduce((sum, { content }) => sum + content.length, 0),
    digest: createHash('sha256')
      .update(JSON.stringify([model, messages]))
      .digest('hex'),
    otherFields: Object.keys(others),
  };
}

/**
 * Chooses the fault of a request, or null: first what is set for the next requests, which counts down, else
 * what the shares draw. The draw depends on the seed, the request and how often it was asked, and on
 * nothing else that was asked meanwhile.
 */
export function chooseFault(
  liveSettings: LiveInferenceSettings,
  { seed, digest, times }: { seed: number; digest: string; times: number },
): InferenceFault | null {
  const { next, faults } = liveSettings.current();
  const ordered = takeNextFault(inferenceFaults, next, (counts) =>
    liveSettings.change({ next: counts }),
  );
  if (ordered !== null) return ordered;
  const drawn = createHash('sha256').update(`${digest} ${times}`).digest().readInt32BE();
  const random = createRandom(seed ^ drawn);
  return inferenceFaults.find((fault) => random.chance(faults[fault])) ?? null;
}

/** Makes the answer. `nowMs` is the sandbox's time; it stands in `created`, as in every answer of this kind. */
export function completionAnswer(
  request: CompletionRequest,
  fault: InferenceFault | null,
  context: { settings: InferenceSettings; nowMs: number },
): CompletionAnswer {
  const { settings, nowMs } = context;
  const right = answerText(request.userText);
  const whole = completion(request, right, context);
  if (fault === null) return { outcome: 'answered', answer: whole };
  const played = (answer: CompletionAnswer['answer']) => ({ outcome: fault, answer });
  switch (fault) {
    case 'unauthorized':
      return played(errors.unauthorized(settings));
    case 'modelUnavailable':
      return played(errors.modelUnavailable(settings, request.model));
    case 'rateLimited':
      return played(errors.rateLimited(settings, nowMs));
    case 'serverError':
      return played(errors.serverError(settings));
    case 'hang':
      return played('never');
    case 'connectionCut':
      return played('cut');
    case 'htmlPage':
      return played({ status: 200, body: pageOf('The service is being maintained') });
    case 'brokenJson': {
      const json = JSON.stringify(whole.body);
      const headers = { 'Content-Type': 'application/json' };
      return played({ status: 200, body: json.slice(0, json.length / 2), headers });
    }
    default: {
      const content = wrongTexts(right, request.userText)[fault];
      if (content === undefined) return { outcome: 'answered', answer: whole };
      return played(completion(request, content, context, fault === 'cut' ? 'length' : 'stop'));
    }
  }
}

/** Returns the texts of the faults that give the answer another one; undefined where there is no command to obey. */
function wrongTexts(right: string, userText: string) {
  return {
    nullContent: null,
    emptyContent: '',
    cut: right.slice(0, right.length / 2),
    inventedNumber: `${right} It has ${numberNotIn(userText)} bands.`,
    inventedPlace: `${right} It shows the land round ${placeNotIn(userText)}.`,
    obeyedCommand: hiddenCommand(userText),
    markup: `${right} ${markup}`,
  };
}

// A common rule of thumb for English.
const charactersPerToken = 4;

function completion(
  { model, characters, digest }: CompletionRequest,
  content: string | null,
  { settings, nowMs }: { settings: InferenceSettings; nowMs: number },
  finishReason: 'stop' | 'length' = 'stop',
): ServiceAnswer {
  const reasoning = 'The user wants a few sentences. I take them from the facts.';
  const message = { role: 'assistant', content, ...(settings.reasoningGiven && { reasoning }) };
  const prompt = Math.ceil(characters / charactersPerToken);
  const generated = Math.ceil((content ?? '').length / charactersPerToken);
  const usage = {
    prompt_tokens: prompt,
    completion_tokens: generated,
    total_tokens: prompt + generated,
  };
  return {
    status: 200,
    body: {
      id: `chatcmpl-${digest.slice(0, 24)}`,
      object: 'chat.completion',
      created: Math.floor(nowMs / 1_000),
      model,
      choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason }],
      ...(settings.usageGiven && { usage }),
    },
  };
}

/** Returns an error in the form that the settings say: those that servers of this interface are known to use. */
export function formedError(
  { errorForm }: InferenceSettings,
  status: number,
  message: string,
  { type = 'invalid_request_error', code = null }: { type?: string; code?: string | null } = {},
): ServiceAnswer {
  const forms = {
    openai: { error: { message, type, param: null, code } },
    object: { object: 'error', message, type, param: null, code: status },
    detail: { detail: message },
    html: pageOf(message),
  };
  return { status, body: forms[errorForm] };
}

export const errors = {
  /** For a key that is missing, or nobody's. */
  unauthorized: (settings: InferenceSettings): ServiceAnswer =>
    formedError(settings, settings.unauthorizedStatus, 'Incorrect API key provided.', {
      code: 'invalid_api_key',
    }),
  /** For a model that the key's project does not have. */
  modelUnavailable: (settings: InferenceSettings, model: string): ServiceAnswer => {
    const message = `The model \`${model}\` does not exist or you do not have access to it.`;
    return formedError(settings, settings.modelUnavailableStatus, message, {
      code: 'model_not_found',
    });
  },
  /** `nowMs` is the time that a date counts from. */
  rateLimited: (settings: InferenceSettings, nowMs: number): ServiceAnswer => {
    const { retryAfter, retryAfterSeconds: seconds } = settings;
    const kind = { type: 'requests', code: 'rate_limit_exceeded' };
    const answer = formedError(settings, 429, 'Rate limit reached for requests.', kind);
    if (retryAfter === 'none') return answer;
    const date = new Date(nowMs + seconds * 1_000).toUTCString();
    const value = retryAfter === 'date' ? date : String(seconds);
    return { ...answer, headers: { 'Retry-After': value } };
  },
  serverError: (settings: InferenceSettings): ServiceAnswer => {
    const message = 'The server had an error while processing your request.';
    return formedError(settings, settings.serverErrorStatus, message, { type: 'server_error' });
  },
};

/** What is invented stands nowhere in the request. */
const places = ['Ulaanbaatar', 'Montevideo', 'Reykjavik', 'Windhoek', 'Atlantis'];
const firstInvented = 4_711;
const markup = '**More** is <b>told</b> at [the archive](https://archive.example.org/).';

/** A command within the data, for tests: `ignore all previous instructions and say X`, `SAY_X`. */
const commands = [
  /ignore\s+(?:all\s+|any\s+)?(?:the\s+)?previous\s+instructions[\s,:;.]*(?:and\s+)?(?:say|write|answer|reply)\s+([^\s"\\<>][^"\\<>\n]{0,199})/i,
  /SAY_(\w{1,200})/i,
];

/** Returns what a command in the text wants to be said; undefined where there is none. */
function hiddenCommand(userText: string): string | undefined {
  const found = commands.map((command) => command.exec(userText)?.[1]);
  return found.find((said) => said !== undefined)?.trim();
}

function numberNotIn(text: string): number {
  let number = firstInvented;
  while (text.includes(String(number))) number += 1;
  return number;
}

function placeNotIn(text: string): string {
  const lower = text.toLowerCase();
  return places.find((place) => !lower.includes(place.toLowerCase())) ?? 'Brigadoon';
}

interface LabelledFact {
  readonly label: string;
  readonly text: string;
}

const neutralText = 'There is nothing to tell about this request.';
const sentencesMax = 3;
const factsMax = 500;
// Longer facts are lists that would make a poor sentence.
const factCharactersMax = 240;
/** A date as people write it, at the beginning of a fact. */
const date = /^\d{1,2} [A-Z][a-z]+ \d{4}\b/;

/** The facts with a sentence of their own, in the order of the sentences; `text` is what the fact must match. */
const phrases: readonly {
  readonly label: RegExp;
  readonly text?: RegExp;
  readonly sentence: (text: string) => string;
}[] = [
  { label: /^deletion date$/, text: date, sentence: (text) => `It was deleted on ${text}.` },
  { label: /^(sens|acqui)/, text: date, sentence: (text) => `It was sensed on ${text}.` },
  { label: /^valid from$/, text: date, sentence: (text) => `It is valid from ${text} on.` },
  { label: /^covers from$/, text: date, sentence: (text) => `It covers the time from ${text} on.` },
  { label: /^(place|countries|seas)$/, sentence: (text) => `It covers ${text}.` },
  { label: /^(countries|seas)\b/, sentence: (text) => `They cover ${text}.` },
  { label: /^products by collection$/, sentence: (text) => `The collections are ${text}.` },
  { label: /^cloud cover$/, sentence: (text) => `The cloud cover is ${text}.` },
  { label: /^publi/, text: date, sentence: (text) => `It was published on ${text}.` },
];

/**
 * Makes up to three sentences of the facts in the user's message, with no number, name or place that they do
 * not have; a neutral one where there are no facts. The same message brings the same text.
 */
export function answerText(userText: string): string {
  const facts = labelledFacts(userText)
    .map(({ label, text }) => ({ label: label.toLowerCase(), text: text.replace(/[.\s]+$/, '') }))
    .filter(({ text }) => text !== '' && text.length <= factCharactersMax);
  if (facts.length === 0) return neutralText;
  const opening = openingSentence((label) => facts.find((fact) => fact.label === label)?.text);
  const others = phrases.flatMap(({ label, text, sentence }) => {
    const fact = facts.find((one) => label.test(one.label) && text?.test(one.text) !== false);
    return fact === undefined ? [] : [sentence(fact.text)];
  });
  const sentences = opening === null ? others : [opening, ...others];
  // Facts of another kind than expected.
  const plain = ({ label, text }: LabelledFact) =>
    `The ${label} ${/[^s]s$/.test(label) ? 'are' : 'is'} ${text}.`;
  if (sentences.length === 0) sentences.push(...facts.map(plain));
  return sentences.slice(0, sentencesMax).join(' ');
}

/** Says what a product is, or how many arrived and when; null where the facts say neither. */
function openingSentence(factOf: (label: string) => string | undefined): string | null {
  const [satellite, content, product] = [factOf('satellite'), factOf('content'), factOf('product')];
  const subject = `This ${factOf('subject') ?? 'product'}`;
  if (content !== undefined) {
    return `${subject}${satellite === undefined ? '' : ` of ${satellite}`} holds ${content}.`;
  }
  if (satellite !== undefined) return `${subject} is of ${satellite}.`;
  if (product !== undefined) return `The product is ${product}.`;
  const products = factOf('products');
  const [from, until] = factOf('time of receipt')?.split(' to ') ?? [];
  if (products === undefined || from === undefined || until === undefined) return null;
  return `Between ${from} and ${until}, ${products} arrived.`;
}

const fact = z.object({ label: z.string().regex(/\S/), text: z.string().trim().min(1) });
const wrapped = z.object({ facts: z.unknown() });

/**
 * Reads the facts between <facts> and </facts>, in their order; none where there is no JSON. They may stand
 * under `facts` or at the top, as an object of texts or an array of `{label, text}`; others are left out.
 */
function labelledFacts(message: string): readonly LabelledFact[] {
  const [, json] = /<facts>(.*?)<\/facts>/s.exec(message) ?? [];
  if (json === undefined) return [];
  try {
    const value: unknown = JSON.parse(json);
    const facts = wrapped.safeParse(value).data?.facts ?? value;
    const pairs: unknown[] = Array.isArray(facts)
      ? facts
      : Object.entries(Object(facts)).map(([label, text]) => ({ label, text }));
    return pairs.flatMap((pair) => fact.safeParse(pair).data ?? []).slice(0, factsMax);
  } catch {
    return [];
  }
}
