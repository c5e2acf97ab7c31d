/** How the inference service says no: the statuses and forms that servers of this interface are known to use. */
import type { InferenceSettings } from './inference-settings.ts';

/** An answer before it is written; a text is a page. */
export interface InferenceAnswer {
  readonly status: number;
  readonly body: object | string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error in the form that the settings say. */
export function formedError(
  status: number,
  { message, type, code }: { message: string; type: string; code: string | null },
  { errorForm }: InferenceSettings,
): InferenceAnswer {
  const forms = {
    openai: { error: { message, type, param: null, code } },
    object: { object: 'error', message, type, param: null, code: status },
    detail: { detail: message },
    html: pageOf(message),
  };
  return { status, body: forms[errorForm] };
}

/** For a key that is missing, or nobody's. */
export function unauthorized(settings: InferenceSettings): InferenceAnswer {
  const message = 'Incorrect API key provided.';
  const error = { message, type: 'invalid_request_error', code: 'invalid_api_key' };
  return formedError(settings.unauthorizedStatus, error, settings);
}

/** For a model that the key's project does not have. */
export function modelUnavailable(model: string, settings: InferenceSettings): InferenceAnswer {
  const message = `The model \`${model}\` does not exist or you do not have access to it.`;
  const error = { message, type: 'invalid_request_error', code: 'model_not_found' };
  return formedError(settings.modelUnavailableStatus, error, settings);
}

/** For too many requests. `nowMs` is the time that a date counts from. */
export function rateLimited(settings: InferenceSettings, nowMs: number): InferenceAnswer {
  const { retryAfter, retryAfterSeconds: seconds } = settings;
  const message = 'Rate limit reached for requests.';
  const error = { message, type: 'requests', code: 'rate_limit_exceeded' };
  const answer = formedError(429, error, settings);
  if (retryAfter === 'none') return answer;
  const date = new Date(nowMs + seconds * 1_000).toUTCString();
  return { ...answer, headers: { 'Retry-After': retryAfter === 'date' ? date : String(seconds) } };
}

/** While the service is down, or plays it. */
export function serverError(settings: InferenceSettings): InferenceAnswer {
  const message = 'The server had an error while processing your request.';
  const error = { message, type: 'server_error', code: null };
  return formedError(settings.serverErrorStatus, error, settings);
}

/** For a request that is none of this interface. */
export function invalidRequest(
  status: 400 | 404 | 405 | 413,
  message: string,
  settings: InferenceSettings,
): InferenceAnswer {
  return formedError(status, { message, type: 'invalid_request_error', code: null }, settings);
}

/** A page such as a proxy shows. */
export function pageOf(text: string): string {
  const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  return `<!doctype html><html lang="en"><title>${escaped}</title><h1>${escaped}</h1></html>`;
}
