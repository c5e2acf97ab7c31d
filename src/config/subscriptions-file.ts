/** `earshot.config.ts`: the subscriptions that a user names, checked before anything uses them. */
import { statSync } from 'node:fs';
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

export const subscriptionsFileName = 'earshot.config.ts';

/** What a subscription needs: events, a filter, and whether it runs. */
const subscriptionSchema = z.strictObject({
  /** What to be told of; `['created']` unless told. */
  events: z.array(z.enum(subscriptionEvents)).min(1).default(['created']),
  /** A `$filter` expression as for a product query; empty, or left out, for every product. */
  filter: z.string().default(''),
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
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  const result = configSchema.safeParse(await defaultExportOf(path, stats.mtimeMs));
  if (!result.success) {
    throw new AppError('configuration', `${path} has faults.`, {
      details: result.error.issues.map(({ path: at, message }) =>
        at.length === 0 ? `the default export: ${message}` : `${at.join('.')}: ${message}`,
      ),
    });
  }
  return Object.entries(result.data.subscriptions)
    .map(([name, { events, ...rest }]) => ({ name, events: sortedEvents(events), ...rest }))
    .toSorted((a, b) => a.name.localeCompare(b.name));
}

async function defaultExportOf(path: string, version: number): Promise<unknown> {
  try {
    // The version in the address keeps an earlier reading from being handed out again.
    const module: unknown = await import(`${pathToFileURL(path).href}?version=${version}`);
    return z.looseObject({ default: z.unknown() }).safeParse(module).data?.default;
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new AppError('configuration', `${path} cannot be loaded: ${reason}`, { cause });
  }
}
