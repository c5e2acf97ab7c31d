/** How the catalogue refuses a query: the recorded forms of `detail` (facts, filters 3). */

/** One value that is not of its type or out of its bounds. */
export interface ValidationItem {
  readonly type: string;
  /** `query` and the option, or `body` and the path within it. */
  readonly loc: readonly (string | number)[];
  readonly msg: string;
  readonly input: string | null;
  readonly ctx?: { readonly error: object };
}

/** A refusal before it is written: a message, or for 422 the list of what is wrong. */
export type ODataRefusal =
  | { readonly status: 400 | 404 | 413 | 500 | 503; readonly message: string }
  | { readonly status: 422; readonly items: readonly ValidationItem[] };

interface RefusalBody {
  detail: { message: string; request_id: string } | readonly ValidationItem[];
}

/** The body; the answer's header `request-id` must repeat the id. */
export function refusalBody(refusal: ODataRefusal, requestId: string): RefusalBody {
  if (refusal.status === 422) return { detail: refusal.items };
  return { detail: { message: refusal.message, request_id: requestId } };
}

/** The detail for a path below `/odata/v1` that leads nowhere; its status was not recorded. */
export const invalidPath = 'Invalid odata path';
