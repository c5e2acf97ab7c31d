/** Faults of requests to the inference service, classified by status and error message. */
import { z } from 'zod';
import { retryAfterMs } from '../../http/bounded-fetch.ts';
import { foreignText, hintCharactersMax, hintOf } from '../../http/foreign-text.ts';

/**
 * `settings`: all requests fail until a person changes the settings. `service`: all requests fail, but may
 * succeed later. `job`: only this request fails. `caller`: the caller cancelled the request.
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

/** An answer with any status. */
export interface InferenceAnswer {
  status: number;
  headers: Headers;
  /** Raw body. */
  text: string;
  /** Undefined if the body is not JSON. */
  json: unknown;
}

/** Complete sentences without secrets: what happened and why, and what to do next. */
interface FaultText {
  happened: string;
  advice: string;
}

/**
 * Error of a request that returned no text. Its message is safe to show; it has no `cause`, because errors of
 * the network and the client library may quote the key.
 */
export class InferenceFault extends Error {
  readonly kind: InferenceFaultKind;
  /** The two parts of the message. */
  readonly happened: string;
  readonly advice: string;
  /** `Retry-After` of the service, of any length; null if missing. */
  readonly retryAfterMs: number | null;
  /** Tokens spent nevertheless; null if not reported. */
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

/** Service and model of a request, for messages. */
export interface InferenceTarget {
  /** Without `/openai/v1`. */
  baseUrl: string;
  /** Must not be shown. */
  apiKey: string;
  /** Null when listing models. */
  model: string | null;
}

/** Returns `inference service (host)`, for messages. */
export function serviceAt(baseUrl: string): string {
  return `inference service (${new URL(baseUrl).host})`;
}

/** Maximum number of models named in a message. */
const modelsNamedMax = 20;

/** Returns the fault of an error response. `available` lists the models; null if the service does not list them. */
export async function refusalFault(
  answer: InferenceAnswer,
  asked: InferenceTarget,
  available: () => Promise<string[] | null>,
): Promise<InferenceFault> {
  const message = readServiceMessage(answer, [asked.apiKey]);
  const kind = kindOf(answer.status, message, asked.model);
  const listed = kind === 'model_unavailable' ? await available() : null;
  const text =
    kind === 'model_unavailable'
      ? modelText(answer, asked, message, listed)
      : textOf(kind, answer, asked, quotedMessage(message));
  return new InferenceFault(kind, text, { retryAfterMs: retryAfterMs(answer.headers) });
}

/** The specification does not define statuses; these are their usual meanings. */
function kindOf(status: number, message: ServiceMessage, model: string | null): InferenceFaultKind {
  if (status >= 300 && status < 400) return 'redirected';
  if (status === 401) return 'wrong_key';
  if ([403, 400, 422].includes(status) && model !== null && namesModel(message, model)) {
    return 'model_unavailable';
  }
  // 402 (payment required) concerns the account, not one request.
  if (status === 403 || status === 402) return 'key_refused';
  if ([404, 405, 410].includes(status)) return 'model_unavailable';
  if (status === 429) return 'rate_limited';
  return status >= 500 || [408, 409, 425].includes(status) ? 'service_error' : 'request_refused';
}

function modelText(
  { status }: InferenceAnswer,
  { baseUrl, model }: InferenceTarget,
  message: ServiceMessage,
  listed: string[] | null,
): FaultText {
  const service = `the ${serviceAt(baseUrl)}`;
  // A list proves that the URL is right, so the model must be wrong.
  if (model === null || (listed === null && !namesModel(message, model))) {
    const happened = `There is no API at /openai/v1 of ${service} (${status}).${quotedMessage(message)}`;
    const other = model === null ? '' : `, and that the project of the key has the model ${model}`;
    const advice = `Check that EARSHOT_INFERENCE_URL is the URL before /openai/v1${other}.`;
    return { happened, advice };
  }
  const happened = `The model ${model} is not available to the project of the key at ${service} (${status}).${quotedMessage(message)}`;
  return { happened, advice: modelAdvice(model, listed) };
}

/** Returns the advice for an unavailable model; `listed` are the available ones, null if unknown. */
export function modelAdvice(model: string, listed: readonly string[] | null): string {
  if (listed === null || listed.includes(model)) {
    return 'Set EARSHOT_INFERENCE_MODEL to a model that the control panel of the service lists for the project.';
  }
  if (listed.length === 0) {
    return 'The service lists no model for this key. In the control panel, create a key for a project with models.';
  }
  const rest = listed.length - modelsNamedMax;
  const more = rest > 0 ? ` and ${rest} more` : '';
  return `Set EARSHOT_INFERENCE_MODEL to one of these: ${listed.slice(0, modelsNamedMax).join(', ')}${more}.`;
}

/** Returns the text for each kind; kinds without an entry are rejected requests. */
function textOf(
  kind: InferenceFaultKind,
  { status, headers }: InferenceAnswer,
  { baseUrl }: InferenceTarget,
  quote: string,
): FaultText {
  const service = `The ${serviceAt(baseUrl)}`;
  const texts: Partial<Record<InferenceFaultKind, [what: string, advice: string]>> = {
    wrong_key: [
      'does not accept the key',
      'Check EARSHOT_INFERENCE_API_KEY. A key is shown only once: if the key is lost, create a new key in the control panel.',
    ],
    key_refused: [
      'refuses this key',
      'The key may belong to another project or lack a permission. The control panel shows the keys of each project.',
    ],
    rate_limited: [
      'received too many requests',
      `Retry ${retryTime(headers)}. If this repeats, lower EARSHOT_SUMMARY_REQUESTS_PER_HOUR.`,
    ],
    service_error: ['is temporarily unavailable', 'Retry later.'],
  };
  if (kind === 'redirected') {
    const happened = `${service} redirects to ${redirectTarget(headers)} (${status}). earshot does not follow redirects, to protect the key.`;
    return { happened, advice: 'Check EARSHOT_INFERENCE_URL.' };
  }
  const rejected = 'A retry of the same request would also fail.';
  const [what, advice] = texts[kind] ?? ['rejects this request', rejected];
  return { happened: `${service} ${what} (${status}).${quote}`, advice };
}

function retryTime(headers: Headers): string {
  const waitMs = retryAfterMs(headers);
  if (waitMs === null) return 'later';
  const seconds = Math.ceil(waitMs / 1000);
  return `in ${seconds < 120 ? `${seconds} s` : `${Math.ceil(seconds / 60)} minutes`}`;
}

/** Returns only the origin: the rest of the URL may contain secrets. */
function redirectTarget(headers: Headers): string {
  const origin = URL.parse(headers.get('location') ?? '')?.origin ?? 'null';
  return origin === 'null' ? 'another URL' : origin;
}

interface ServiceMessage {
  /** Safe to show; may be empty. */
  text: string;
  /** Error codes of the service, such as `model_not_found`; may be empty. Not shown. */
  code: string;
}

const messageCharactersMax = 500;
const findingsMax = 5;
const name = z.union([z.string(), z.number()]).nullish().catch(null);

const finding = z.object({
  loc: z.array(z.union([z.string(), z.number()])).catch([]),
  msg: z.string(),
});

/** Known forms of error bodies (facts, catalogue 6); the specification has none. */
const errorBody = z.union([
  z.string().transform((message) => ({ message, code: null, type: null })),
  z.object({ message: z.string(), code: name, type: name }),
  z
    .object({
      detail: z.union([
        z.string(),
        z.object({ message: z.string() }).transform(({ message }) => message),
        // `input`, which repeats the request, is not read.
        z.array(finding).min(1).transform(findingsText),
      ]),
    })
    .transform(({ detail }) => ({ message: detail, code: null, type: null })),
]);

/** Reads the message of an error response; replaces parts of `secrets` by `…`. */
export function readServiceMessage(
  { json, text }: Pick<InferenceAnswer, 'json' | 'text'>,
  secrets: readonly string[],
): ServiceMessage {
  const inner = z.object({ error: z.unknown() }).safeParse(json).data?.error;
  const { data } = errorBody.safeParse(inner ?? json);
  const message = data?.message ?? (json === undefined ? hintOf(text) : printed(json));
  const charactersMax = data === undefined ? hintCharactersMax : messageCharactersMax;
  return {
    text: foreignText(withoutKeyParts(message, secrets), { secrets, charactersMax }),
    code: [data?.code, data?.type].filter((part) => part != null).join(' '),
  };
}

/** Serialized again, because the raw body may contain a secret with unusual escapes. */
function printed(json: unknown): string {
  try {
    return JSON.stringify(json);
  } catch {
    return ''; // Nested too deeply.
  }
}

function findingsText(findings: z.infer<typeof finding>[]): string {
  return findings
    .slice(0, findingsMax)
    .map(({ loc, msg }) => (loc.length === 0 ? msg : `${loc.join('.')}: ${msg}`))
    .join('; ');
}

/** Returns a sentence that quotes the message; empty without one. */
export function quotedMessage({ text }: ServiceMessage): string {
  return text === '' ? '' : ` Response: "${text.replace(/\.$/, '')}".`;
}

/** Matches messages about too long requests, which may name the model too. */
const sizePhrase = /context|\btokens?\b|length|too (long|large)/i;

/** Returns true if the message says that the model does not exist or is not available to the project. */
function namesModel({ text, code }: ServiceMessage, model: string): boolean {
  if (/model[_ ]?not[_ ]?(found|available)|(invalid|unknown)[_ ]?model/i.test(code)) return true;
  const rest = text.replaceAll(model, 'model');
  return /\bmodel\b/i.test(rest) && !sizePhrase.test(rest);
}

/** Replaces parts of a key. */
const ellipsis = '…';

/** Minimum length of a replaced part: shorter ones reveal little, and may be words. */
const runMin = 8;

/**
 * Replaces by `…` every run of 8 or more characters that also occurs in a secret or its Base64 form, at any
 * offset, as in `Bearer <key>`. Some services quote the first characters of a key that they reject.
 */
function withoutKeyParts(message: string, secrets: readonly string[]): string {
  const runs = new Set(secrets.flatMap(formsOf).flatMap(runsOf));
  if (runs.size === 0) return message;
  let shown = '';
  let from = 0;
  for (let at = 0; at + runMin <= message.length; at += 1) {
    if (!runs.has(message.slice(at, at + runMin))) continue;
    shown += message.slice(from, at) + ellipsis;
    while (runs.has(message.slice(at, at + runMin))) at += 1;
    from = at + runMin - 1;
    at = from - 1;
  }
  return shown + message.slice(from);
}

function runsOf(form: string): string[] {
  const count = Math.max(0, form.length - runMin + 1);
  return Array.from({ length: count }, (_, at) => form.slice(at, at + runMin));
}

/** Base64 encodes three bytes as four characters, so a text has three forms, one per offset. */
function formsOf(secret: string): string[] {
  const encoded = ['', ' ', '  '].flatMap((before) => {
    const bytes = Buffer.from(`${before}${secret}`);
    // Drops characters that depend on other bytes than those of the secret.
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
