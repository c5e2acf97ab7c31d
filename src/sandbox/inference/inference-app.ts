/** The inference service: chat completions and the list of models, with injected faults, and a record of requests. */
import { createHash } from 'node:crypto';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { z } from 'zod';
import { createRandom, type SandboxClock } from '../clock.ts';
import {
  demoProject,
  type InferenceFault,
  inferenceFaults,
  type LiveInferenceSettings,
  otherProject,
  takeNext,
} from '../live-settings.ts';
import { bearerOf, type ServiceAnswer, writeAnswer } from '../services/service-answer.ts';

interface InferenceAppOptions {
  readonly liveSettings: LiveInferenceSettings;
  readonly record: InferenceRecord;
  readonly clock: SandboxClock;
  readonly seed: number;
  /** Ends the delay of answers. */
  readonly signal: AbortSignal;
}

/** An answer and its outcome for the record; `never`: no answer. */
interface Answered {
  readonly outcome: InferenceOutcome;
  readonly answer: ServiceAnswer | 'never';
  /** SHA-256 of model and messages of a completion. */
  readonly digest?: string;
}

/** Path below the origin. */
const inferencePath = '/openai/v1';

/** Creates the app. Opens nothing. Dates are those of the sandbox's clock. */
export function createInferenceApp(options: InferenceAppOptions) {
  const { record, clock, liveSettings, signal } = options;
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.all('*', async (context) => {
    const { outgoing } = context.env;
    const disconnected = new AbortController();
    outgoing.once('close', () => {
      record.close();
      disconnected.abort();
    });
    record.open();
    const { outcome, answer, digest } = await answerTo(context, options);
    if (answer === 'never') record.settle(outcome);
    const delayMs = answer === 'never' ? Infinity : liveSettings.current().answerDelayMs;
    const ends = AbortSignal.any([signal, disconnected.signal]);
    await clock.waitUntil(clock.now() + delayMs, ends);
    if (answer === 'never') return writeAnswer('cut', outgoing);
    if (outgoing.destroyed) record.settle('abandoned');
    else record.settle(outcome, digest);
    // Otherwise Node would send the real time.
    const headers = { ...answer.headers, Date: new Date(clock.now()).toUTCString() };
    return writeAnswer(outgoing.destroyed ? 'cut' : { ...answer, headers }, outgoing);
  });
  return app;
}

const requestSchema = z.looseObject({
  model: z.string().min(1),
  messages: z.array(z.object({ role: z.string().min(1), content: z.string() })).min(1),
});

/** Answers by the specification (Endpoints, Authentication); its errors have the usual form of such servers. */
async function answerTo(
  { req }: Context,
  { liveSettings, record, seed }: InferenceAppOptions,
): Promise<Answered> {
  const { modelsListed, next, faults, retryAfterSeconds } = liveSettings.current();
  const refused = (status: number, message: string): Answered => ({
    outcome: 'refused',
    answer: errorAnswer(status, message),
  });
  const isList = modelsListed && req.path === `${inferencePath}/models`;
  if (!isList && req.path !== `${inferencePath}/chat/completions`) {
    return refused(404, `Unknown path: ${req.path}.`);
  }
  if (req.method !== (isList ? 'GET' : 'POST')) return refused(405, 'Method not allowed.');
  const key = bearerOf(req);
  const project = [demoProject, otherProject].find((one) => one.key === key);
  if (project === undefined) return faultAnswer('unauthorized', retryAfterSeconds);
  if (isList) {
    const data = project.models.map((id) => ({ id, object: 'model', owned_by: id.split('/')[0] }));
    return { outcome: 'listed', answer: { status: 200, body: { object: 'list', data } } };
  }
  const body: unknown = await req.json().catch(() => null);
  const { data, error } = requestSchema.safeParse(body);
  if (error) return refused(400, `Invalid request: ${z.prettifyError(error)}`);
  const { model, messages } = data;
  if (!project.models.some((one) => one === model)) {
    return faultAnswer('modelUnavailable', retryAfterSeconds);
  }
  const request = JSON.stringify([model, messages]);
  const digest = createHash('sha256').update(request).digest('hex');
  // The draw depends only on the seed, the request and its repetitions, not on other requests.
  const times = record.countReceived(digest);
  const drawn = createHash('sha256').update(`${digest} ${times}`).digest().readInt32BE();
  const random = createRandom(seed ^ drawn);
  const fault =
    takeNext(inferenceFaults, next, (counts) => liveSettings.change({ next: counts })) ??
    inferenceFaults.find((one) => random.chance(faults[one])) ??
    null;
  const prompt = messages.findLast(({ role }) => role === 'user')?.content ?? '';
  const sentence = sentenceFor(prompt);
  const choices = fault === null ? [choiceOf(sentence)] : faultyChoices(sentence)[fault];
  if (choices === undefined) return faultAnswer(fault, retryAfterSeconds);
  const tokens = Math.ceil((request.length + sentence.length) / 4);
  const answer = {
    ...{ id: `chatcmpl-${digest.slice(0, 24)}`, object: 'chat.completion', model, choices },
    usage: { total_tokens: tokens },
  };
  return { outcome: fault ?? 'answered', answer: { status: 200, body: answer }, digest };
}

