/** Requests to the inference service that brought no text, and why: read from the status and the words of its answer. */
import { z } from 'zod';
import { retryAfterMs } from '../../http/bounded-fetch.ts';
import { foreignText, hintCharactersMax, hintOf } from '../../http/foreign-text.ts';

/**
 * `settings`: nothing goes until a person changes something. `service`: all requests fail alike, and may
 * go later. `job`: this request alone fails. `caller`: who asked has stopped it.
 */
export type FaultScope = 'settings' | 'service' | 'job' | 'caller';

const scopes = {
  wrong_key: 'settings',
  key_refused: 'settings',
  model_unavailable: 'settings',
  redirected: 'settings',
  rate_limited: 'service',
  service_error: 'service',
  timeout: 'service',
  unreachable: 'service',
  not_json: 'service',
  unexpected_form: 'service',
  request_refused: 'job',
  empty: 'job',
  cut: 'job',
  cancelled: 'caller',
} as const satisfies Record<string, FaultScope>;

export type InferenceFaultKind = keyof typeof scopes;

export const inferenceFaultKinds = Object.keys(scopes) as InferenceFaultKind[];

export function faultScope(kind: InferenceFaultKind): FaultScope {
  return scopes[kind];
}

/** An answer of any status. */
export interface InferenceAnswer {
  status: number;
  headers: Headers;
  /** The body as it came. */
  text: string;
  /** Undefined when the text is not JSON. */
  json: unknown;
}

/** What happened and why, and what to do next: whole sentences, without a secret. */
interface FaultText {
  happened: string;
  advice: string;
}

/**
 * A request that brought no text. Its message is safe to show to anybody; it has no cause, since errors of
 * the network and of the client library may quote the key.
 */
export class InferenceFault extends Error {
  readonly kind: InferenceFaultKind;
  /** The two parts of the message. */
  readonly happened: string;
  readonly advice: string;
  /** The wait that the service asks for, of any length; null when it asks for none. */
  readonly retryAfterMs: number | null;
  /** Tokens that were spent all the same; null when the service does not report them. */
  readonly tokens: number | null;

  constructor(
    kind: InferenceFaultKind,
    { happened, advice }: FaultText,
    reported: { retryAfterMs?: number | null; tokens?: number | null } = {},
  ) {
    super(`${happened} ${advice}`);
    this.name = 'InferenceFault';
    this.kind = kind;
    this.happened = happened;
    this.advice = advice;
    this.retryAfterMs = reported.retryAfterMs ?? null;
    this.tokens = reported.tokens ?? null;
  }
}

/** What was asked, for the messages. */
export interface InferenceTarget {
  /** Without `/openai/v1`. */
  baseUrl: string;
  /** Must not be shown. */
  apiKey: string;
  /** Null when the models were asked for. */
  model: string | null;
}

/** `inference service (host)`, for messages. */
export function serviceAt(baseUrl: string): string {
  return `inference service (${new URL(baseUrl).host})`;
}

/** More are not named in a message. */
const modelsNamedMax = 20;

/** The fault of an answer that is no success. `available` asks what the service lists; null if it does not. */
export async function refusalFault(
  answer: InferenceAnswer,
  asked: InferenceTarget,
  available: () => Promise<string[] | null>,
): Promise<InferenceFault> {
  const words = readServiceMessage(answer, [asked.apiKey]);
  const kind = kindOf(answer.status, words, asked.model);
  const listed = kind === 'model_unavailable' ? await available() : null;
  const sentences =
    kind === 'model_unavailable'
      ? modelText(answer, asked, words, listed)
      : wordsOf(kind, answer, asked, quotedMessage(words));
  return new InferenceFault(kind, sentences, { retryAfterMs: retryAfterMs(answer.headers) });
}

