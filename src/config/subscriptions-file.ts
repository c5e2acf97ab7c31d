/** `earshot.config.ts`: the subscriptions that a user names, checked before anything uses them. */
import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { AppError } from '../domain/app-error.ts';
import {
  type DesiredSubscription,
  sortedEvents,
  subscriptionEvents,
  subscriptionNamePattern,
  wantedStatuses,
} from '../domain/subscription.ts';
import type { Expression } from '../filter/builder.ts';
import { importConfigFile } from './import-config-file.ts';

export const subscriptionsFileName = 'earshot.config.ts';

/** An expression is known by what it can do: the file may have its own copy of this program. */
const filterSchema = z
  .custom<string | Expression>(
    (value) =>
      typeof value === 'string' || z.looseObject({ tree: z.object() }).safeParse(value).success,
    'must be a string with a $filter expression, or an expression made with collection(…), and(…), …',
  )
  .transform(String);

/** What a subscription needs: events, a filter, and whether it runs. */
const subscriptionSchema = z.strictObject({
  /** What to be told of; `['created']` unless told. */
  events: z.array(z.enum(subscriptionEvents)).min(1).default(['created']),
  /**
   * A `$filter` expression as for a product query, as a text or built with `and`, `collection`, …; empty,
   * or left out, for every product.
   */
  filter: filterSchema.default(''),
  status: z.enum(wantedStatuses).default('running'),
});

const configSchema = z.strictObject({
  subscriptions: z.record(
    z.string().regex(subscriptionNamePattern, 'use small letters, digits and dashes; at most 63'),
    subscriptionSchema,
  ),
});

/** What `earshot.config.ts` exports as its default. */
export type EarshotConfig = z.input<typeof configSchema>;

/** Gives `earshot.config.ts` its types; returns what it is given. */
export function defineConfig(config: EarshotConfig): EarshotConfig {
  return config;
}

/**
 * The subscriptions of the folder's `earshot.config.ts`, by name; null without such a file. A file that
 * has changed is read anew. Rejects with `configuration`, all problems at once.
 */
export async function loadSubscriptionsFile(folder: string): Promise<DesiredSubscription[] | null> {
  const path = join(folder, subscriptionsFileName);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return null;
  const result = configSchema.safeParse(await defaultExportOf(path));
  if (!result.success) {
    const details = result.error.issues.map(describe);
    throw new AppError('configuration', `${path} has faults.`, { details });
  }
  return Object.entries(result.data.subscriptions)
    .map(([name, { events, ...rest }]) => ({ name, events: sortedEvents(events), ...rest }))
    .toSorted((a, b) => a.name.localeCompare(b.name));
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
      `${path} cannot be loaded: ${reasonOf(cause)}. Put it right, or move it away.`,
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
  const reason = cause.message.replace(/\.$/, '');
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
    return 'subscriptions: there are none. Write subscriptions: { <name>: { filter: … } }.';
  }
  if (issue.code === 'invalid_value') return `${where}: use one of ${issue.values.join(', ')}.`;
  return `${where}: ${(inner ?? issue).message}`;
}
