/** `earshot.config.ts`: subscriptions and sinks defined by the user, validated on loading. */

import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { within } from '../cli/io.ts';
import { AppError, errorText } from '../terms/app-error.ts';
import {
  type DesiredSubscription,
  requestedStatuses,
  sortedEvents,
  subscriptionEvents,
  subscriptionNamePattern,
  subscriptionTypes,
} from '../terms/subscription.ts';
import type { Settings } from './load.ts';
import { filterSchema } from './variables.ts';

export const subscriptionsFileName = 'earshot.config.ts';

/** Fields of a subscription: type, events, filter and status. Features add others. */
const subscriptionFields = {
  /**
   * `push` (default): the catalogue sends notifications to the receiver, which needs a public host. `pull`: the
   * receiver reads them from a queue in the catalogue.
   */
  type: z.enum(subscriptionTypes).default('push'),
  /** Events to be received; by default `['created']`. */
  events: z
    .array(z.enum(subscriptionEvents), "must be a list, such as ['created', 'deleted']")
    .min(1, 'add an event, or omit this field')
    .default(['created']),
  /**
   * A `$filter` expression as for a product query, as text or built with `and`, `collection`, …; by default every
   * product.
   */
  filter: filterSchema.default(''),
  status: z.enum(requestedStatuses).default('running'),
};

const subscriptionAdvice = `must be an object, such as { filter: "Collection/Name eq 'SENTINEL-2'" }`;

/** Message for a name that is not valid. */
export const fileNameRule = 'use lower-case letters, digits and dashes; at most 63 characters';

const noSubscriptions = 'missing. Write subscriptions: { <name>: { filter: … } }';

const noObject = 'not valid. Write: export default defineConfig({ subscriptions: { … } })';

/** A subscription of the file. Features declare their keys in these interfaces. */
export interface FileSubscription extends z.output<z.ZodObject<typeof subscriptionFields>> {}
export interface SubscriptionInput extends z.input<z.ZodObject<typeof subscriptionFields>> {}

/** The file as read. */
export interface ConfigFile {
  subscriptions?: Readonly<Record<string, FileSubscription>> | undefined;
}

/** Default export of `earshot.config.ts`. */
export interface EarshotConfig {
  /** Optional when the file has other keys. */
  subscriptions?: Readonly<Record<string, SubscriptionInput>> | undefined;
}

function configSchemaOf({ fileKeys, subscriptionKeys }: Settings) {
  const optional = (keys: Readonly<Record<string, z.ZodType>>) =>
    Object.fromEntries(Object.entries(keys).map(([key, schema]) => [key, schema.optional()]));
  const subscription = z.strictObject(
    { ...subscriptionFields, ...optional(subscriptionKeys) },
    subscriptionAdvice,
  );
  const name = z.string().regex(subscriptionNamePattern, fileNameRule);
  return z
    .strictObject(
      {
        subscriptions: z.record(name, subscription, noSubscriptions).optional(),
        ...optional(fileKeys),
      },
      noObject,
    )
    .refine((file) => Object.values(file).some((value) => value !== undefined), {
      path: ['subscriptions'],
      message: noSubscriptions,
    });
}

/** Returns its argument; adds types to `earshot.config.ts`. */
export function defineConfig(config: EarshotConfig): EarshotConfig {
  return config;
}

/**
 * Loads the subscriptions of `earshot.config.ts` in the folder, sorted by name; null without such a file or
 * subscriptions in it. A changed file is reloaded. Rejects with `configuration`, with all problems.
 */
export async function loadSubscriptionsFile(
  place: ConfigPlace,
): Promise<DesiredSubscription[] | null> {
  const config = await readConfigFile(place);
  if (config?.subscriptions === undefined) return null;
  return Object.entries(config.subscriptions)
    .map(([name, { type, events, filter, status }]) => {
      return { name, type, events: sortedEvents(events), filter, status };
    })
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** Folder of the file, and what features add to it. */
export interface ConfigPlace {
  workingDir: string;
  settings: Settings;
}

/** Loads the file; null without one. Rejects with `configuration`, with all problems. */
export async function readConfigFile({
  workingDir,
  settings,
}: ConfigPlace): Promise<ConfigFile | null> {
  const path = join(workingDir, subscriptionsFileName);
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return null;
  const schema = configSchemaOf(settings);
  const result = schema.safeParse(await defaultExportOf(path));
  // The keys of features were parsed by the schemas that define their types.
  if (result.success) return result.data as ConfigFile;
  const details = result.error.issues.map(describe);
  throw new AppError('configuration', faultsOf(path), { details });
}

/** State of the file on disk, without loading parts of features. */
export interface ConfigFileState {
  /** Why it is invalid; null for a valid file, and without one. */
  fault: string | null;
  /** Null without a file. */
  modifiedAtUs: number | null;
}

/** Maximum time for the code of the file to load. */
const loadMsMax = 3_000;

/** Never rejects, and resolves soon: the file may wait for something. */
export async function readConfigState(place: ConfigPlace): Promise<ConfigFileState> {
  const path = join(place.workingDir, subscriptionsFileName);
  let modifiedAtUs: number | null = null;
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats !== undefined) modifiedAtUs = Math.round(stats.mtimeMs * 1_000);
    await within(loadMsMax, readConfigFile(place), () => {
      throw new AppError('configuration', `${path} did not load within ${loadMsMax / 1_000} s.`);
    });
    return { fault: null, modifiedAtUs };
  } catch (error) {
    const details = error instanceof AppError ? error.details : [];
    return { fault: [errorText(error), ...details].join(' '), modifiedAtUs };
  }
}

