/** The key `sinks` of `earshot.config.ts`; settings of a kind of sink are in the file of the kind. */

import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { z } from 'zod';
import { fileNameRule } from '../../core/config/subscriptions-file.ts';
import { filterSchema, maximumAge } from '../../core/config/variables.ts';
import { errorCodeOf } from '../../core/terms/app-error.ts';
import { clauseOf } from '../../core/terms/faults.ts';
import { subscriptionEvents, subscriptionNamePattern } from '../../core/terms/subscription.ts';
import { orList } from '../../core/terms/text.ts';
import { formatNames, stacIds } from '../messages/formats.ts';
import { type SinkKindName, type SinkTarget, sinkKinds } from './registry.ts';
import { type AnySinkKind, nameField, type ReadFile } from './target.ts';
import { httpFaults } from './targets/http-client.ts';
import { sinkNamePattern } from './terms.ts';

const wholeNumber = (most: number) => {
  const form = `must be a whole number from 1 to ${most}`;
  return z.int(form).min(1, form).max(most, form);
};

/** A batch is in memory as a whole. */
const batchItemsMax = 100;

const names = Object.keys(sinkKinds) as SinkKindName[];
const kinds: readonly AnySinkKind[] = Object.values(sinkKinds);

type Intersection<Union> = (Union extends unknown ? (one: Union) => void : never) extends (
  all: infer All,
) => void
  ? All
  : never;
const kindFields = Object.assign({}, ...kinds.map(({ fields }) => fields)) as Intersection<
  (typeof sinkKinds)[SinkKindName]['fields']
>;

const subscriptionForm = "must be the name of a subscription, such as 'alps'";

/** A sink: its target, and the notifications it receives. */
export const sinkSchema = z
  .strictObject(
    {
      ...kindFields,
      /** Subscriptions whose notifications it receives; by default all. */
      subscriptions: z
        .array(
          z.string(subscriptionForm).regex(subscriptionNamePattern, subscriptionForm),
          "must be a list, such as ['alps']",
        )
        .min(1, 'add a subscription name, or omit this field')
        .optional(),
      /** Events it receives; by default all. */
      events: z
        .array(z.enum(subscriptionEvents), "must be a list, such as ['created', 'deleted']")
        .min(1, 'add an event, or omit this field')
        .optional(),
      /** Filter of products; by default every product. */
      filter: filterSchema.default(''),
      /** Maximum time from sensing to publication, such as `30d`; by default any. */
      maxAge: maximumAge.optional(),
      /** Format of messages; by default the document. */
      format: z.enum(formatNames).optional(),
      /** Ids of STAC items and collections: those of earshot (default), or of the catalogue's STAC API. */
      stacIds: z.enum(stacIds).optional(),
      /** Identifier of the discovery metadata record, for `format: 'wis2'`. */
      metadataId: nameField('urn:wmo:md:centre:dataset').optional(),
      /** Several notifications are delivered as one: at most `items`, or those of `seconds`. */
      batch: z
        .strictObject(
          { items: wholeNumber(batchItemsMax), seconds: wholeNumber(3_600) },
          'must be an object, such as { items: 50, seconds: 10 }',
        )
        .optional(),
      /** Start of a new sink: future notifications (`now`, default), or the `start` of the log. */
      from: z.enum(['now', 'start']).default('now'),
      /** Maximum number of concurrent deliveries; the default depends on the kind. */
      concurrency: wholeNumber(256).optional(),
      /** Timeout of one attempt; 30 by default. */
      timeoutSeconds: wholeNumber(3_600).default(30),
      /** Number of refusals after which an item becomes a dead letter; 5 by default. */
      attempts: wholeNumber(100).default(5),
    },
    "must be an object, such as { command: ['node', 'act.js'] }",
  )
  .refine(
    (sink) => names.filter((name) => sink[name] !== undefined).length === 1,
    `set exactly one target: ${orList(names)}`,
  )
  .superRefine((sink, context) => {
    const faults = kinds.flatMap((kind) => kind.faults?.(sink) ?? []);
    const kind: AnySinkKind = sinkKinds[kindNameOf(sink) ?? 'webhook'];
    for (const fault of [
      ...faults,
      ...httpFaults(sink, sink.webhook ?? sink.stac),
      ...messageFaults(sink, kind),
    ]) {
      context.addIssue(fault);
    }
  });

