/** The faults of the inference service: what they are called, and what each does. */

/**
 * At most one is played for a request. The first ones replace the answer; from `cut` on there is one, but
 * its text is not what it should be.
 */
export const inferenceFaultMeanings = {
  unauthorized: 'The key is refused, although it is right.',
  modelUnavailable: 'The model is refused, although the project has it.',
  rateLimited: 'Answered 429.',
  serverError: 'Answered with `serverErrorStatus`.',
  hang: 'Never answered; the connection stays open.',
  connectionCut: 'The connection is cut instead of an answer.',
  htmlPage: 'An HTML page with status 200, as of a proxy.',
  brokenJson: 'JSON that ends half-way.',
  nullContent: 'The content is null.',
  emptyContent: 'The content is an empty text.',
  cut: 'Half of the text, with finish_reason `length`.',
  inventedNumber: 'A number that the request does not have.',
  inventedPlace: 'A place that the request does not have.',
  obeyedCommand:
    'Does what a command hidden in the data says; where there is none, nothing special.',
  markup: 'Emphasis, a tag and a link.',
} as const;

export type InferenceFault = keyof typeof inferenceFaultMeanings;

/** In the order in which they are looked at. */
export const inferenceFaults = Object.keys(inferenceFaultMeanings) as readonly InferenceFault[];
