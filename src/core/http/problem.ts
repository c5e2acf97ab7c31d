/** HTTP statuses of error codes, and responses as problem JSON (RFC 9457). */

import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { Protocol, Refusal } from '../api/listener-slot.ts';
import { AppError, type ErrorCode, errorText, isAppError } from '../terms/app-error.ts';

const statuses: Record<ErrorCode, { status: ContentfulStatusCode; title: string }> = {
  usage: { status: 400, title: 'Bad request' },
  invalid: { status: 400, title: 'Bad request' },
  unauthorized: { status: 401, title: 'Unauthorized' },
  not_found: { status: 404, title: 'Not found' },
  wrong_method: { status: 405, title: 'Method not allowed' },
  conflict: { status: 409, title: 'Conflict' },
  differences: { status: 409, title: 'Conflict' },
  cancelled: { status: 409, title: 'Conflict' },
  too_large: { status: 413, title: 'Content too large' },
  unsupported: { status: 415, title: 'Unsupported media type' },
  too_many: { status: 429, title: 'Too many requests' },
  unavailable: { status: 503, title: 'Service unavailable' },
  configuration: { status: 500, title: 'Internal error' },
  internal: { status: 500, title: 'Internal error' },
};

/** Value of Retry-After after a failure that may be temporary. */
export const retryAfterSeconds = 5;

/** Details for clients about failures of this server. */
const internalDetail = 'Internal error. The log has the details under the request id.';
const storeDetail = 'The receiver cannot store notifications now. Retry later.';

/**
 * Creates the response for an error. Includes the message of an `AppError` about the request; for errors of
 * the server, only a fixed sentence.
 */
export function problemResponse(
  error: unknown,
  requestId: string,
  extraHeaders: Readonly<Record<string, string>> = {},
): Response {
  const code = error instanceof AppError ? error.code : 'internal';
  const { status, title } = statuses[code];
  const own = error instanceof AppError && status < 500;
  const detail = own ? errorText(error) : code === 'unavailable' ? storeDetail : internalDetail;
  const details = own && error.details.length > 0 ? { errors: error.details } : {};
  const retry = code === 'unavailable' ? { 'Retry-After': String(retryAfterSeconds) } : {};
  const headers = { ...extraHeaders, ...retry } as Record<string, string>;
  return problemJson({ title, status, detail, ...details, requestId }, headers);
}

/** Returns the HTTP status of an error. */
export function statusOf(error: unknown): number {
  return statuses[error instanceof AppError ? error.code : 'internal'].status;
}

export const unavailableDetail =
  'The query took too long, or there is no product index. Retry later. If this happens again, use a more specific query, and check the receiver: `earshot status`.';

const unknownPath = 'Unknown path. GET /api lists all paths.';

/** Error answers, in the format of each path. */
export type Answers = ReturnType<typeof createAnswers>;

/** Creates the answers for these protocols; all other paths answer problem JSON. */
export function createAnswers(protocols: readonly Protocol[]) {
  const protocolOf = (path: string) => protocols.find(({ root }) => isBelow(path, root));
  const refused = (path: string, refusal: Refusal, headers: Record<string, string> = {}) =>
    protocolOf(path)?.refusal?.(refusal, headers) ?? problemJson(refusal, headers);
  /** Returns the methods of a path. */
  const methodsOf = (path: string): readonly string[] =>
    protocolOf(path)?.methods?.[path] ?? ['GET', 'HEAD'];
  return {
    methodsOf,
    /** Refuses a request that credentials would not make valid. */
    forbidden: (path: string, detail: string, requestId: string) =>
      refused(path, { title: 'Forbidden', status: 403, detail, requestId }),
    /** Answers a request to an unknown path. */
    notFound: (path: string, requestId: string) =>
      refused(path, { title: 'Not found', status: 404, detail: unknownPath, requestId }),
    /** Returns the refusal of a method that a path does not have; undefined for others. No method changes anything. */
    refusedMethod: (
      { method, path }: { method: string; path: string },
      newRequestId: () => string,
    ): Response | undefined => {
      const allowed = methodsOf(path);
      if (allowed.includes(method)) return undefined;
      const title = 'Method not allowed';
      const detail = `Use ${allowed.join(' or ')}.`;
      const refusal = { title, status: 405, detail, requestId: newRequestId() };
      return refused(path, refusal, { Allow: allowed.join(', ') });
    },
    /** Answers a failure. */
    failure: (path: string, error: unknown, requestId: string) =>
      protocolOf(path)?.failure?.(error, requestId) ?? apiProblem(error, requestId),
    /** Returns true for a path that scripts of configured origins may read. */
    isShared: (path: string) => isBelow(path, '/api') || protocolOf(path)?.isShared === true,
  };
}

/** Returns true for a path and the paths below it. */
export const isBelow = (path: string, root: string): boolean =>
  path === root || path.startsWith(`${root}/`);

/** Facts of refusals above the limits of queries, streams and bodies. */
const limitFacts = ['waitingMax', 'readersMax', 'allBytesMax'];

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

function problemJson(refusal: Refusal, headers: Record<string, string>): Response {
  return new Response(JSON.stringify({ type: 'about:blank', ...refusal }), {
    status: refusal.status,
    headers: { 'Content-Type': 'application/problem+json', ...headers },
  });
}