interface MessageFields {
  format?: string | undefined;
  stacIds?: string | undefined;
  metadataId?: string | undefined;
  batch?: object | undefined;
}

/** Returns faults in the fields of messages. */
function messageFaults(sink: MessageFields, kind: AnySinkKind): string[] {
  const { format = kind.format ?? 'document', stacIds: ids, metadataId, batch } = sink;
  const faults: string[] = [];
  if (kind.format !== undefined && sink.format !== undefined) {
    faults.push('format cannot be set: postgres writes rows, stac writes items');
  }
  if (ids !== undefined && format !== 'stac' && format !== 'cloudevents') {
    faults.push("stacIds requires a sink of the kind stac, or format: 'stac' or 'cloudevents'");
  }
  if (metadataId !== undefined && format !== 'wis2')
    faults.push("metadataId requires format: 'wis2'");
  if (batch !== undefined && kind.batches === undefined) {
    faults.push('batch requires a webhook or a command');
  }
  return faults;
}

const kindNameOf = (sink: Partial<Record<SinkKindName, unknown>>) =>
  names.find((one) => sink[one] !== undefined);

/** A sink in the file, parsed. */
export type SinkInput = z.output<typeof sinkSchema>;

/**
 * Returns the settings of a sink that depend on its kind. File paths are relative to the folder; problems with files are
 * added to `problems`, without their content.
 */
export function readTarget(
  sink: SinkInput,
  { where, folder, problems }: { where: string; folder: string; problems: string[] },
) {
  const name = kindNameOf(sink);
  if (name === undefined) throw new Error('The schema requires a target.');
  const kind: AnySinkKind = sinkKinds[name];
  const readFile: ReadFile = (field, file, { isSecret, faultOf }) => {
    if (file === undefined) return null;
    const path = resolve(folder, file);
    const { fault, text } = readText(path, isSecret);
    const content = isSecret ? text.replace(/\r?\n$/, '') : text;
    const problem = fault ?? faultOf(content);
    const line = `${where}.${field}: ${problem}`;
    // Files with a login are read again and again.
    if (problem !== null && !problems.includes(line)) problems.push(line);
    return problem === null ? content : null;
  };
  const { format = kind.format ?? 'document', stacIds: ids = 'earshot', metadataId, batch } = sink;
  return {
    message: { format, stacIds: ids, metadataId },
    batch: batch === undefined ? null : { items: batch.items, waitMs: batch.seconds * 1000 },
    target: { kind: name, ...kind.settings(sink, readFile) } as SinkTarget,
    concurrency: sink.concurrency ?? kind.concurrency,
  };
}

/** Reads a file; or returns the reason why not, and no text. */
function readText(path: string, isSecret: boolean): { fault: string | null; text: string } {
  const refused = (fault: string) => ({ fault, text: '' });
  try {
    const stats = statSync(path);
    if (stats.isDirectory()) return refused(`${path} is a directory, not a file.`);
    // Group access is allowed: systemd delivers files that way that only root can read.
    if (isSecret && (stats.mode & 0o007) !== 0) {
      return refused(`every user of this machine can read ${path}. Run: chmod o= ${path}`);
    }
    return { fault: null, text: readFileSync(path, 'utf8') };
  } catch (error) {
    return refused(`${path} cannot be read: ${clauseOf(errorCodeOf(error))}.`);
  }
}

declare module '../../core/config/subscriptions-file.ts' {
  interface ConfigFile {
    sinks?: Readonly<Record<string, SinkInput>> | undefined;
  }
  interface EarshotConfig {
    /** Targets that notifications are delivered to, by name. */
    sinks?: Readonly<Record<string, z.input<typeof sinkSchema>>> | undefined;
  }
}

export const variables = {};

export const sections = {};

const sinks = z.record(
  z.string().regex(sinkNamePattern, fileNameRule),
  sinkSchema,
  "must be an object with a name for each sink, such as { archive: { command: ['node', 'act.js'] } }",
);

export const fileKeys = { sinks };
