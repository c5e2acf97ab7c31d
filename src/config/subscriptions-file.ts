/** `earshot.config.ts`: the subscriptions and sinks that a user names, checked before anything uses them. */

import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { AppError, errorText } from '../domain/app-error.ts';
import { sinkNamePattern } from '../domain/sinks.ts';
import {
  type DesiredSubscription,
  sortedEvents,
  subscriptionEvents,
  subscriptionNamePattern,
  wantedStatuses,
} from '../domain/subscription.ts';
import { nearestName } from '../filter/hints/nearest-name.ts';
import { filterSchema } from './filter-schema.ts';
import { importConfigFile } from './import-config-file.ts';
import { sinkFields, sinkSchema } from './sink-schema.ts';
import { summaryRuleFields, summaryRuleSchema } from './summary-rule-schema.ts';

export const subscriptionsFileName = 'earshot.config.ts';

/** What a subscription needs: events, a filter, whether it runs, and what is told of it in words. */
const subscriptionSchema = z.strictObject(
  {
    /** Events to notify; by default `['created']`. */
    events: z
      .array(z.enum(subscriptionEvents), "must be a list, such as ['created', 'deleted']")
      .min(1, 'name an event, or leave this out')
      .default(['created']),
    /**
     * A `$filter` expression as for a product query, as a text or built with `and`, `collection`, …; empty,
     * or left out, for every product.
     */
    filter: filterSchema.default(''),
    status: z.enum(wantedStatuses).default('running'),
    /**
     * Summaries by a language model: of `each` product, a `digest` of a window, or none (`off`). By default as
     * EARSHOT_SUMMARY has it.
     */
    summary: summaryRuleSchema.optional(),
  },
  `must be an object, such as { filter: "Collection/Name eq 'SENTINEL-2'" }`,
);

const nameRule = 'use small letters, digits and dashes; at most 63';

const noSubscriptions = 'there are none. Write subscriptions: { <name>: { filter: … } }.';

const configSchema = z
  .strictObject({
    /** May be left out where the file has only sinks. */
    subscriptions: z
      .record(z.string().regex(subscriptionNamePattern, nameRule), subscriptionSchema)
      .optional(),
    /** Targets that notifications are delivered to, each under a name of its own. */
    sinks: z
      .record(
        z.string().regex(sinkNamePattern, nameRule),
        sinkSchema,
        "must be an object with a name for each sink, such as { archive: { command: ['node', 'act.js'] } }",
      )
      .optional(),
  })
  .refine(({ subscriptions, sinks }) => subscriptions !== undefined || sinks !== undefined, {
    path: ['subscriptions'],
    message: noSubscriptions,
  });

/** What `earshot.config.ts` exports as its default. */
export type EarshotConfig = z.input<typeof configSchema>;

/** Gives `earshot.config.ts` its types; returns what it is given. */
export function defineConfig(config: EarshotConfig): EarshotConfig {
  return config;
}

/**
 * The subscriptions of the folder's `earshot.config.ts`, by name; null without such a file, or where it names none. A file that
 * has changed is read anew. Rejects with `configuration`, all problems at once.
 */
export async function loadSubscriptionsFile(folder: string): Promise<DesiredSubscription[] | null> {
  const subscriptions = await readSubscriptions(join(folder, subscriptionsFileName));
  if (subscriptions === null) return null;
  return Object.entries(subscriptions)
    .map(([name, { events, filter, status }]) => {
      return { name, events: sortedEvents(events), filter, status };
    })
    .toSorted((a, b) => a.name.localeCompare(b.name));
}

/** What the file says of subscriptions, by name; null without them. Rejects as `readConfigFile` does. */
export async function readSubscriptions(path: string) {
  return (await readConfigFile(path))?.subscriptions ?? null;
}

/** What the file says; null without one. Rejects with `configuration`, all problems at once. */
export async function readConfigFile(path: string): Promise<z.output<typeof configSchema> | null> {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return null;
  const result = configSchema.safeParse(await defaultExportOf(path));
  if (result.success) return result.data;
  const details = result.error.issues.map(describe);
  throw new AppError('configuration', faultsOf(path), { details });
}

/** How a complaint about the file begins. */
export function faultsOf(path: string): string {
  return `${path} has faults.`;
}

async function defaultExportOf(path: string): Promise<unknown> {
  try {
    // The digest in the address keeps an earlier reading from being handed out again.
    const digest = hash('sha256', readFileSync(path));
    const module = await importConfigFile(`${pathToFileURL(path).href}?digest=${digest}`);
    return z.looseObject({ default: z.unknown() }).safeParse(module).data?.default;
  } catch (cause) {
    throw new AppError(
      'configuration',
      `${path} cannot be loaded: ${reasonOf(cause)}. Fix it, or move it away.`,
      { cause, details: cause instanceof AppError ? cause.details : [] },
    );
  }
}

/** With the line: of a fault of form it stands above the stack, of what is thrown within it. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const stack = cause.stack ?? '';
  const line =
    /^.*earshot\.config\.ts.*:(\d+)\n/.exec(stack)?.[1] ??
    /earshot\.config\.ts\?digest=[^:]*:(\d+):\d+/.exec(stack)?.[1];
  const reason = errorText(cause).replace(/\.$/, '');
  return line === undefined ? reason : `line ${line}: ${reason}`;
}

function describe(issue: z.core.$ZodIssue): string {
  const where = issue.path.length === 0 ? 'the default export' : issue.path.join('.');
  // The reason why a name is refused stands one level deeper.
  const [inner] = issue.code === 'invalid_key' ? issue.issues : [];
  if (issue.path.length === 0 && issue.code === 'invalid_type') {
    return 'it has no such form: export default defineConfig({ subscriptions: { … } }).';
  }
  if (where === 'subscriptions' && issue.code === 'invalid_type') {
    return `subscriptions: ${noSubscriptions}`;
  }
  if (issue.code === 'unrecognized_keys') return `${where}: ${unknownFields(issue)}`;
  if (issue.code === 'invalid_value') return `${where}: use one of ${issue.values.join(', ')}.`;
  return `${where}: ${(inner ?? issue).message.replace(/\.$/, '')}.`;
}

function unknownFields({ keys, path }: z.core.$ZodIssueUnrecognizedKeys): string {
  const known = fieldsAt(path);
  const said = keys.map((key) => {
    const nearest = nearestName(key, known);
    const hint = nearest === null ? '' : ` Did you mean ${nearest}?`;
    return `${JSON.stringify(key)} is not known here.${hint}`;
  });
  return `${said.join(' ')} Known are: ${known.join(', ')}.`;
}

function fieldsAt([part, name, ...deeper]: readonly PropertyKey[]): readonly string[] {
  if (name === undefined) return Object.keys(configSchema.shape);
  if (part === 'sinks') return sinkFields(deeper);
  if (deeper.length === 0) return Object.keys(subscriptionSchema.shape);
  return summaryRuleFields(deeper);
}
