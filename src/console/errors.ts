/** How the private listener says no: problem JSON for programs, the catalogue's form below `/odata`. */

import { setImmediate as othersTurn } from 'node:timers/promises';
import type { Context } from 'hono';
import { isAppError } from '../domain/app-error.ts';
import { filterListPath, invalidPath, type ODataRefusal, refusalBody } from '../filter/odata.ts';
import { problemResponse } from '../http/problem.ts';

export const odataPath = '/odata/v1';

/** Seconds after which it may be tried again. */
const retryAfterSeconds = 5;

const unavailableDetail =
  'The query cannot be answered at the moment: it took too long, or there is no product index (check with `earshot index`). Retry later, or narrow the query.';

const wherePathsLead = 'There is nothing at this path. GET / lists all paths.';

/** For requests that right credentials alone would not make welcome. */
export function forbidden(path: string, detail: string, requestId: string): Response {
  return refused(path, { title: 'Forbidden', status: 403, detail, requestId });
}

/** For a path that leads nowhere. */
export function nothingThere(path: string, requestId: string): Response {
  const detail = isODataPath(path) ? invalidPath : wherePathsLead;
  return refused(path, { title: 'Not found', status: 404, detail, requestId });
}

/** The refusal of a method that a path does not have; nothing for others. No method changes anything. */
export function refusedMethod(
  { method, path }: { method: string; path: string },
  newRequestId: () => string,
): Response | undefined {
  const allowed = path === `${odataPath}${filterListPath}` ? ['POST'] : ['GET', 'HEAD'];
  if (allowed.includes(method)) return undefined;
  const title = 'Method not allowed';
  const detail = `Use ${allowed.join(' or ')}.`;
  const problem = { title, status: 405, detail, requestId: newRequestId() };
  return refused(path, problem, { Allow: allowed.join(', ') });
}

/** True for `/odata` and all below it. */
export function isODataPath(path: string): boolean {
  return /^\/odata(?:\/|$)/.test(path);
}

/** An error of `/api`. The store's own words stay in the log. */
export function apiProblem(error: unknown, requestId: string): Response {
  if (!isAppError(error, 'unavailable')) return problemResponse(error, requestId);
  const title = 'Service unavailable';
  const problem = { title, status: 503, detail: unavailableDetail, requestId };
  return problemJson(problem, { 'Retry-After': String(retryAfterSeconds) });
}

/** A refusal of `/odata`, whose header `request-id` repeats the id of its body. */
export function odataRefusal(
  refusal: ODataRefusal,
  requestId: string,
  further: Readonly<Record<string, string>> = {},
): Response {
  const headers: Record<string, string> = { 'request-id': requestId, ...further };
  if (refusal.status === 503) headers['Retry-After'] = String(retryAfterSeconds);
  return Response.json(refusalBody(refusal, requestId), { status: refusal.status, headers });
}

/** A failure of `/odata`: 503 where it may work later, else 500. */
export function odataFailure(error: unknown, requestId: string): Response {
  const [status, message] = isAppError(error, 'unavailable')
    ? ([503, unavailableDetail] as const)
    : ([500, 'Something went wrong here. The log has the details.'] as const);
  return odataRefusal({ status, message }, requestId);
}

interface Problem {
  title: string;
  status: number;
  detail: string;
  requestId: string;
}

/** Refuses a request for what it is, in the form of the path that it came to. */
function refused(path: string, problem: Problem, headers: Record<string, string> = {}): Response {
  if (!isODataPath(path)) return problemJson(problem, headers);
  const { status, detail, requestId } = problem;
  return Response.json({ detail }, { status, headers: { 'request-id': requestId, ...headers } });
}

function problemJson(problem: Problem, headers: Record<string, string>): Response {
  return new Response(JSON.stringify({ type: 'about:blank', ...problem }), {
    status: problem.status,
    headers: { 'Content-Type': 'application/problem+json', ...headers },
  });
}

/** Records of some 5 kB each: less than a millisecond. */
const itemsAtOnce = 50;

/**
 * The same text as `Response.json` would have, but in the lists of the body a pause after each few
 * items, for whatever else has to be done.
 */
export async function jsonAnswer(body: object, headers: Record<string, string>): Promise<Response> {
  const members: string[] = [];
  for (const [name, value] of Object.entries(body)) {
    if (value === undefined) continue;
    const text = Array.isArray(value) ? await listText(value) : JSON.stringify(value);
    members.push(`${JSON.stringify(name)}:${text}`);
  }
  const type = { 'Content-Type': 'application/json' };
  return new Response(`{${members.join(',')}}`, { headers: { ...type, ...headers } });
}

async function listText(items: readonly unknown[]): Promise<string> {
  const texts: string[] = [];
  for (const item of items) {
    texts.push(JSON.stringify(item));
    if (texts.length % itemsAtOnce === 0) await othersTurn();
  }
  return `[${texts.join(',')}]`;
}

/**
 * Under the Host that was let in, whatever name the request line may have (RFC 9112, 3.2.2). A proxy in
 * front that speaks HTTPS says so in `X-Forwarded-Proto`; a liar fools but itself.
 */
export function askedUrl(context: Context): URL {
  const { pathname, search } = new URL(context.req.url);
  const host = URL.parse(`http://${context.req.header('host') ?? ''}`)?.host ?? 'localhost';
  const url = new URL(`http://${host}${pathname}${search}`);
  if (context.req.header('x-forwarded-proto')?.toLowerCase() === 'https') url.protocol = 'https:';
  return url;
}
