/** How the catalogue says no: `detail` in the forms it is known to take. */

import { type RefusalKind, SubscriptionRefusal } from '../account/subscription-refusal.ts';
import type { ServiceSettings } from './service-settings.ts';
import { InvalidBody } from './subscription-request.ts';

/** An answer before it is written; a null body is none. */
export interface CatalogueAnswer {
  readonly status: number;
  readonly body: object | null;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An error whose `detail` is always a text: these were recorded so. */
export function plainError(status: number, detail: string, headers = {}): CatalogueAnswer {
  return { status, body: { detail }, headers };
}

/** Recorded for a path that is none; with which status is not known. */
export const invalidPath = plainError(404, 'Invalid odata path');

/** For a missing, unknown or expired token. */
export function unauthorized({ unauthorizedStatus }: ServiceSettings): CatalogueAnswer {
  return plainError(unauthorizedStatus, 'Unauthorized', { 'WWW-Authenticate': 'Bearer' });
}

/** While the service is down, or plays it. */
export function unavailable(settings: ServiceSettings, requestId: string): CatalogueAnswer {
  return formedError(503, 'Service temporarily unavailable.', settings, requestId);
}

/** Turns what was thrown into an answer; undefined for anything that is no refusal. */
export function refusalAnswer(
  error: unknown,
  settings: ServiceSettings,
  requestId: string,
): CatalogueAnswer | undefined {
  if (error instanceof InvalidBody) return { status: 422, body: { detail: error.faults } };
  if (!(error instanceof SubscriptionRefusal)) return undefined;
  const { kind, message } = error;
  // Specification, Errors: the detail of a wrong filter is a text.
  if (kind === 'filter') return plainError(400, message);
  return formedError(statusOf(kind, settings), message, settings, requestId);
}

function statusOf(
  kind: Exclude<RefusalKind, 'filter'>,
  { limitStatus, unknownIdStatus }: ServiceSettings,
): number {
  if (kind === 'limit') return limitStatus;
  return kind === 'unknown-id' ? unknownIdStatus : 400;
}

/** An error in the form of `detail` that the settings say. */
export function formedError(
  status: number,
  message: string,
  { detailForm }: ServiceSettings,
  requestId: string,
): CatalogueAnswer {
  const forms = {
    string: message,
    object: { message, request_id: requestId },
    list: [{ type: 'value_error', loc: ['body'], msg: message, input: null, ctx: { error: {} } }],
  };
  return { status, body: { detail: forms[detailForm] } };
}
