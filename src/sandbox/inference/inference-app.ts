/** The HTTP side of the inference service: chat completions and the list of models. */
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import { type Context, Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { SandboxClock } from '../sandbox-clock.ts';
import { type CompletionAnswer, completionAnswer } from './completion-answer.ts';
import { readCompletionRequest } from './completion-request.ts';
import { chooseFault } from './fault-choice.ts';
import { formedError, invalidRequest, modelUnavailable, unauthorized } from './inference-errors.ts';
import { type InferenceProject, projectOf } from './inference-projects.ts';
import type { InferenceRecord, OpenInferenceRequest } from './inference-record.ts';
import type { InferenceKnobs } from './inference-settings.ts';

/** Below the origin. */
const inferencePath = '/openai/v1';

export interface InferenceAppOptions {
  readonly projects: readonly InferenceProject[];
  readonly knobs: InferenceKnobs;
  readonly record: InferenceRecord;
  readonly clock: SandboxClock;
  readonly seed: number;
  /** Ends the wait of answers that are kept back. */
  readonly signal: AbortSignal;
}

interface Environment {
  readonly Bindings: HttpBindings;
  readonly Variables: { logged: OpenInferenceRequest };
}

type Operation = (
  logged: OpenInferenceRequest,
  project: InferenceProject,
  body: string,
) => CompletionAnswer;

const bodyBytesMax = 1024 * 1024;
const modelCharactersMax = 200;

/** Creates the app; it opens nothing. Dates in it are those of the sandbox's clock. */
export function createInferenceApp(options: InferenceAppOptions): Hono<Environment> {
  const { record, clock, knobs } = options;
  const app = new Hono<Environment>();
  app.use(async (context, next) => {
    const { method, path } = context.req;
    const at = new Date(clock.now()).toISOString();
    context.set('logged', record.open({ at, method, path }));
    context.env.outgoing.once('close', record.close);
    await next();
  });
  app.use(
    bodyLimit({
      maxSize: bodyBytesMax,
      onError: (context) => {
        const settings = knobs.current();
        const answer = invalidRequest(413, 'The request body is too large.', settings);
        return send(context, { outcome: 'refused', answer }, options);
      },
    }),
  );
  app.all('*', async (context) => send(context, await answerTo(context, options), options));
  // The sandbox is a tester's own: hiding the cause would only cost them time. A client that went away
  // while it sent its request ends here as well.
  app.onError(({ message }, context) => {
    const error = {
      message: `The sandbox failed because of: ${message}`,
      type: 'sandbox',
      code: null,
    };
    const answer = formedError(500, error, knobs.current());
    return send(context, { outcome: 'serverError', answer }, options);
  });
  return app;
}

async function answerTo(
  { req, get }: Context<Environment>,
  options: InferenceAppOptions,
): Promise<CompletionAnswer> {
  const settings = options.knobs.current();
  const operation = operationOn(req.path, options);
  if (operation === undefined) {
    const answer = invalidRequest(404, `There is nothing at ${req.path}.`, settings);
    return { outcome: 'refused', answer };
  }
  if (req.method !== operation.method) {
    const answer = invalidRequest(405, 'Method not allowed.', settings);
    const headers = { Allow: operation.method };
    return { outcome: 'refused', answer: { ...answer, headers } };
  }
  const logged = get('logged');
  const project = projectOf(req.header('Authorization'), options.projects);
  const body = await req.text();
  if (project === undefined) return { outcome: 'unauthorized', answer: unauthorized(settings) };
  logged.project = project.name;
  return operation.run(logged, project, body);
}

function operationOn(
  path: string,
  options: InferenceAppOptions,
): { method: string; run: Operation } | undefined {
  if (path === `${inferencePath}/chat/completions`) {
    return { method: 'POST', run: completionOperation(options) };
  }
  if (path === `${inferencePath}/models` && options.knobs.current().modelsListed) {
    return { method: 'GET', run: (_, { models }) => listed(models) };
  }
  return undefined;
}

function completionOperation({ knobs, record, clock, seed }: InferenceAppOptions): Operation {
  return (logged, { models }, body) => {
    const settings = knobs.current();
    const refuse = (message: string) =>
      ({ outcome: 'refused', answer: invalidRequest(400, message, settings) }) as const;
    const request = readCompletionRequest(body);
    if (typeof request === 'string') return refuse(request);
    const { model, userText, digest, otherFields } = request;
    logged.model = model.slice(0, modelCharactersMax);
    Object.assign(logged, { userCharacters: userText.length, digest });
    if (settings.optionalFields === 'refused' && otherFields.length > 0) {
      return refuse(`Unrecognized request argument supplied: ${otherFields[0]}.`);
    }
    if (!models.includes(model)) {
      const answer = modelUnavailable(logged.model, settings);
      return { outcome: 'modelUnavailable', answer };
    }
    const fault = chooseFault(knobs, { seed, digest, times: record.timesAsked(digest) });
    return completionAnswer(request, fault, { settings, nowMs: clock.now() });
  };
}

function listed(models: readonly string[]): CompletionAnswer {
  const data = models.map((id) => ({
    id,
    object: 'model',
    created: 0,
    owned_by: id.split('/')[0],
  }));
  return { outcome: 'listed', answer: { status: 200, body: { object: 'list', data } } };
}

/** Writes an answer when its time has come, and notes in the record what came of it. */
async function send(
  { env, get }: Context<Environment>,
  { outcome, answer }: CompletionAnswer,
  { knobs, clock, record, signal }: InferenceAppOptions,
): Promise<Response> {
  const { outgoing } = env;
  const gone = new AbortController();
  outgoing.once('close', () => gone.abort());
  const logged = get('logged');
  if (answer === 'never') record.settle(logged, outcome, null);
  const delayMs = answer === 'never' ? Number.POSITIVE_INFINITY : knobs.current().answerDelayMs;
  const ends = AbortSignal.any([signal, gone.signal]);
  if (!outgoing.destroyed) await clock.waitUntil(clock.now() + delayMs, ends);
  if (answer === 'never' || answer === 'cut' || outgoing.destroyed) {
    if (answer !== 'never') record.settle(logged, answer === 'cut' ? outcome : 'abandoned', null);
    outgoing.destroy();
    return RESPONSE_ALREADY_SENT;
  }
  const { status, body, headers } = answer;
  record.settle(logged, outcome, status);
  // Without this, Node would write the real time.
  const dated = { ...headers, Date: new Date(clock.now()).toUTCString() };
  if (typeof body === 'object') return Response.json(body, { status, headers: dated });
  return new Response(body, {
    status,
    headers: { 'Content-Type': 'text/html; charset=utf-8', ...dated },
  });
}
