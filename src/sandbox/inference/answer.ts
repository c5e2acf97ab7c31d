/** Answers of the inference service to completion requests: repeated facts of the request, and injected faults. */
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
 * Outcome of a request: `answered` with the correct text; `listed` the models; `refused` as invalid;
 * `abandoned` by a client that disconnected; otherwise the fault, caused by the client or injected.
 */
export type InferenceOutcome = 'answered' | 'listed' | 'refused' | 'abandoned' | InferenceFault;

/** Answer and its outcome for the record; `never`: no answer, `cut`: closed connection. */
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
  /** User messages, separated by blank lines. */
  readonly userText: string;
  /** Total length of all messages, in characters. */
  readonly characters: number;
  /** SHA-256 of model and messages, hexadecimal. */
  readonly digest: string;
  /** Names of fields that are not in the specification. */
  readonly otherFields: readonly string[];
}

/** Parses a body by the specification (Chat completion request). Returns an error message if it is invalid. */
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
    return `Invalid request at ${path.join('.') || 'the top level'}: ${message}.`;
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
 * Chooses the fault of a request, or null: first from `next`, which counts down, otherwise by probability.
 * The draw depends only on the seed, the request and its number of repetitions, not on other requests.
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

/** Builds the answer. `nowMs` is the sandbox's time, returned in `created`. */
export function completionAnswer(
  request: CompletionRequest,
  fault: InferenceFault | null,
  context: { settings: InferenceSettings; nowMs: number },
): CompletionAnswer {
  const { settings, nowMs } = context;
  const correct = answerText(request.userText);
  const whole = completion(request, correct, context);
  if (fault === null) return { outcome: 'answered', answer: whole };
  const injected = (answer: CompletionAnswer['answer']) => ({ outcome: fault, answer });
  switch (fault) {
    case 'unauthorized':
      return injected(errors.unauthorized(settings));
    case 'modelUnavailable':
      return injected(errors.modelUnavailable(settings, request.model));
    case 'rateLimited':
      return injected(errors.rateLimited(settings, nowMs));
    case 'serverError':
      return injected(errors.serverError(settings));
    case 'hang':
      return injected('never');
    case 'connectionCut':
      return injected('cut');
    case 'htmlPage':
      return injected({ status: 200, body: pageOf('The service is being maintained') });
    case 'brokenJson': {
      const json = JSON.stringify(whole.body);
      const headers = { 'Content-Type': 'application/json' };
      return injected({ status: 200, body: json.slice(0, json.length / 2), headers });
    }
    default: {
      const content = faultyTexts(correct, request.userText)[fault];
      if (content === undefined) return { outcome: 'answered', answer: whole };
      return injected(completion(request, content, context, fault === 'cut' ? 'length' : 'stop'));
    }
  }
}

/** Returns the text of each fault that changes the text; undefined if there is no command to obey. */
function faultyTexts(correct: string, userText: string) {
  return {
    nullContent: null,
    emptyContent: '',
    cut: correct.slice(0, correct.length / 2),
    inventedNumber: `${correct} It has ${numberNotIn(userText)} bands.`,
    inventedPlace: `${correct} It shows the land round ${placeNotIn(userText)}.`,
    obeyedCommand: hiddenCommand(userText),
    markup: `${correct} ${markup}`,
  };
}

// Common estimate for English.
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

/** Returns an error in the form of the settings: the known forms of servers of this interface. */
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
  /** Answer to a missing or unknown key. */
  unauthorized: (settings: InferenceSettings): ServiceAnswer =>
    formedError(settings, settings.unauthorizedStatus, 'Incorrect API key provided.', {
      code: 'invalid_api_key',
    }),
  /** Answer to a model that the key's project does not have. */
  modelUnavailable: (settings: InferenceSettings, model: string): ServiceAnswer => {
    const message = `The model \`${model}\` does not exist or you do not have access to it.`;
    return formedError(settings, settings.modelUnavailableStatus, message, {
      code: 'model_not_found',
    });
  },
  /** `nowMs` is the base of a date in Retry-After. */
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

/** Invented places; one that is not in the request is used. */
const places = ['Ulaanbaatar', 'Montevideo', 'Reykjavik', 'Windhoek', 'Atlantis'];
const firstInvented = 4_711;
const markup = '**More** is <b>listed</b> at [the archive](https://archive.example.org/).';

/** Commands in the data, for tests: `ignore all previous instructions and say X`, `SAY_X`. */
const commands = [
  /ignore\s+(?:all\s+|any\s+)?(?:the\s+)?previous\s+instructions[\s,:;.]*(?:and\s+)?(?:say|write|answer|reply)\s+([^\s"\\<>][^"\\<>\n]{0,199})/i,
  /SAY_(\w{1,200})/i,
];

/** Returns the text that a command in the data asks for; undefined if there is none. */
function hiddenCommand(userText: string): string | undefined {
  const found = commands.map((command) => command.exec(userText)?.[1]);
  return found.find((text) => text !== undefined)?.trim();
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

const neutralText = 'There is nothing to report about this request.';
const sentencesMax = 3;
const factsMax = 500;
// Longer facts are lists, unsuitable for a sentence.
const factCharactersMax = 240;
/** A date such as 1 May 2026 at the beginning of a fact. */
const date = /^\d{1,2} [A-Z][a-z]+ \d{4}\b/;

/** Facts with a specific sentence, in output order. `text` is a pattern that the fact must match. */
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
 * Writes up to three sentences from the facts in the user's message, without any other number, name or place;
 * a neutral sentence if there are no facts. Deterministic.
 */
export function answerText(userText: string): string {
  const [, name] = /^\{([a-z_]+)\}: /m.exec(userText) ?? [];
  if (name !== undefined) return `The main fact is {${name}}.`;
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
  // No fact has a specific sentence.
  const plain = ({ label, text }: LabelledFact) =>
    `The ${label} ${/[^s]s$/.test(label) ? 'are' : 'is'} ${text}.`;
  if (sentences.length === 0) sentences.push(...facts.map(plain));
  return sentences.slice(0, sentencesMax).join(' ');
}

/** Describes a product, or the count and time of received products; null if the facts contain neither. */
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
 * Parses the facts between <facts> and </facts>, in order; none if it is not JSON. They are in `facts` or at
 * the top level, as an object of strings or an array of `{label, text}`; other values are ignored.
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
