/** HTTP app of the inference service (chat completions, list of models), and its record of requests. */
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { SandboxClock } from '../clock.ts';
import {
  demoProject,
  type InferenceProject,
  type LiveInferenceSettings,
  otherProject,
} from '../live-settings.ts';
import { bearerOf, createRequestLog, writeAnswer } from '../services/service-answer.ts';
import {
  type CompletionAnswer,
  chooseFault,
  completionAnswer,
  errors,
  formedError,
  type InferenceOutcome,
  readCompletionRequest,
} from './answer.ts';

export interface InferenceAppOptions {
  readonly liveSettings: LiveInferenceSettings;
  readonly record: InferenceRecord;
  readonly clock: SandboxClock;
  readonly seed: number;
  /** Ends the delay of answers. */
  readonly signal: AbortSignal;
}

interface Environment {
  readonly Bindings: HttpBindings;
  readonly Variables: { logged: InferenceRequest };
}

/** Path below the origin. */
const inferencePath = '/openai/v1';
const bodyBytesMax = 1024 * 1024;
const modelCharactersMax = 200;
const projects: readonly InferenceProject[] = [demoProject, otherProject];

/** Creates the app. Opens nothing. Dates are those of the sandbox's clock. */
export function createInferenceApp(options: InferenceAppOptions): Hono<Environment> {
  const { record, clock, liveSettings } = options;
  const app = new Hono<Environment>();
  app.use(async (context, next) => {
    const { method, path } = context.req;
    const at = new Date(clock.now()).toISOString();
    context.set('logged', record.open({ at, method, path }));
    context.env.outgoing.once('close', record.close);
    await next();
  });
  const tooLarge = (context: Context<Environment>) => {
    const answer = formedError(liveSettings.current(), 413, 'The request body is too large.');
    return send(context, { outcome: 'refused', answer }, options);
  };
  app.use(bodyLimit({ maxSize: bodyBytesMax, onError: tooLarge }));
  app.all('*', async (context) => send(context, await answerTo(context, options), options));
  // Only testers use the sandbox, so the cause is shown. Also called if a client disconnects while sending.
  app.onError(({ message }, context) => {
    const text = `Internal error of the sandbox: ${message}`;
    const answer = formedError(liveSettings.current(), 500, text, { type: 'sandbox' });
    return send(context, { outcome: 'serverError', answer }, options);
  });
  return app;
}

async function answerTo(
  { req, get }: Context<Environment>,
  options: InferenceAppOptions,
): Promise<CompletionAnswer> {
  const settings = options.liveSettings.current();
  const methods = new Map([[`${inferencePath}/chat/completions`, 'POST']]);
  if (settings.modelsListed) methods.set(`${inferencePath}/models`, 'GET');
  const method = methods.get(req.path);
  if (method === undefined) {
    const answer = formedError(settings, 404, `Unknown path: ${req.path}.`);
    return { outcome: 'refused', answer };
  }
  if (req.method !== method) {
    const answer = formedError(settings, 405, 'Method not allowed.');
    return { outcome: 'refused', answer: { ...answer, headers: { Allow: method } } };
  }
  const logged = get('logged');
  const key = bearerOf(req);
  const project = projects.find((one) => one.key === key);
  const body = await req.text();
  if (project === undefined)
    return { outcome: 'unauthorized', answer: errors.unauthorized(settings) };
  logged.project = project.name;
  return method === 'GET' ? listed(project) : complete(logged, project, body, options);
}

function complete(
  logged: InferenceRequest,
  { models }: InferenceProject,
  body: string,
  { liveSettings, record, clock, seed }: InferenceAppOptions,
): CompletionAnswer {
  const settings = liveSettings.current();
  const request = readCompletionRequest(body);
  if (typeof request === 'string') {
    return { outcome: 'refused', answer: formedError(settings, 400, request) };
  }
  const { model, userText, digest, otherFields } = request;
  logged.model = model.slice(0, modelCharactersMax);
  Object.assign(logged, { userCharacters: userText.length, digest });
  if (settings.optionalFields === 'refused' && otherFields.length > 0) {
    const message = `Unrecognized request argument supplied: ${otherFields[0]}.`;
    return { outcome: 'refused', answer: formedError(settings, 400, message) };
  }
  if (!models.includes(model)) {
    const answer = errors.modelUnavailable(settings, logged.model);
    return { outcome: 'modelUnavailable', answer };
  }
  const fault = chooseFault(liveSettings, { seed, digest, times: record.countRepetitions(digest) });
  return completionAnswer(request, fault, { settings, nowMs: clock.now() });
}

