/** The knobs of the inference service: what the specification leaves open, and the service's own faults. */
import { z } from 'zod';
import { SandboxConfigurationError } from '../configuration-error.ts';
import { type InferenceFault, inferenceFaults } from './inference-faults.ts';

const errorStatus = () => z.int().min(400).max(599);

/** A number for each fault; those left out are 0. */
function forEachFault(value: z.ZodType<number>) {
  const none = Object.fromEntries(inferenceFaults.map((fault) => [fault, 0]));
  return z
    .partialRecord(z.enum(inferenceFaults), value)
    .transform((some) => ({ ...none, ...some }) as Readonly<Record<InferenceFault, number>>)
    .prefault({});
}

/** Every knob with its default: what most servers of this interface do. Unknown names are an error. */
export const inferenceSettingsSchema = z.strictObject({
  unauthorizedStatus: errorStatus().default(401).describe('Answer to a missing or unknown key.'),
  modelUnavailableStatus: errorStatus()
    .default(404)
    .describe("Answer to a model that the key's project does not have."),
  serverErrorStatus: z.int().min(500).max(599).default(503).describe('Answer to `serverError`.'),
  errorForm: z
    .enum(['openai', 'object', 'detail', 'html'])
    .default('openai')
    .describe('Form of errors: {"error":{…}}, {"object":"error",…}, {"detail":…}, or a page.'),
  retryAfter: z
    .enum(['seconds', 'date', 'none'])
    .default('seconds')
    .describe('How the answer to `rateLimited` tells when to come again.'),
  retryAfterSeconds: z
    .int()
    .min(0)
    .max(86_400)
    .default(20)
    .describe('When that is, from now by the clock of the sandbox.'),
  modelsListed: z
    .boolean()
    .default(true)
    .describe('Whether a project can list its models; otherwise the path is unknown.'),
  optionalFields: z
    .enum(['ignored', 'refused'])
    .default('ignored')
    .describe('Request fields beyond the specified model and messages.'),
  usageGiven: z.boolean().default(true).describe('Whether answers count tokens, in `usage`.'),
  reasoningGiven: z
    .boolean()
    .default(false)
    .describe('Whether the message has a `reasoning` beside its content.'),
  answerDelayMs: z
    .int()
    .min(0)
    .max(3_600_000)
    .default(0)
    .describe('How long every answer is kept back.'),
  faults: forEachFault(z.number().min(0).max(1)).describe(
    'Shares of the completions, 0 to 1, that a fault is played for; those named first go first.',
  ),
  next: forEachFault(z.int().min(0).max(1_000_000)).describe(
    'So many of the next completions that a fault is played for; counts down.',
  ),
});

/** All knobs. */
export type InferenceSettings = Readonly<z.output<typeof inferenceSettingsSchema>>;

/** Any selection of knobs, and of the faults within `faults` and `next`. */
export type InferenceSettingsInput = z.input<typeof inferenceSettingsSchema>;

/** The knobs in force, which may change while the sandbox runs. */
export interface InferenceKnobs {
  current(): InferenceSettings;
  /**
   * Sets the knobs, and the faults within them, that are named and keeps the others; returns all. Throws
   * SandboxConfigurationError for an unknown name or a value that does not fit.
   */
  change(changes: InferenceSettingsInput): InferenceSettings;
}

/** Creates knobs that start as given. */
export function createInferenceKnobs(initial: InferenceSettings): InferenceKnobs {
  let settings = initial;
  return {
    current: () => settings,
    change: (changes) => {
      const result = changedInferenceSchema(settings).safeParse(changes);
      if (!result.success) {
        throw new SandboxConfigurationError(
          `The inference service was not changed. ${z.prettifyError(result.error)}`,
        );
      }
      settings = Object.freeze(result.data);
      return settings;
    },
  };
}

/** Reads a selection of knobs into all of them; what is not named stays as it is in `current`. */
export function changedInferenceSchema(current: InferenceSettings) {
  return z
    .record(z.string(), z.unknown())
    .transform((changes): unknown => ({
      ...current,
      ...changes,
      faults: withChanges(current.faults, changes.faults),
      next: withChanges(current.next, changes.next),
    }))
    .pipe(inferenceSettingsSchema);
}

/** What is no object is left for the schema to refuse. */
function withChanges(current: object, changes: unknown): unknown {
  if (changes === undefined) return current;
  const isObject = typeof changes === 'object' && changes !== null && !Array.isArray(changes);
  return isObject ? { ...current, ...changes } : changes;
}
