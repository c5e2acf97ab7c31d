/** The error answers of the catalogue: `detail` in the forms it is known to take. */
import { SubscriptionRefusal } from '../account.ts';
import type { ServiceAnswer } from './service-answer.ts';
import type { ServiceSettings } from './service-settings.ts';

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
