/** Shared parts of the imitated services: answers, their injected faults, and bearer tokens. */
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { HonoRequest } from 'hono';
import { ODataRefusal, refusalBody } from '../../filter/odata.ts';
import { SubscriptionRefusal } from '../account.ts';
import type { QueueFault, ServiceSettings } from '../settings.ts';

/** An answer before it is sent. */
export interface ServiceAnswer {
  readonly status: number;
  /** An object is sent as JSON, a string unchanged; null: no body. */
  readonly body: object | string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Closes the connection after half of a string body. */
  readonly isCut?: boolean;
}

/** Settings, and the id of the request in its answer. */
export interface ErrorForm {
  readonly settings: ServiceSettings;
  readonly requestId: string;
}

/** Sends an answer; `cut` closes the connection without one. */
export async function writeAnswer(
  answer: ServiceAnswer | 'cut',
  outgoing: HttpBindings['outgoing'],
): Promise<Response> {
  if (answer !== 'cut') {
    const { status, body, headers = {}, isCut } = answer;
    if (body === null) return new Response(null, { status, headers });
    if (typeof body === 'object') return Response.json(body, { status, headers });
    if (!isCut) return new Response(body, { status, headers });
    const bytes = Buffer.from(body);
    outgoing.writeHead(status, { ...headers, 'Content-Length': bytes.length });
    const half = bytes.subarray(0, bytes.length / 2);
    await new Promise((resolve) => outgoing.write(half, resolve));
  }
  outgoing.destroy();
  return RESPONSE_ALREADY_SENT;
}

/** Returns the answer, with a common fault injected. The first three replace the answer without requesting it. */
export function injectFault(
  fault: QueueFault | undefined,
  answer: () => ServiceAnswer,
  form: ErrorForm,
): ServiceAnswer {
  if (fault === 'rateLimited') {
    const { retryAfterSeconds } = form.settings;
    const headers = retryAfterSeconds === null ? {} : { 'Retry-After': String(retryAfterSeconds) };
    return { ...formedError(429, 'Too many requests.', form), headers };
  }
  if (fault === 'serverError') return formedError(500, 'Internal server error.', form);
  if (fault === 'htmlPage') return page(200, 'Please wait');
  const answered = answer();
  const { status, body } = answered;
  const isDamaged = fault === 'connectionCut' || fault === 'brokenJson';
  if (!isDamaged || status !== 200) return answered;
  const text = JSON.stringify(body);
  const headers = { 'Content-Type': 'application/json' };
  if (fault === 'connectionCut') return { status, body: text, headers, isCut: true };
  return { status, body: text.slice(0, text.length / 2), headers };
}

/** Returns an HTML page like that of a proxy. */
export function page(status: number, text: string): ServiceAnswer {
  const body = `<!doctype html><html lang="en"><title>${text}</title><h1>${text}</h1></html>`;
  return { status, body, headers: { 'Content-Type': 'text/html; charset=utf-8' } };
}

/** Returns the bearer token of a request; undefined if there is none. */
export function bearerOf(request: HonoRequest): string | undefined {
  return /^Bearer +(\S+)$/i.exec(request.header('Authorization') ?? '')?.[1];
}

/** Thrown for invalid input; answered 422 with `errors`, in the form of the recorded answers. */
export class InvalidInput extends Error {
  readonly errors: readonly object[];

  constructor(errors: readonly object[]) {
    super('Invalid input.');
    this.errors = errors;
  }
}

/** Returns an error whose `detail` is always a string, as recorded. */
export function plainError(status: number, detail: string, headers = {}): ServiceAnswer {
  return { status, body: { detail }, headers };
}

/** Returns the answer to a thrown refusal; throws other errors again. */
export function refusalAnswer(error: unknown, form: ErrorForm): ServiceAnswer {
  if (error instanceof ODataRefusal) {
    return { status: error.status, body: refusalBody(error, form.requestId) };
  }
  if (error instanceof InvalidInput) return { status: 422, body: { detail: error.errors } };
  if (!(error instanceof SubscriptionRefusal)) throw error;
  const { kind, message } = error;
  // The detail for an invalid filter is a string (specification, Errors).
  if (kind === 'filter') return plainError(400, message);
  const { limitStatus: limit, unknownIdStatus } = form.settings;
  const statuses = { limit, 'unknown-id': unknownIdStatus, request: 400 };
  return formedError(statuses[kind], message, form);
}

/** Returns an error with the id of the request. */
export function formedError(
  status: number,
  message: string,
  { requestId }: ErrorForm,
): ServiceAnswer {
  return { status, body: { detail: { message, request_id: requestId } } };
}
