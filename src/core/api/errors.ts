/** Error answers of the private listener: problem JSON, or the format of the catalogue below `/odata`. */

import { setImmediate as yieldToOthers } from 'node:timers/promises';
import { z } from 'zod';
import { filterListPath, invalidPath, type ODataRefusal, refusalBody } from '../../filter/odata.ts';
import { problemResponse, statusOf } from '../http/problem.ts';
import { type AppError, errorText, isAppError } from '../terms/app-error.ts';

export const odataPath = '/odata/v1';
export const stacPath = '/stac';

/** Value of Retry-After. */
const retryAfterSeconds = 5;

const unavailableDetail =
  'The query took too long, or there is no product index. Retry later. If this happens again, use a more specific query, and check the index: `earshot admin index`.';

const unknownPath = 'Unknown path. GET /api lists all paths.';

/** Refuses a request that credentials would not make valid. */
export function forbidden(path: string, detail: string, requestId: string): Response {
  return refused(path, { title: 'Forbidden', status: 403, detail, requestId });
}

/** Answers a request to an unknown path. */
export function notFound(path: string, requestId: string): Response {
  const detail = isODataPath(path) ? invalidPath : unknownPath;
  return refused(path, { title: 'Not found', status: 404, detail, requestId });
}

/** Methods of the paths that have others than GET and HEAD. */
const otherMethods: Readonly<Record<string, readonly string[]>> = {
  [`${odataPath}${filterListPath}`]: ['POST'],
  [`${stacPath}/search`]: ['GET', 'HEAD', 'POST'],
};

/** Returns the methods of a path. */
export function methodsOf(path: string): readonly string[] {
  return otherMethods[path] ?? ['GET', 'HEAD'];
}

/** Returns the refusal of a method that a path does not have; undefined for others. No method changes anything. */
export function refusedMethod(
  { method, path }: { method: string; path: string },
  newRequestId: () => string,
): Response | undefined {
  const allowed = methodsOf(path);
  if (allowed.includes(method)) return undefined;
  const title = 'Method not allowed';
  const detail = `Use ${allowed.join(' or ')}.`;
  const problem = { title, status: 405, detail, requestId: newRequestId() };
  return refused(path, problem, { Allow: allowed.join(', ') });
}

/** Returns true for `/odata` and the paths below it. */
export function isODataPath(path: string): boolean {
  return /^\/odata(?:\/|$)/.test(path);
}

/** Returns true for `/stac` and the paths below it. */
export function isStacPath(path: string): boolean {
  return path === stacPath || path.startsWith(`${stacPath}/`);
}

/** Facts of refusals above the limits of queries, live streams and bodies. */
const limitFacts = ['waitingMax', 'viewersMax', 'allBytesMax'];

/** Returns true for a refusal above a limit, which is no fault of the store. */
export function exceedsLimit(error: unknown): error is AppError {
  return isAppError(error) && limitFacts.some((name) => name in error.facts);
}

/** Answers an error of `/api`. Details of the store are only logged. */
export function apiProblem(error: unknown, requestId: string): Response {
  if (!isAppError(error, 'unavailable')) return problemResponse(error, requestId);
  const title = 'Service unavailable';
  const detail = exceedsLimit(error) ? errorText(error) : unavailableDetail;
  const problem = { title, status: 503, detail, requestId };
  return problemJson(problem, { 'Retry-After': String(retryAfterSeconds) });
}

/** Answers a refusal of `/odata`. Its header `request-id` repeats the id in the body. */
export function odataRefusal(
  refusal: ODataRefusal,
  requestId: string,
  further: Readonly<Record<string, string>> = {},
): Response {
  const headers: Record<string, string> = { 'request-id': requestId, ...further };
  if (refusal.status === 503) headers['Retry-After'] = String(retryAfterSeconds);
  return Response.json(refusalBody(refusal, requestId), { status: refusal.status, headers });
}

/** Answers a failure of `/odata`: the refusal of a body, 503 if a retry may succeed, otherwise 500. */
export function odataFailure(error: unknown, requestId: string): Response {
  const status = statusOf(error);
  if (status === 400 || status === 413 || status === 415) {
    return odataRefusal({ status, message: errorText(error) }, requestId);
  }
  const [failure, message] = isAppError(error, 'unavailable')
    ? ([503, exceedsLimit(error) ? errorText(error) : unavailableDetail] as const)
    : ([500, `Internal error; see the log for request ${requestId}.`] as const);
  return odataRefusal({ status: failure, message }, requestId);
}

/** Members that problem JSON always has. */
const problemSchema = z.looseObject({
  title: z.string(),
  detail: z.string(),
  errors: z.array(z.string()).default([]),
});

/** Answers an error of `/stac`: problem JSON, with the members of OGC API Features (1.0, 7.5.1) in addition. */
export async function stacProblem(error: unknown, requestId: string): Promise<Response> {
  const answer = apiProblem(error, requestId);
  const problem = problemSchema.parse(await answer.json());
  const { title, detail, errors } = problem;
  const body = { code: title, description: [detail, ...errors].join(' '), ...problem };
  return new Response(JSON.stringify(body), answer);
}

interface Problem {
  title: string;
  status: number;
  detail: string;
  requestId: string;
}

/** Refuses a request in the format of its path. */
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

/** Items serialized without a pause: records of about 5 kB, less than a millisecond. */
const itemsAtOnce = 50;

/**
 * Returns the same text as `Response.json`, but pauses after every few items of a list so that other work can run.
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
    if (texts.length % itemsAtOnce === 0) await yieldToOthers();
  }
  return `[${texts.join(',')}]`;
}