/** What the statuses mean is not shown in the specification: these are the customary meanings. */
function kindOf(status: number, words: ServiceMessage, model: string | null): InferenceFaultKind {
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

function modelText(
  { status }: InferenceAnswer,
  { baseUrl, model }: InferenceTarget,
  words: ServiceMessage,
  listed: string[] | null,
): FaultText {
  const service = `the ${serviceAt(baseUrl)}`;
  // A list shows that the address is right, so that it must be the model.
  if (model === null || (listed === null && !namesModel(words, model))) {
    const happened = `Nothing answers at /openai/v1 of ${service} as it should (${status}).${quotedMessage(words)}`;
    const perhaps = model === null ? '' : `, or the project of the key has no model ${model}`;
    const advice = `Perhaps EARSHOT_INFERENCE_URL is wrong, which is the address before /openai/v1${perhaps}.`;
    return { happened, advice };
  }
  const happened = `The model ${model} is not available to the project of the key at ${service} (${status}).${quotedMessage(words)}`;
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

/** What each means, and what to do; kinds without a row are refusals of the request itself. */
function wordsOf(
  kind: InferenceFaultKind,
  { status, headers }: InferenceAnswer,
  { baseUrl }: InferenceTarget,
  said: string,
): FaultText {
  const service = `The ${serviceAt(baseUrl)}`;
  const words: Partial<Record<InferenceFaultKind, [what: string, advice: string]>> = {
    wrong_key: [
      'does not accept the key',
      'Check EARSHOT_INFERENCE_API_KEY. A key is shown only once: if it is lost, create a new one in the control panel.',
    ],
    key_refused: [
      'refuses what this key asks for',
      'Perhaps it belongs to another project than intended, or lacks the right: the control panel shows which keys a project has.',
    ],
    rate_limited: [
      'was asked too often',
      `Try again ${whenAgain(headers)}. If it happens often, lower EARSHOT_SUMMARY_REQUESTS_PER_HOUR.`,
    ],
    service_error: ['cannot answer at the moment', 'Try again later.'],
  };
  if (kind === 'redirected') {
    const happened = `${service} points to ${placeOf(headers)} (${status}), where earshot does not follow, as the key must not travel.`;
    return { happened, advice: 'Check EARSHOT_INFERENCE_URL.' };
  }
  const refused = 'Sent again as it is, it would be refused again.';
  const [what, advice] = words[kind] ?? ['refuses this request', refused];
  return { happened: `${service} ${what} (${status}).${said}`, advice };
}

function whenAgain(headers: Headers): string {
  const waitMs = retryAfterMs(headers);
  if (waitMs === null) return 'later';
  const seconds = Math.ceil(waitMs / 1000);
  return `in ${seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} minutes`}`;
}

/** Only the origin: the rest of the address may hold anything. */
function placeOf(headers: Headers): string {
  const origin = URL.parse(headers.get('location') ?? '')?.origin ?? 'null';
  return origin === 'null' ? 'another address' : origin;
}

interface ServiceMessage {
  /** Safe to show; empty when it says nothing. */
  text: string;
  /** Its own names for the failure, such as `model_not_found`; empty when it has none. Not for people. */
  code: string;
}

const wordsCharactersMax = 500;
const findingsMax = 5;
const name = z.union([z.string(), z.number()]).nullish().catch(null);

const finding = z.object({
  loc: z.array(z.union([z.string(), z.number()])).catch([]),
  msg: z.string(),
});

/** The forms of bodies (facts, catalogue 6): not shown in the specification. */
const errorBody = z.union([
  z.string().transform((message) => ({ message, code: null, type: null })),
  z.object({ message: z.string(), code: name, type: name }),
  z
    .object({
      detail: z.union([
        z.string(),
        z.object({ message: z.string() }).transform(({ message }) => message),
        // What was sent stands in their `input`, which stays unread.
        z.array(finding).min(1).transform(serviceWordsOf),
      ]),
    })
    .transform(({ detail }) => ({ message: detail, code: null, type: null })),
]);

/** The words of an answer; what is in `secrets` shows as `…` should the service repeat any part of it. */
export function readServiceMessage(
  { json, text }: Pick<InferenceAnswer, 'json' | 'text'>,
  secrets: readonly string[],
): ServiceMessage {
  const inner = z.object({ error: z.unknown() }).safeParse(json).data?.error;
  const { data } = errorBody.safeParse(inner ?? json);
  const words = data?.message ?? (json === undefined ? hintOf(text) : printed(json));
  const charactersMax = data === undefined ? hintCharactersMax : wordsCharactersMax;
  return {
    text: foreignText(withoutKeyParts(words, secrets), { secrets, charactersMax }),
    code: [data?.code, data?.type].filter((part) => part != null).join(' '),
  };
}

/** Printed again: a secret may stand in the body itself with escapes that nobody expects. */
function printed(json: unknown): string {
  try {
    return JSON.stringify(json);
  } catch {
    return ''; // Nested too deeply.
  }
}

function serviceWordsOf(findings: z.infer<typeof finding>[]): string {
  return findings
    .slice(0, findingsMax)
    .map(({ loc, msg }) => (loc.length === 0 ? msg : `${loc.join('.')}: ${msg}`))
    .join('; ');
}

/** Completes a sentence with the service's words, in quotes; empty when there are none. */
export function quotedMessage({ text }: ServiceMessage): string {
  return text === '' ? '' : ` It says: "${text.replace(/\.$/, '')}".`;
}

/** Words that speak of a request that is too long, as those may name the model too. */
const sizePhrase = /context|\btokens?\b|length|too (long|large)/i;

/** Whether the service means that it has no such model, or not for this project. */
function namesModel({ text, code }: ServiceMessage, model: string): boolean {
  if (/model[_ ]?not[_ ]?(found|available)|(invalid|unknown)[_ ]?model/i.test(code)) return true;
  const rest = text.replaceAll(model, 'model');
  return /\bmodel\b/i.test(rest) && !sizePhrase.test(rest);
}

/** What shows where a part of the key stood. */
const ellipsis = '…';

/** Runs shorter than this are no help to anybody, and may be words. */
const runMin = 8;

/**
 * The words, with `…` for every run of 8 and more characters that is also one of a secret, or of its Base64 (of
 * `Bearer <key>` too, wherever the key begins in it). Some services quote the first characters of a key that
 * they refuse.
 */
function withoutKeyParts(words: string, secrets: readonly string[]): string {
  const runs = new Set(secrets.flatMap(formsOf).flatMap(runsOf));
  if (runs.size === 0) return words;
  let shown = '';
  let from = 0;
  for (let at = 0; at + runMin <= words.length; at += 1) {
    if (!runs.has(words.slice(at, at + runMin))) continue;
    shown += words.slice(from, at) + ellipsis;
    while (runs.has(words.slice(at, at + runMin))) at += 1;
    from = at + runMin - 1;
    at = from - 1;
  }
  return shown + words.slice(from);
}

function runsOf(form: string): string[] {
  const count = Math.max(0, form.length - runMin + 1);
  return Array.from({ length: count }, (_, at) => form.slice(at, at + runMin));
}

/** Base64 writes three bytes as four signs: a text has three forms, by the place where it begins. */
function formsOf(secret: string): string[] {
  const encoded = ['', ' ', '  '].flatMap((before) => {
    const bytes = Buffer.from(`${before}${secret}`);
    // Signs that hang on other bytes than those of the secret are left out.
    const first = Math.ceil((before.length * 4) / 3);
    const last = Math.floor((bytes.length * 8) / 6);
    return (['base64', 'base64url'] as const).map((kind) =>
      bytes.toString(kind).slice(first, last),
    );
  });
  return [
    secret,
    JSON.stringify(secret).slice(1, -1),
    encodeURIComponent(secret.toWellFormed()),
    ...encoded,
  ];
}
