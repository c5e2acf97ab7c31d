/** The inference service: chat completions, with injected faults, and counts of requests. */
import { createHash } from 'node:crypto';
import type { HttpBindings } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { z } from 'zod';
import type { SandboxClock } from './clock.ts';
import { bearerOf, type ServiceAnswer, writeAnswer } from './services/service-answer.ts';
import {
  demoProject,
  inferenceFaults,
  type LiveInferenceSettings,
  otherProject,
  takeNext,
} from './settings.ts';

/**
 * Outcome of a request: `answered` with the correct text; `refused` as invalid; otherwise the injected fault.
 */
type Outcome = 'answered' | 'refused' | (typeof inferenceFaults)[number];

/** An answer and its outcome for the counts; null: no answer. */
interface Answered {
  readonly outcome: Outcome;
  readonly answer: ServiceAnswer | null;
}

/** Creates the app, and the counts of its requests: all, those in flight, and by outcome. Opens nothing. */
export function createInference(
  liveSettings: LiveInferenceSettings,
  clock: Pick<SandboxClock, 'now'>,
) {
  const counts = { requests: 0, inFlight: 0 };
  const outcomes: Partial<Record<Outcome, number>> = {};
  const app = new Hono<{ Bindings: HttpBindings }>();
  app.all('*', async (context) => {
    const { outgoing } = context.env;
    const disconnected = Promise.withResolvers<void>();
    outgoing.once('close', () => {
      counts.inFlight -= 1;
      disconnected.resolve();
    });
    counts.requests += 1;
    counts.inFlight += 1;
    const { outcome, answer } = await answerTo(context, liveSettings);
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    if (answer === null) {
      await disconnected.promise;
      return writeAnswer('cut', outgoing);
    }
    // Otherwise Node would send the real time.
    const headers = { ...answer.headers, Date: new Date(clock.now()).toUTCString() };
    return writeAnswer({ ...answer, headers }, outgoing);
  });
  return { app, totals: () => ({ ...counts, outcomes: { ...outcomes } }) };
}

const requestSchema = z.looseObject({
  model: z.string().min(1),
  messages: z.array(z.object({ role: z.string().min(1), content: z.string() })).min(1),
});

/** Answers by the specification (Endpoints, Authentication); its errors have the usual form of such servers. */
async function answerTo({ req }: Context, liveSettings: LiveInferenceSettings): Promise<Answered> {
  if (req.path !== '/openai/v1/chat/completions') {
    return failed('refused', 404, `Unknown path: ${req.path}.`);
  }
  if (req.method !== 'POST') return failed('refused', 405, 'Method not allowed.');
  const key = bearerOf(req);
  const project = [demoProject, otherProject].find((one) => one.key === key);
  if (project === undefined) return failed('refused', 401, 'Incorrect API key provided.');
  const { data, error } = requestSchema.safeParse(await req.json().catch(() => null));
  if (error) return failed('refused', 400, `Invalid request: ${z.prettifyError(error)}`);
  const { model, messages } = data;
  if (!project.models.some((one) => one === model)) {
    return failed('refused', 404, 'The model does not exist or you do not have access to it.');
  }
  const fault = takeNext(inferenceFaults, liveSettings.current().next);
  if (fault === 'hang') return { outcome: fault, answer: null };
  if (fault === 'rateLimited') {
    return failed(fault, 429, 'Rate limit reached for requests.', { 'Retry-After': '20' });
  }
  if (fault === 'serverError') return failed(fault, 503, 'The server had an error.');
  const whole = sentenceFor(messages.findLast(({ role }) => role === 'user')?.content ?? '');
  const content = fault === 'cut' ? whole.slice(0, whole.length / 2) : whole;
  const request = JSON.stringify([model, messages]);
  const body = {
    id: `chatcmpl-${createHash('sha256').update(request).digest('hex').slice(0, 24)}`,
    ...{ object: 'chat.completion', model },
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content },
        finish_reason: fault === 'cut' ? 'length' : 'stop',
      },
    ],
    usage: { total_tokens: Math.ceil((request.length + content.length) / 4) },
  };
  return { outcome: fault ?? 'answered', answer: { status: 200, body } };
}

function failed(outcome: Outcome, status: number, message: string, headers = {}): Answered {
  const error = { message, type: 'invalid_request_error', param: null, code: null };
  return { outcome, answer: { status, body: { error }, headers } };
}

/** Phrases with a name of the prompt, in the order of a sentence; the first that applies begins it. */
const subjects = ['{count}', 'A {type} product', 'A product of {mission}'];
const additions = [
  ...[' of {collections}', ' of {mission}', ' over {place}', ', sensed {sensed}'],
  ', period {period}',
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
