/** The knobs of the inference service, what the specification leaves open and its faults, and its projects. */
import { z } from 'zod';
import { type Knobs, numberForEach } from '../knobs.ts';

const errorStatus = z.int().min(400).max(599);

/**
 * In the order in which they are played: at most one for a request. Those before `cut` replace the
 * answer; the others give it a text that is not what it should be.
 */
export const inferenceFaults = [
  'unauthorized', // The key is refused, although it is right.
  'modelUnavailable', // The model is refused, although the project has it.
  'rateLimited', // Answered 429.
  'serverError', // Answered with `serverErrorStatus`.
  'hang', // Never answered; the connection stays open.
  'connectionCut', // The connection is cut instead of an answer.
  'htmlPage', // An HTML page with status 200, as of a proxy.
  'brokenJson', // JSON that ends half-way.
  'nullContent', // The content is null.
  'emptyContent', // The content is an empty text.
  'cut', // Half of the text, with finish_reason `length`.
  'inventedNumber', // A number that the request does not have.
  'inventedPlace', // A place that the request does not have.
  'obeyedCommand', // Does what a command hidden in the data says, if there is one.
  'markup', // Emphasis, a tag and a link.
] as const;
export type InferenceFault = (typeof inferenceFaults)[number];

/** Every knob with its default: what most servers of this interface do. Unknown names are an error. */
export const inferenceSettingsSchema = z.strictObject({
  /** Answer to a missing or unknown key. */
  unauthorizedStatus: errorStatus.default(401),
  /** Answer to a model that the key's project does not have. */
  modelUnavailableStatus: errorStatus.default(404),
  /** Answer to `serverError`. */
  serverErrorStatus: z.int().min(500).max(599).default(503),
  /** Form of errors: {"error":{…}}, {"object":"error",…}, {"detail":…}, or a page. */
  errorForm: z.enum(['openai', 'object', 'detail', 'html']).default('openai'),
  /** Form of Retry-After in the answer to `rateLimited`, and its value by the clock of the sandbox. */
  retryAfter: z.enum(['seconds', 'date', 'none']).default('seconds'),
  retryAfterSeconds: z.int().min(0).max(86_400).default(20),
  /** Whether a project can list its models; otherwise the path is unknown. */
  modelsListed: z.boolean().default(true),
  /** Request fields beyond the specified model and messages. */
  optionalFields: z.enum(['ignored', 'refused']).default('ignored'),
  /** Whether answers count tokens, in `usage`. */
  usageGiven: z.boolean().default(true),
  /** Whether the message has a `reasoning` next to its content. */
  reasoningGiven: z.boolean().default(false),
  /** Delay of every answer. */
  answerDelayMs: z.int().min(0).max(3_600_000).default(0),
  /** Shares of the completions, 0 to 1, that a fault is played for. */
  faults: numberForEach(inferenceFaults, z.number().min(0).max(1)),
  /** Numbers of the next completions that a fault is played for; they count down. */
  next: numberForEach(inferenceFaults, z.int().min(0).max(1_000_000)),
});

export type InferenceSettings = Readonly<z.output<typeof inferenceSettingsSchema>>;
export type InferenceSettingsInput = z.input<typeof inferenceSettingsSchema>;

export type InferenceKnobs = Knobs<typeof inferenceSettingsSchema>;

/** A key belongs to one project, and each has its models (spec, What the service does). */
export interface InferenceProject {
  readonly name: string;
  readonly key: string;
  /** `<vendor>/<model_name>` */
  readonly models: readonly string[];
}

/** The project whose key users are given. */
export const demoProject = {
  name: 'demo',
  key: 'sandbox-key',
  models: ['openai/gpt-oss-120b', 'meta-llama/Llama-3.3-70B-Instruct'],
} as const;

/** Another user's project, for a key with other models. */
export const otherProject = {
  name: 'other',
  key: 'other-sandbox-key',
  models: ['mistralai/Mistral-Small-3.2-24B-Instruct-2506'],
} as const;
