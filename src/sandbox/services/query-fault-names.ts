/** The faults of the product lists: what they are called, and what each does. */

/** At most one is played for a list; the first ones replace the answer, the others spoil it. */
export const queryFaultMeanings = {
  rateLimited: 'Answered 429, with Retry-After.',
  serverError: 'Answered 500.',
  htmlPage: 'An HTML page with status 200, as of a proxy.',
  connectionCut: 'The connection is cut in the middle of the page.',
  brokenJson: 'JSON that ends half-way, with status 200.',
  valueMissing: 'JSON without `value`.',
  outOfOrder: 'The records of the page in the opposite order.',
} as const;

export type QueryFault = keyof typeof queryFaultMeanings;

/** In the order in which they are looked at. */
export const queryFaults = Object.keys(queryFaultMeanings) as readonly QueryFault[];
