/** `earshot.config.ts`: subscriptions and sinks defined by the user, validated on loading. */

import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { type SinkInput, sinkFields, sinkSchema } from '../../features/sinks/sink-settings.ts';
import { clientIdOf } from '../../features/sinks/targets/mqtt.ts';
import { sinkNamePattern } from '../../features/sinks/terms.ts';
import {
  digestWindows,
  plainSummaryRule,
  type SummaryRule,
  summaryRuleKinds,
} from '../../features/summary/terms.ts';
import { AppError, errorText } from '../terms/app-error.ts';
import {
  type DesiredSubscription,
  requestedStatuses,
  sortedEvents,
  subscriptionEvents,
  subscriptionNamePattern,
  subscriptionTypes,
} from '../terms/subscription.ts';
import { nearestName } from '../terms/text.ts';
import { filterSchema } from './values.ts';

export const subscriptionsFileName = 'earshot.config.ts';

/** Returns the message for a value that is not an object; other issues have their own. */
function inText(advice: string) {
  return ({ code }: { code?: string }) => (code === 'invalid_type' ? advice : undefined);
}

const eachSchema = z.strictObject(
  {
    /** Filter of products; by default every product. */
    filter: filterSchema.default(''),
  },
  { error: inText("use 'each', or { each: { filter: … } }") },
);

const digestSchema = z.strictObject(
  {
    /** `day` by default. */
    window: z.enum(digestWindows).default('day'),
    /** Filter of products; by default every product. */
    filter: filterSchema.default(''),
  },
  { error: inText("use 'digest', or { digest: { window: … } }") },
);

const ruleSchemas = {
  kind: z.enum(summaryRuleKinds).transform(plainSummaryRule),
  each: z.strictObject({
    /** A text per product. */
    each: eachSchema.transform((rule): SummaryRule => ({ ...plainSummaryRule('each'), ...rule })),
  }),
  digest: z.strictObject({
    /** A text per period in UTC: an hour, a day, or a week starting on Monday. */
    digest: digestSchema.transform((rule): SummaryRule => ({ kind: 'digest', ...rule })),
  }),
};

type SummaryInput = { [Form in keyof typeof ruleSchemas]: z.input<(typeof ruleSchemas)[Form]> };

/**
 * Parses a rule in any of its forms. The form is chosen first, so that problems are reported with their path. Filters
 * are parsed later.
 */
const summaryRuleSchema = z
  .custom<SummaryInput[keyof SummaryInput]>()
  .transform((value, context) => {
    const form = formOf(value);
    if (form === null) {
      context.addIssue(formAdvice(value));
      return z.NEVER;
    }
    const result = ruleSchemas[form].safeParse(value);
    if (result.success) return ruleOf(result.data);
    // These already have a message; the path of the rule is prepended to theirs.
    for (const issue of result.error.issues) {
      context.issues.push({ ...issue, input: value } as z.core.$ZodRawIssue);
    }
    return z.NEVER;
  });

const forms = `${summaryRuleKinds.join(', ')}, { each: { filter: … } } or { digest: { window: … } }`;

/** Includes the field when a single one should have selected the form. */
function formAdvice(value: unknown): string {
  const [field, ...more] = typeof value === 'object' && value !== null ? Object.keys(value) : [];
  if (field === undefined || more.length > 0) return `use ${forms}`;
  const nearest = nearestName(field, summaryRuleFields(['summary']));
  const hint = nearest === null ? '' : ` Did you mean ${nearest}?`;
  return `${JSON.stringify(field)} is not a known field.${hint} Use ${forms}`;
}

/** A subscription: type, events, filter, status and summary rule. */
const subscriptionSchema = z.strictObject(
  {
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
    /**
     * Summaries by a language model: for `each` product, a `digest` of a window, or `off`. The default is
     * EARSHOT_SUMMARY.
     */
    summary: summaryRuleSchema.optional(),
  },
  `must be an object, such as { filter: "Collection/Name eq 'SENTINEL-2'" }`,
);

const nameRule = 'use lower-case letters, digits and dashes; at most 63 characters';

const noSubscriptions = 'missing. Write subscriptions: { <name>: { filter: … } }.';

/** Two clients with one id disconnect each other (MQTT 5, 3.1.4). */
function refuseSharedClients(
  sinks: Readonly<Record<string, SinkInput>>,
  context: z.RefinementCtx,
): void {
  const clients = new Map<string, string>();
  for (const [name, { mqtt }] of Object.entries(sinks)) {
    if (mqtt === undefined) continue;
    const client = `${mqtt.url} ${clientIdOf(mqtt, name)}`;
    const other = clients.get(client);
    if (other === undefined) clients.set(client, name);
    else {
      const message = `has the same client id as the sink ${other}; set another one`;
      context.addIssue({ code: 'custom', path: [name, 'mqtt', 'clientId'], message });
    }
  }
}

const configSchema = z
  .strictObject({
    /** Optional when the file has sinks. */
    subscriptions: z
      .record(z.string().regex(subscriptionNamePattern, nameRule), subscriptionSchema)
      .optional(),
    /** Targets that notifications are delivered to, by name. */
    sinks: z
      .record(
        z.string().regex(sinkNamePattern, nameRule),
        sinkSchema,
        "must be an object with a name for each sink, such as { archive: { command: ['node', 'act.js'] } }",
      )
      .superRefine(refuseSharedClients)
      .optional(),
  })
  .refine(({ subscriptions, sinks }) => subscriptions !== undefined || sinks !== undefined, {
    path: ['subscriptions'],
    message: noSubscriptions,
  });