function listed({ models }: InferenceProject): CompletionAnswer {
  const data = models.map((id) => {
    const [vendor] = id.split('/');
    return { id, object: 'model', created: 0, owned_by: vendor };
  });
  return { outcome: 'listed', answer: { status: 200, body: { object: 'list', data } } };
}

/** Sends an answer after its delay and records the outcome. */
async function send(
  { env, get }: Context<Environment>,
  { outcome, answer }: CompletionAnswer,
  { liveSettings, clock, record, signal }: InferenceAppOptions,
): Promise<Response> {
  const { outgoing } = env;
  const disconnected = new AbortController();
  outgoing.once('close', () => disconnected.abort());
  const logged = get('logged');
  if (answer === 'never') record.settle(logged, outcome, null);
  const delayMs =
    answer === 'never' ? Number.POSITIVE_INFINITY : liveSettings.current().answerDelayMs;
  const ends = AbortSignal.any([signal, disconnected.signal]);
  if (!outgoing.destroyed) await clock.waitUntil(clock.now() + delayMs, ends);
  if (answer === 'never' || answer === 'cut' || outgoing.destroyed) {
    if (answer !== 'never') record.settle(logged, answer === 'cut' ? outcome : 'abandoned', null);
    return writeAnswer('cut', outgoing);
  }
  record.settle(logged, outcome, answer.status);
  const page = { 'Content-Type': 'text/html; charset=utf-8' };
  const headers = {
    ...(typeof answer.body === 'string' && page),
    ...answer.headers,
    // Otherwise Node would send the real time.
    Date: new Date(clock.now()).toUTCString(),
  };
  return writeAnswer({ ...answer, headers }, outgoing);
}

/** A request without its key and messages. */
export interface InferenceRequest {
  /** ISO 8601, on the sandbox's clock. */
  readonly at: string;
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  /** Project of the key; null for an unknown key. */
  project: string | null;
  /** As requested, truncated to 200 characters. */
  model: string | null;
  /** Total length of the user messages. */
  userCharacters: number;
  /** SHA-256 of model and messages, hexadecimal. Null for an invalid request. */
  digest: string | null;
  /** Null until known. */
  outcome: InferenceOutcome | null;
  /** Null before the answer, or if there was none. */
  status: number | null;
}

// Limits memory under endless requests.
const digestsMax = 50_000;

export type InferenceRecord = ReturnType<typeof createInferenceRecord>;

/** Creates an empty record. */
export function createInferenceRecord() {
  const requests = createRequestLog<InferenceRequest>();
  const received = new Map<string, number>();
  const answered = new Map<string, number>();
  const outcomes: Partial<Record<InferenceOutcome, number>> = {};
  const counts = { requests: 0, inFlight: 0, inFlightMax: 0, distinct: 0, repeated: 0 };
  return {
    open: (request: Pick<InferenceRequest, 'at' | 'method' | 'path'>): InferenceRequest => {
      counts.requests += 1;
      counts.inFlight += 1;
      counts.inFlightMax = Math.max(counts.inFlightMax, counts.inFlight);
      const nothing = { project: null, model: null, userCharacters: 0, digest: null };
      return requests.open({ ...request, ...nothing, outcome: null, status: null });
    },
    /** Counts a request; returns the number of earlier identical ones. */
    countRepetitions: (digest: string) => countOne(received, digest),
    /** Sets the outcome. The request stays in flight until `close`, even if it is never answered. */
    settle: (request: InferenceRequest, outcome: InferenceOutcome, status: number | null) => {
      Object.assign(request, { outcome, status });
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      if (outcome !== 'answered' || request.digest === null) return;
      if (countOne(answered, request.digest) === 0) counts.distinct += 1;
      else counts.repeated += 1;
    },
    close: () => {
      counts.inFlight -= 1;
    },
    /** Returns copies of the last 1,000 requests, oldest first. */
    requests: requests.entries,
    /**
     * Returns counts of all requests: unanswered ones and their maximum at one time; distinct completions that
     * were `answered`, and repetitions of these.
     */
    totals: () => ({ ...counts, outcomes: { ...outcomes } }),
  };
}

/** Increments a count and returns its previous value. */
function countOne(counts: Map<string, number>, digest: string): number {
  const before = counts.get(digest) ?? 0;
  counts.set(digest, before + 1);
  const [oldest] = counts.keys();
  if (counts.size > digestsMax && oldest !== undefined) counts.delete(oldest);
  return before;
}
