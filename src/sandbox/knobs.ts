/** Knobs: settings of the sandbox that may change while it runs. */
import { z } from 'zod';

/** Returns a schema of a number for each name; those left out are 0. */
export function numberForEach<Name extends string>(
  names: readonly Name[],
  value: z.ZodType<number>,
) {
  const none = Object.fromEntries(names.map((name) => [name, 0]));
  return z
    .partialRecord(z.enum(names), value)
    .transform((some) => ({ ...none, ...some }) as Readonly<Record<Name, number>>)
    .prefault({});
}

export type Knobs<Schema extends z.ZodType<object>> = ReturnType<typeof createKnobs<Schema>>;

/** Creates knobs that start as given; `name` is the subject of messages, with its verb. */
export function createKnobs<Schema extends z.ZodType<object>>(
  schema: Schema,
  initial: z.output<Schema>,
  name: string,
) {
  let settings = initial;
  const changedSchema = () =>
    z
      .looseObject({})
      .transform((changes) => withChanges(settings, changes))
      .pipe(schema);
  return {
    current: () => settings,
    /**
     * Sets the knobs that are named and, within those that have a number for each fault, the faults that are
     * named. Throws SandboxConfigurationError for an unknown name or a value that does not fit.
     */
    change: (changes: z.input<Schema>): z.output<Schema> => {
      const result = changedSchema().safeParse(changes);
      if (!result.success) {
        const faults = z.prettifyError(result.error);
        throw new SandboxConfigurationError(`${name} not changed. ${faults}`);
      }
      Object.freeze(result.data);
      settings = result.data;
      return settings;
    },
    /** Returns a schema that reads a selection of knobs into all of them. */
    changedSchema,
  };
}

/** Merges what has a number for each fault; anything else is replaced, for the schema to check. */
function withChanges(settings: object, changes: Readonly<Record<string, unknown>>): unknown {
  const merged = Object.entries(settings).flatMap(([knob, current]) => {
    const change = changes[knob];
    return isObject(current) && isObject(change) ? [[knob, { ...current, ...change }]] : [];
  });
  return { ...settings, ...changes, ...Object.fromEntries(merged) };
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Takes a fault that is set for the next requests, and counts it down; null when none is. */
export function takeNext<Fault extends string>(
  faults: readonly Fault[],
  counts: Readonly<Record<Fault, number>>,
  change: (counts: Partial<Record<Fault, number>>) => void,
): Fault | null {
  const fault = faults.find((one) => counts[one] > 0);
  if (fault === undefined) return null;
  change({ [fault]: counts[fault] - 1 } as Partial<Record<Fault, number>>);
  return fault;
}

/** Thrown before anything is started; the message says what is wrong and what to do about it. */
export class SandboxConfigurationError extends Error {
  override readonly name = 'SandboxConfigurationError';
}

/** Names each fault; `whole` is the place of a fault of the value itself. */
export function describeFaults({ issues }: z.ZodError, whole = ''): string {
  const faults = issues.map(({ path, message }) => {
    const place = path.length === 0 ? whole : path.join('.');
    return place === '' ? message : `${place}: ${message}`;
  });
  return faults.join('; ');
}
