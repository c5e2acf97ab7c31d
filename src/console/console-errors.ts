/** How the private listener says no: problem JSON for programs, the catalogue's form below `/odata`. */
import { isAppError } from '../domain/app-error.ts';
import { type ODataRefusal, refusalBody } from '../filter/odata/refusal.ts';
import { problemResponse } from '../http/problem.ts';

/** Seconds after which it may be tried again. */
const retryAfterSeconds = 5;

const unavailableDetail =
  'The query cannot be answered at the moment, or took too long. Try again later, or narrow it.';

/** For requests that right credentials alone would not make welcome. */
export function forbidden(detail: string, requestId: string): Response {
  const body = { type: 'about:blank', title: 'Forbidden', status: 403, detail, requestId };
  return problemJson(body);
}

/** An error of `/api`. The store's own words stay in the log. */
export function apiProblem(error: unknown, requestId: string): Response {
  if (!isAppError(error, 'unavailable')) return problemResponse(error, requestId);
  const title = 'Service unavailable';
  return problemJson(
    { type: 'about:blank', title, status: 503, detail: unavailableDetail, requestId },
    { 'Retry-After': String(retryAfterSeconds) },
  );
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

function problemJson(
  body: { status: number; [member: string]: unknown },
  headers: Record<string, string> = {},
): Response {
  return new Response(JSON.stringify(body), {
    status: body.status,
    headers: { 'Content-Type': 'application/problem+json', ...headers },
  });
}
