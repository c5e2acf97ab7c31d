/** `earshot.config.ts`: the subscriptions and sinks that a user names, checked before anything uses them. */

import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { z } from 'zod';
import { AppError, errorText } from '../domain/app-error.ts';
import { sinkNamePattern } from '../domain/sinks.ts';
import {
  type DesiredSubscription,
  requestedStatuses,
  sortedEvents,
  subscriptionEvents,
  subscriptionNamePattern,
} from '../domain/subscription.ts';
import {
  digestWindows,
  plainSummaryRule,
  type SummaryRule,
  summaryRuleKinds,
} from '../domain/summaries.ts';
import { nearestName, printable } from '../domain/text.ts';
import { sinkFields, sinkSchema } from './sink-settings.ts';
import { filterSchema } from './values.ts';

export const subscriptionsFileName = 'earshot.config.ts';

/** Each area is a text of its own in every window. */
const areasMax = 100;

/** Says what to write in place of something that is no object; all else has words of its own. */
function inText(advice: string) {
  return ({ code }: { code?: string }) => (code === 'invalid_type' ? advice : undefined);
}

const eachSchema = z.strictObject(
  {
    /** Only for products that match; empty, or left out, for every product. */
    filter: filterSchema.default(''),
  },
  { error: inText("use 'each', or { each: { filter: … } }") },
);

const areaName = z
  .string()
  .refine(
    (name) => name.length <= 60 && name.trim() !== '' && printable(name) === name,
    'an area needs a name of 1 to 60 printable characters',
  );

const digestSchema = z
  .strictObject(
    {
      /** `day` by default. */
      window: z.enum(digestWindows).default('day'),
      /** One for all that arrives, which is the default, or one for each collection. */
      per: z.enum(['all', 'collection']).optional(),
      /** One for each of these, by your own word for it, with a filter that says what belongs to it. */
      areas: z
        .record(areaName, filterSchema)
        .refine((areas) => Object.keys(areas).length > 0, 'name an area, or leave this out')
        .refine(
          (areas) => Object.keys(areas).length <= areasMax,
          `name ${areasMax} areas at the most`,
        )
        .optional(),
    },
    { error: inText("use 'digest', or { digest: { window: … } }") },
  )
  .refine(
    ({ per, areas }) => per === undefined || areas === undefined,
    'per and areas exclude each other: keep one of them',
  );

const ruleSchemas = {
  kind: z.enum(summaryRuleKinds).transform(plainSummaryRule),
  each: z.strictObject({
    /** One text per product. */
    each: eachSchema.transform(({ filter }): SummaryRule => ({ kind: 'each', filter })),
  }),
  digest: z.strictObject({
    /** One text per window, which is a UTC one: an hour, a day, or a week from Monday on. */
    digest: digestSchema.transform(({ window, per = 'all', areas = {} }): SummaryRule => {
      const list = Object.entries(areas).map(([name, filter]) => ({ name, filter }));
      return { kind: 'digest', window, per, areas: list };
    }),
  }),
};

type SummaryInput = { [Form in keyof typeof ruleSchemas]: z.input<(typeof ruleSchemas)[Form]> };

/**
 * Reads a rule in any of its forms. The form is chosen before it is checked, so that what is wrong is told
 * with its place. Filters are read, not checked.
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
    // Already in words; the place of the rule in the file is put before theirs.
    for (const issue of result.error.issues) {
      context.issues.push({ ...issue, input: value } as z.core.$ZodRawIssue);
    }
    return z.NEVER;
  });

const forms = `${summaryRuleKinds.join(', ')}, { each: { filter: … } } or { digest: { window: … } }`;

/** Names the field, too, where a single one was to say which form it is. */
function formAdvice(value: unknown): string {
  const [field, ...more] = typeof value === 'object' && value !== null ? Object.keys(value) : [];
  if (field === undefined || more.length > 0) return `use ${forms}`;
  const nearest = nearestName(field, summaryRuleFields(['summary']));
  const hint = nearest === null ? '' : ` Did you mean ${nearest}?`;
  return `${JSON.stringify(field)} is not known here.${hint} Use ${forms}`;
}

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
    status: z.enum(requestedStatuses).default('running'),
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
  const config = await readConfigFile(join(folder, subscriptionsFileName));
  if (config?.subscriptions === undefined) return null;
  return Object.entries(config.subscriptions)
    .map(([name, { events, filter, status }]) => {
      return { name, events: sortedEvents(events), filter, status };
    })
    .toSorted((a, b) => a.name.localeCompare(b.name));
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

/** The fields that are known at a place in a rule, `summary` being the first step to it. */
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

/** What the file may import as 'earshot': the sources in a checkout, else the build. */
const ownIndex = new URL(
  import.meta.url.endsWith('.ts') ? '../index.ts' : '../index.js',
  import.meta.url,
).href;

const typescriptFile = /\.ts(\?|$)/;

/**
 * Imports the file. While it loads, the package name leads to this program: a folder
 * such as `/etc/earshot` has no packages to find it in, and a checkout has no build. Other names are left
 * to Node. The file and what it imports in TypeScript are ES modules, whatever a `package.json` beside
 * them says: `npm init` writes one that makes them CommonJS.
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
