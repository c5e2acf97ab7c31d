/** HTTP statuses of error codes, and responses as problem JSON (RFC 9457). */

import type { ContentfulStatusCode } from 'hono/utils/http-status';
import { AppError, type ErrorCode, errorText } from '../terms/app-error.ts';

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

/** Details for clients about failures of this server. */
const internalDetail = 'Internal error. The log has the details under the request id.';
const unavailableDetail = 'The receiver cannot store notifications now. Retry later.';

/** Value of Retry-After, in seconds. */
const retryAfterSeconds = 5;

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
  const detail = own
    ? errorText(error)
    : code === 'unavailable'
      ? unavailableDetail
      : internalDetail;
  const details = own && error.details.length > 0 ? { errors: error.details } : {};
  const body = { type: 'about:blank', title, status, detail, ...details, requestId };
  const headers: Record<string, string> = {
    'Content-Type': 'application/problem+json',
    ...extraHeaders,
  };
  if (code === 'unavailable') headers['Retry-After'] = String(retryAfterSeconds);
  return new Response(JSON.stringify(body), { status, headers });
}

/** Returns the HTTP status of an error. */
export function statusOf(error: unknown): number {
  return statuses[error instanceof AppError ? error.code : 'internal'].status;
}
