/** What the imitated services share: answers and how they are written, tokens of requests, and a log of requests. */
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { HonoRequest } from 'hono';
import { SubscriptionRefusal } from '../account.ts';
import type { ServiceSettings } from '../live-settings.ts';

/** An answer before it is written. */
export interface ServiceAnswer {
  readonly status: number;
  /** An object as JSON, a text as it stands; null for no body. */
  readonly body: object | string | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Cuts the connection after this number of bytes of a text. */
  readonly cutAfter?: number;
}

/** Writes an answer; `cut` cuts the connection before any of it. */
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

/** Returns a page such as a proxy shows. */
export function pageOf(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<!doctype html><html lang="en"><title>${escaped}</title><h1>${escaped}</h1></html>`;
}

/** Returns the bearer token of a request; undefined where there is none. */
export function bearerOf(request: HonoRequest): string | undefined {
  return /^Bearer +(\S+)$/i.exec(request.header('Authorization') ?? '')?.[1];
}

const requestsMax = 1_000;

/** Creates an empty log of requests. */
export function createRequestLog<Entry extends object>() {
  const requests: Entry[] = [];
  return {
    /** Adds an entry; what is set in it later shows in the log. */
    open: (request: Entry): Entry => {
      requests.push(request);
      if (requests.length > requestsMax) requests.shift();
      return request;
    },
    /** Returns copies of the last thousand, in the order of arrival. */
    entries: (): readonly Readonly<Entry>[] => requests.map((request) => ({ ...request })),
  };
}

/** Thrown for a body of the wrong shape; answered 422 with the faults, in the form of the recorded answers. */
export class InvalidBody extends Error {
  override readonly name = 'InvalidBody';
  readonly faults: readonly object[];

  constructor(faults: readonly object[]) {
    super('The body is not of the right shape.');
    this.faults = faults;
  }
}

/** Returns an error whose `detail` is always a text: these were recorded so. */
export function plainError(status: number, detail: string, headers = {}): ServiceAnswer {
  return { status, body: { detail }, headers };
}

/** Recorded for a path that is none; with which status is not known. */
export const invalidPath = plainError(404, 'Invalid odata path');

/** Returns the answer to what was thrown; undefined for anything that is no refusal. */
export function refusalAnswer(
  error: unknown,
  settings: ServiceSettings,
  requestId: string,
): ServiceAnswer | undefined {
  if (error instanceof InvalidBody) return { status: 422, body: { detail: error.faults } };
  if (!(error instanceof SubscriptionRefusal)) return undefined;
  const { kind, message } = error;
  // Specification, Errors: the detail of a wrong filter is a text.
  if (kind === 'filter') return plainError(400, message);
  const { limitStatus: limit, unknownIdStatus } = settings;
  const statuses = { limit, 'unknown-id': unknownIdStatus, request: 400 };
  return formedError(statuses[kind], message, settings, requestId);
}

/** Returns an error in the form of `detail` that the settings say. */
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