function errorAnswer(status: number, message: string, headers = {}): ServiceAnswer {
  const error = { message, type: 'invalid_request_error', param: null, code: null };
  return { status, body: { error }, headers };
}

/** Returns the answer of a fault that replaces it, also if the client caused it. */
function faultAnswer(outcome: InferenceFault | null, retryAfterSeconds: number): Answered {
  const answers: Partial<Record<InferenceFault, ServiceAnswer | 'never'>> = {
    unauthorized: errorAnswer(401, 'Incorrect API key provided.'),
    modelUnavailable: errorAnswer(404, 'The model does not exist or you do not have access to it.'),
    rateLimited: errorAnswer(429, 'Rate limit reached for requests.', {
      'Retry-After': String(retryAfterSeconds),
    }),
    hang: 'never',
    errorWithStatus200: errorAnswer(200, 'The model is overloaded.'),
  };
  const failed = errorAnswer(503, 'The server had an error while processing your request.');
  const known = outcome ?? 'serverError';
  return { outcome: known, answer: answers[known] ?? failed };
}

function choiceOf(content: string | object, finishReason = 'stop') {
  const message = { role: 'assistant', content };
  return { index: 0, message, finish_reason: finishReason };
}

/** Returns the choices of each fault that changes them. */
function faultyChoices(sentence: string): Partial<Record<InferenceFault, object[]>> {
  return {
    noChoices: [],
    emptyContent: [choiceOf('')],
    contentParts: [choiceOf([{ type: 'text', text: sentence }])],
    reasoning: [choiceOf(`<think>The user wants a short text.</think>\n\n${sentence}`)],
    cut: [choiceOf(sentence.slice(0, sentence.length / 2), 'length')],
    inventedNumber: [choiceOf(`${sentence} It has 4711 bands.`)],
    inventedName: [choiceOf(`${sentence} It shows {harbour_name}.`)],
  };
}

/** Phrases with a name of the prompt, in the order of a sentence; the first that applies begins it. */
const subjects = ['{count}', 'A {type} product', 'A product of {mission}'];
const additions = [
  ...[
    ' of {collections}',
    ' of {mission}',
    ' over {place}',
    ', sensed {sensed}',
    ', period {period}',
  ],
];

/**
 * Writes one sentence from the names of facts in the prompt, which are lines `{name}: value`, without any value; a
 * neutral one if there are none. Deterministic.
 */
function sentenceFor(prompt: string): string {
  const names = [...prompt.matchAll(/^\{([a-z_]+)\}: /gm)].map(([, name = '']) => name);
  const [first] = names;
  if (first === undefined) return 'There is nothing to report.';
  const hasName = (phrase: string) => names.some((name) => phrase.includes(`{${name}}`));
  const subject = subjects.find(hasName) ?? `The product is {${first}}`;
  const isNew = (phrase: string) => !subject.includes(/\{.*\}/.exec(phrase)?.[0] ?? '');
  return `${subject}${additions.filter((phrase) => hasName(phrase) && isNew(phrase)).join('')}.`;
}

/**
 * Outcome of a request: `answered` with the correct text; `listed` the models; `refused` as invalid; `abandoned` by a
 * client that disconnected; otherwise the fault, caused by the client or injected.
 */
type InferenceOutcome = 'answered' | 'listed' | 'refused' | 'abandoned' | InferenceFault;

type InferenceRecord = ReturnType<typeof createInferenceRecord>;

/** Creates an empty record of requests. */
export function createInferenceRecord() {
  const received = new Map<string, number>();
  const answered = new Set<string>();
  const outcomes: Partial<Record<InferenceOutcome, number>> = {};
  const counts = { requests: 0, inFlight: 0, inFlightMax: 0, distinct: 0, repeated: 0 };
  return {
    open: () => {
      counts.requests += 1;
      counts.inFlight += 1;
      counts.inFlightMax = Math.max(counts.inFlightMax, counts.inFlight);
    },
    /** Counts a request; returns the number of earlier identical ones. */
    countReceived: (digest: string): number => {
      const before = received.get(digest) ?? 0;
      received.set(digest, before + 1);
      return before;
    },
    /** Counts an outcome. The request stays in flight until `close`, even if it is never answered. */
    settle: (outcome: InferenceOutcome, digest?: string) => {
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      if (outcome !== 'answered' || digest === undefined) return;
      counts[answered.has(digest) ? 'repeated' : 'distinct'] += 1;
      answered.add(digest);
    },
    close: () => {
      counts.inFlight -= 1;
    },
    /**
     * Returns counts of all requests: those in flight and their maximum at one time; distinct completions that were
     * `answered`, and repetitions of these.
     */
    totals: () => ({ ...counts, outcomes: { ...outcomes } }),
  };
}
