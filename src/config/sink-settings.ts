/** The form of a sink in `earshot.config.ts`; what belongs to its kind is in the file of the kind. */
import { accessSync, constants, readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { errorCodeOf } from '../domain/app-error.ts';
import { subscriptionEvents, subscriptionNamePattern } from '../domain/subscription.ts';
import { type SinkKindName, type SinkTarget, sinkKinds } from '../sinks/registry.ts';
import type { AnySinkKind, ReadFile } from '../sinks/target.ts';
import { filterSchema } from './values.ts';

const wholeNumber = (most: number) => {
  const form = `must be a whole number from 1 to ${most}`;
  return z.int(form).min(1, form).max(most, form);
};

const names = Object.keys(sinkKinds) as SinkKindName[];
const kinds: readonly AnySinkKind[] = Object.values(sinkKinds);
const oneOfThem = new Intl.ListFormat('en-GB', { type: 'disjunction' }).format(names);

type Intersection<Union> = (Union extends unknown ? (one: Union) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never;
const kindFields = Object.assign({}, ...kinds.map(({ fields }) => fields)) as Intersection<
  (typeof sinkKinds)[SinkKindName]['fields']
>;

const subscriptionForm = "must be the name of a subscription, such as 'alps'";

/** A sink: where to, and what. */
export const sinkSchema = z
  .strictObject(
    {
      ...kindFields,
      /** Only what came for these subscriptions; by default all of them. */
      subscriptions: z
        .array(
          z.string(subscriptionForm).regex(subscriptionNamePattern, subscriptionForm),
          "must be a list, such as ['alps']",
        )
        .min(1, 'name a subscription, or leave this out')
        .optional(),
      /** Only these events; by default all of them. */
      events: z
        .array(z.enum(subscriptionEvents), "must be a list, such as ['created', 'deleted']")
        .min(1, 'name an event, or leave this out')
        .optional(),
      /** Only products that match; empty, or left out, for every product. */
      filter: filterSchema.default(''),
      /** Where a new sink begins: with what comes from `now` on (default), or at the `start` of the log. */
      from: z.enum(['now', 'start']).default('now'),
      /** How many deliveries may be open at a time; the default is that of the kind. */
      concurrency: wholeNumber(64).optional(),
      /** For one attempt; 30 by default. */
      timeoutSeconds: wholeNumber(3_600).default(30),
      /** Refusals of one item until it is a dead letter; 5 by default. */
      attempts: wholeNumber(100).default(5),
    },
    "must be an object, such as { command: ['node', 'act.js'] }",
  )
  .refine(
    (sink) => names.filter((name) => sink[name] !== undefined).length === 1,
    `name one target: ${oneOfThem}`,
  )
  .superRefine((sink, context) => {
    const faults = kinds.flatMap((kind) => kind.faults?.(sink) ?? []);
    for (const fault of faults) context.addIssue(fault);
  });

/** A sink as the file has it, its form checked. */
export type SinkInput = z.output<typeof sinkSchema>;

/** The fields that are known at a place in a sink. */
export function sinkFields([name]: readonly PropertyKey[]): readonly string[] {
  if (name === undefined) return Object.keys(sinkSchema.shape);
  return kinds[names.indexOf(name as SinkKindName)]?.targetFields ?? [];
}

/**
 * The target of a sink, and the number of deliveries at a time. Files are seen from the folder; what is wrong with
 * them is added to `problems`, without their content.
 */
export function readTarget(
  sink: SinkInput,
  { where, folder, problems }: { where: string; folder: string; problems: string[] },
) {
  const name = names.find((one) => sink[one] !== undefined);
  if (name === undefined) throw new Error('The schema requires a target.');
  const kind: AnySinkKind = sinkKinds[name];
  const readFile: ReadFile = (field, file, { isSecret, faultOf }) => {
    if (file === undefined) return null;
    const path = resolve(folder, file);
    const fault = accessFault(path, isSecret);
    const text = fault === null ? readFileSync(path, 'utf8') : '';
    const content = isSecret ? text.replace(/\r?\n$/, '') : text;
    const problem = fault ?? faultOf(content);
    if (problem !== null) problems.push(`${where}.${field}: ${problem}`);
    return problem === null ? content : null;
  };
  return {
    target: { kind: name, ...kind.settings(sink, readFile) } as SinkTarget,
    concurrency: sink.concurrency ?? kind.concurrency,
  };
}

function accessFault(path: string, isSecret: boolean): string | null {
  try {
    const stats = statSync(path);
    if (stats.isDirectory()) return `${path} is a folder, not a file.`;
    // A group may read it: systemd delivers files that way which only root can read.
    if (isSecret && (stats.mode & 0o007) !== 0) {
      return `every user of this machine may read ${path}. Run: chmod o= ${path}`;
    }
    accessSync(path, constants.R_OK);
    return null;
  } catch (error) {
    return `${path} cannot be read (${errorCodeOf(error)}).`;
  }
}