/** Returns the message of an error that lists problems of the file. */
export function faultsOf(path: string): string {
  return `${path} is invalid.`;
}

async function defaultExportOf(path: string): Promise<unknown> {
  try {
    // The digest in the URL prevents Node from returning a cached module.
    const text = readFileSync(path, 'utf8');
    const module = await importConfigFile(
      `${pathToFileURL(path).href}?digest=${hash('sha256', text)}`,
      // A call with type arguments is an expression in JavaScript.
      />\s*[(`]/.test(text) ? 'module-typescript' : 'module',
    );
    return z.looseObject({ default: z.unknown() }).safeParse(module).data?.default;
  } catch (cause) {
    throw new AppError(
      'configuration',
      `${path} cannot be loaded: ${reasonOf(cause)}. Fix or remove the file.`,
      { cause, details: cause instanceof AppError ? cause.details : [] },
    );
  }
}

/** Line and column of code of the file that ran. */
const frameForm = /earshot\.config\.ts\?digest=[^:]*:(\d+):\d+/;

/** Returns the reason with the line: for a syntax error it is above the stack, for a thrown error within it. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const stack = cause.stack ?? '';
  const line = /^.*earshot\.config\.ts.*:(\d+)\n/.exec(stack)?.[1] ?? frameForm.exec(stack)?.[1];
  const reason = errorText(cause).replace(/\.$/, '');
  return line === undefined ? reason : `line ${line}: ${reason}`;
}

function describe(issue: z.core.$ZodIssue): string {
  const where = issue.path.length === 0 ? 'the default export' : issue.path.join('.');
  if (issue.code === 'unrecognized_keys') {
    return `${where}: unknown field ${issue.keys.map((key) => JSON.stringify(key)).join(', ')}.`;
  }
  // The reason for an invalid name is one level deeper.
  const [inner] = issue.code === 'invalid_key' ? issue.issues : [];
  return `${where}: ${(inner ?? issue).message.replace(/\.$/, '')}.`;
}

/** Names by which the file imports this program, also that of its package. */
const ownNames = new Set(['earshot', '@earshot-eo/earshot']);

/** Module of these names: the sources in a checkout, otherwise the build. */
const ownIndex = new URL(
  import.meta.url.endsWith('.ts') ? '../../index.ts' : '../../index.js',
  import.meta.url,
).href;

const typescriptFile = /\.ts(\?|$)/;

/**
 * Imports the file. While it loads, the package name resolves to this program, because a directory such as
 * `/etc/earshot` has no packages and a checkout has no build; other names are resolved by Node. The file and its
 * TypeScript imports are loaded as ES modules, whatever a nearby `package.json` says: `npm init` creates one that
 * makes them CommonJS. Most files are also JavaScript, without the 19 MB of memory that Node's translator keeps.
 */
async function importConfigFile(
  address: string,
  format: 'module' | 'module-typescript',
): Promise<unknown> {
  const hooks = registerHooks({
    resolve: (specifier, context, nextResolve) => {
      if (ownNames.has(specifier)) return { url: ownIndex, shortCircuit: true };
      const resolved = nextResolve(specifier, context);
      if (resolved.url === address) return { ...resolved, format };
      return typescriptFile.test(resolved.url)
        ? { ...resolved, format: 'module-typescript' }
        : resolved;
    },
  });
  try {
    return await import(address);
  } catch (error) {
    if (format !== 'module' || !(error instanceof SyntaxError)) throw error;
    if (frameForm.test(error.stack ?? '')) throw error;
    return await importConfigFile(`${address}&typescript`, 'module-typescript');
  } finally {
    hooks.deregister();
  }
}