/** Default export of `earshot.config.ts`. */
export type EarshotConfig = z.input<typeof configSchema>;

/** Returns its argument; adds types to `earshot.config.ts`. */
export function defineConfig(config: EarshotConfig): EarshotConfig {
  return config;
}

/**
 * Loads the subscriptions of `earshot.config.ts` in the folder, sorted by name; null without such a file or
 * subscriptions in it. A changed file is reloaded. Rejects with `configuration`, with all problems.
 */
export async function loadSubscriptionsFile(folder: string): Promise<DesiredSubscription[] | null> {
  const config = await readConfigFile(join(folder, subscriptionsFileName));
  if (config?.subscriptions === undefined) return null;
  return Object.entries(config.subscriptions)
    .map(([name, { type, events, filter, status }]) => {
      return { name, type, events: sortedEvents(events), filter, status };
    })
    .toSorted((a, b) => a.name.localeCompare(b.name));
}

/** Loads the file; null without one. Rejects with `configuration`, with all problems. */
export async function readConfigFile(path: string): Promise<z.output<typeof configSchema> | null> {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return null;
  const result = configSchema.safeParse(await defaultExportOf(path));
  if (result.success) return result.data;
  const details = result.error.issues.map(describe);
  throw new AppError('configuration', faultsOf(path), { details });
}

/** Returns the message of an error that lists problems of the file. */
export function faultsOf(path: string): string {
  return `${path} is invalid.`;
}

async function defaultExportOf(path: string): Promise<unknown> {
  try {
    // The digest in the URL prevents Node from returning a cached module.
    const digest = hash('sha256', readFileSync(path));
    const module = await importConfigFile(`${pathToFileURL(path).href}?digest=${digest}`);
    return z.looseObject({ default: z.unknown() }).safeParse(module).data?.default;
  } catch (cause) {
    throw new AppError(
      'configuration',
      `${path} cannot be loaded: ${reasonOf(cause)}. Fix or remove the file.`,
      { cause, details: cause instanceof AppError ? cause.details : [] },
    );
  }
}

/** Returns the reason with the line: for a syntax error it is above the stack, for a thrown error within it. */
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
  // The reason for an invalid name is one level deeper.
  const [inner] = issue.code === 'invalid_key' ? issue.issues : [];
  if (issue.path.length === 0 && issue.code === 'invalid_type') {
    return 'the default export is not valid. Write: export default defineConfig({ subscriptions: { … } }).';
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
  const messages = keys.map((key) => {
    const nearest = nearestName(key, known);
    const hint = nearest === null ? '' : ` Did you mean ${nearest}?`;
    return `${JSON.stringify(key)} is not a known field.${hint}`;
  });
  return `${messages.join(' ')} Known fields: ${known.join(', ')}.`;
}

function fieldsAt([part, name, ...deeper]: readonly PropertyKey[]): readonly string[] {
  if (name === undefined) return Object.keys(configSchema.shape);
  if (part === 'sinks') return sinkFields(deeper);
  if (deeper.length === 0) return Object.keys(subscriptionSchema.shape);
  return summaryRuleFields(deeper);
}

/** Returns the known fields at a path in a rule that starts with `summary`. */
function summaryRuleFields([, form, ...deeper]: readonly PropertyKey[]): readonly string[] {
  if (deeper.length > 0) return [];
  if (form === undefined) return ['each', 'digest'];
  return Object.keys((form === 'each' ? eachSchema : digestSchema).shape);
}

function formOf(value: unknown): keyof typeof ruleSchemas | null {
  if (typeof value === 'string') return 'kind';
  if (typeof value !== 'object' || value === null) return null;
  const [form, ...more] = (['each', 'digest'] as const).filter((one) => one in value);
  return form === undefined || more.length > 0 ? null : form;
}

function ruleOf(read: z.output<(typeof ruleSchemas)[keyof typeof ruleSchemas]>): SummaryRule {
  if ('each' in read) return read.each;
  return 'digest' in read ? read.digest : read;
}

/** Module that the file imports as 'earshot': the sources in a checkout, otherwise the build. */
const ownIndex = new URL(
  import.meta.url.endsWith('.ts') ? '../../index.ts' : '../../index.js',
  import.meta.url,
).href;

const typescriptFile = /\.ts(\?|$)/;

/**
 * Imports the file. While it loads, the package name resolves to this program, because a directory such as
 * `/etc/earshot` has no packages and a checkout has no build; other names are resolved by Node. The file and its
 * TypeScript imports are loaded as ES modules, whatever a nearby `package.json` says: `npm init` creates one that
 * makes them CommonJS.
 */
async function importConfigFile(address: string): Promise<unknown> {
  const hooks = registerHooks({
    resolve: (specifier, context, nextResolve) => {
      if (specifier === 'earshot') return { url: ownIndex, shortCircuit: true };
      const resolved = nextResolve(specifier, context);
      return typescriptFile.test(resolved.url)
        ? { ...resolved, format: 'module-typescript' }
        : resolved;
    },
  });
  try {
    return await import(address);
  } finally {
    hooks.deregister();
  }
}
