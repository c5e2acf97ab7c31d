/** Knobs: settings of an imitated service that may change while the sandbox runs. */
import { z } from 'zod';
import { SandboxConfigurationError } from './configuration-error.ts';

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

/** The settings of a service in force; `Input` is any selection of them. */
export interface Knobs<Settings, Input> {
  current(): Settings;
  /**
   * Sets the knobs that are named and, within those that count by fault, the faults that are named.
   * Throws SandboxConfigurationError for an unknown name or a value that does not fit.
   */
  change(changes: Input): Settings;
  /** Returns a schema that reads a selection of knobs into all of them. */
  changedSchema(): z.ZodType<Settings>;
}

/** Creates knobs that start as given. `byFault` are those with a number for each fault; `name` is for messages. */
export function createKnobs<Schema extends z.ZodType<object>>(
  schema: Schema,
  initial: z.output<Schema>,
  { byFault, name }: { byFault: readonly (keyof z.output<Schema> & string)[]; name: string },
): Knobs<z.output<Schema>, z.input<Schema>> {
  let settings = initial;
  const changedSchema = () =>
    z
      .record(z.string(), z.unknown())
      .transform((changes): unknown => {
        const merged = byFault.map((knob) => [knob, withChanges(settings[knob], changes[knob])]);
        return { ...settings, ...changes, ...Object.fromEntries(merged) };
      })
      .pipe(schema);
  return {
    current: () => settings,
    change: (changes) => {
      const result = changedSchema().safeParse(changes);
      if (!result.success) {
        const faults = z.prettifyError(result.error);
        throw new SandboxConfigurationError(`${name} not changed. ${faults}`);
      }
      Object.freeze(result.data);
      settings = result.data;
      return settings;
    },
    changedSchema,
  };
}

/** What is no object is left for the schema to refuse. */
function withChanges(current: unknown, changes: unknown): unknown {
  if (changes === undefined) return current;
  const isObject = typeof changes === 'object' && changes !== null && !Array.isArray(changes);
  return isObject ? Object.assign({}, current, changes) : changes;
}
