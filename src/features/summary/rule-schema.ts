/** The rule `summary` of a subscription in `earshot.config.ts`. */
import { z } from 'zod';
import type { FileKey } from '../../core/config/subscriptions-file.ts';
import { filterSchema } from '../../core/config/variables.ts';
import { nearestName } from '../../core/terms/text.ts';
import { digestWindows, plainSummaryRule, type SummaryRule, summaryRuleKinds } from './terms.ts';

declare module '../../core/config/subscriptions-file.ts' {
  interface FileSubscription {
    summary?: SummaryRule | undefined;
  }
  interface SubscriptionInput {
    /**
     * Summaries by a language model: for `each` product, a `digest` of a window, or `off`. The default is
     * EARSHOT_SUMMARY.
     */
    summary?: SummaryInput[keyof SummaryInput] | undefined;
  }
}

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
  const nearest = nearestName(field, ruleFields([]));
  const hint = nearest === null ? '' : ` Did you mean ${nearest}?`;
  return `${JSON.stringify(field)} is not a known field.${hint} Use ${forms}`;
}

/** Returns the known fields at a path in a rule. */
function ruleFields([form, ...deeper]: readonly PropertyKey[]): readonly string[] {
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

export const summaryKey: FileKey = { schema: summaryRuleSchema, fieldsAt: ruleFields };
