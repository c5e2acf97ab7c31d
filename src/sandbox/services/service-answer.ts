/** Shared parts of the imitated services: answers, bearer tokens, and the request log. */
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { HonoRequest } from 'hono';
import { SubscriptionRefusal } from '../account.ts';
import type { ServiceSettings } from '../live-settings.ts';

/** An answer before it is sent. */
export interface ServiceAnswer {
  readonly status: number;
  /** An object is sent as JSON, a string unchanged; null: no body. */
  readonly body: object | string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Closes the connection after this number of bytes of a string body. */
  readonly cutAfter?: number;
}

/** Sends an answer; `cut` closes the connection without one. */
export async function writeAnswer(
  answer: ServiceAnswer | 'cut',
  outgoing: HttpBindings['outgoing'],
): Promise<Response> {
  if (answer !== 'cut') {
    const { status, body, headers = {}, cutAfter } = answer;
    if (typeof body !== 'string')
      return body
        ? Response.json(body, { status, headers })
        : new Response(null, { status, headers });
    if (cutAfter === undefined) return new Response(body, { status, headers });
    const bytes = Buffer.from(body);
    outgoing.writeHead(status, { ...headers, 'Content-Length': bytes.length });
    await new Promise((resolve) => outgoing.write(bytes.subarray(0, cutAfter), resolve));
  }
  outgoing.destroy();
  return RESPONSE_ALREADY_SENT;
}

/** Faults that product lists and queues have in common. */
export const answerFaults = [
  'rateLimited',
  'serverError',
  'htmlPage',
  'connectionCut',
  'brokenJson',
] as const;
type AnswerFault = (typeof answerFaults)[number];

/**
 * Injects a fault into an answer. The first three faults replace the answer without requesting it; the others
 * leave an error answer unchanged.
 */
export function injectAnswerFault(
  fault: AnswerFault,
  answer: () => ServiceAnswer,
  retryAfterSeconds: number | null,
  settings: ServiceSettings,
  requestId: string,
): ServiceAnswer {
  if (fault === 'rateLimited') {
    const refusal = formedError(429, 'Too many requests.', settings, requestId);
    if (retryAfterSeconds === null) return refusal;
    return { ...refusal, headers: { 'Retry-After': String(retryAfterSeconds) } };
  }
  if (fault === 'serverError') {
    return formedError(500, 'Internal server error.', settings, requestId);
  }
  if (fault === 'htmlPage') {
    return page('<!doctype html><title>Please wait</title><p>Please wait.</p>', 'text/html');
  }
  const correct = answer();
  if (correct.status !== 200) return correct;
  const text = JSON.stringify(correct.body);
  const half = Math.floor(text.length / 2);
  return fault === 'connectionCut' ? { ...page(text), cutAfter: half } : page(text.slice(0, half));
}

function page(text: string, contentType = 'application/json'): ServiceAnswer {
  return { status: 200, body: text, headers: { 'Content-Type': contentType } };
}

/** Returns an HTML page like that of a proxy. */
export function pageOf(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<!doctype html><html lang="en"><title>${escaped}</title><h1>${escaped}</h1></html>`;
}

/** Returns the bearer token of a request; undefined if there is none. */
export function bearerOf(request: HonoRequest): string | undefined {
  return /^Bearer +(\S+)$/i.exec(request.header('Authorization') ?? '')?.[1];
}

const requestsMax = 1_000;

/** Creates an empty request log. */
export function createRequestLog<Entry extends object>() {
  const requests: Entry[] = [];
  return {
    /** Adds an entry; later changes to it appear in the log. */
    open: (request: Entry): Entry => {
      requests.push(request);
      if (requests.length > requestsMax) requests.shift();
      return request;
    },
    /** Returns copies of the last 1,000 entries, oldest first. */
    entries: (): readonly Readonly<Entry>[] => requests.map((request) => ({ ...request })),
  };
}

/** Thrown for an invalid body; answered 422 with `errors`, in the form of the recorded answers. */
export class InvalidBody extends Error {
  override readonly name = 'InvalidBody';
  readonly errors: readonly object[];

  constructor(errors: readonly object[]) {
    super('Invalid body.');
    this.errors = errors;
  }
}

/** Returns an error whose `detail` is always a string, as recorded. */
export function plainError(status: number, detail: string, headers = {}): ServiceAnswer {
  return { status, body: { detail }, headers };
}

/** Recorded answer to an unknown path; its real status is not known. */
export const invalidPath = plainError(404, 'Invalid odata path');

/** Returns the answer to a thrown refusal; undefined for other errors. */
export function refusalAnswer(
  error: unknown,
  settings: ServiceSettings,
  requestId: string,
): ServiceAnswer | undefined {
  if (error instanceof InvalidBody) return { status: 422, body: { detail: error.errors } };
  if (!(error instanceof SubscriptionRefusal)) return undefined;
  const { kind, message } = error;
  // The detail for an invalid filter is a string (specification, Errors).
  if (kind === 'filter') return plainError(400, message);
  const { limitStatus: limit, unknownIdStatus } = settings;
  const statuses = { limit, 'unknown-id': unknownIdStatus, request: 400 };
  return formedError(statuses[kind], message, settings, requestId);
}

/** Returns an error with `detail` in the form of the settings. */
export function formedError(
  status: number,
  message: string,
  { detailForm }: ServiceSettings,
  requestId: string,
): ServiceAnswer {
  const forms = {
    string: message,
    object: { message, request_id: requestId },
    list: [{ type: 'value_error', loc: ['body'], msg: message, input: null, ctx: { error: {} } }],
  };
  return { status, body: { detail: forms[detailForm] } };
}
