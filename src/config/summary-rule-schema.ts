/** How `earshot.config.ts` may say what is told of a subscription in words. */
import { z } from 'zod';
import { printable } from '../domain/printable.ts';
import { digestWindows } from '../domain/summaries.ts';
import { plainSummaryRule, type SummaryRule, summaryRuleKinds } from '../domain/summary-rule.ts';
import { nearestName } from '../filter/nearest-name.ts';
import { filterSchema } from './filter-schema.ts';

/** Each area is a text of its own in every window. */
const areasMax = 100;

/** Says what to write in place of something that is no object; all else has words of its own. */
function inWords(advice: string) {
  return ({ code }: { code?: string }) => (code === 'invalid_type' ? advice : undefined);
}

const kindSchema = z.enum(summaryRuleKinds);

const eachSchema = z.strictObject({
  /** One text per product. */
  each: z.strictObject(
    {
      /** Only for products that match; empty, or left out, for every product. */
      filter: filterSchema.default(''),
    },
    { error: inWords("use 'each', or { each: { filter: … } }") },
  ),
});

const areaName = z
  .string()
  .refine(
    (name) => name.length <= 60 && name.trim() !== '' && printable(name) === name,
    'an area needs a name of 1 to 60 printable characters',
  );

const digestSchema = z.strictObject({
  /** One text per window, which is a UTC one: an hour, a day, or a week from Monday on. */
  digest: z
    .strictObject(
      {
        /** `day` unless told. */
        window: z.enum(digestWindows).default('day'),
        /** One for all that arrives, which is meant unless told, or one for each collection. */
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
      { error: inWords("use 'digest', or { digest: { window: … } }") },
    )
    .refine(
      ({ per, areas }) => per === undefined || areas === undefined,
      'per and areas exclude each other: keep one of them',
    ),
});

type SummaryInput =
  | z.input<typeof kindSchema>
  | z.input<typeof eachSchema>
  | z.input<typeof digestSchema>;

/**
 * Reads a rule in any of its forms. The form is chosen before it is checked, so that what is wrong is told
 * with its place. Filters are read, not checked.
 */
export const summaryRuleSchema = z.custom<SummaryInput>().transform((value, context) => {
  const schema = schemaFor(value);
  if (schema === null) {
    context.addIssue(formAdvice(value));
    return z.NEVER;
  }
  const result = schema.safeParse(value);
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

/** The fields that are known at a place in a rule, `summary` being the first step to it. */
export function summaryRuleFields([, form, ...deeper]: readonly PropertyKey[]): readonly string[] {
  if (deeper.length > 0) return [];
  if (form === undefined) return ['each', 'digest'];
  return Object.keys(
    form === 'each' ? eachSchema.shape.each.shape : digestSchema.shape.digest.shape,
  );
}

function schemaFor(value: unknown) {
  if (typeof value === 'string') return kindSchema;
  if (typeof value !== 'object' || value === null) return null;
  const schemas = [
    ...('each' in value ? [eachSchema] : []),
    ...('digest' in value ? [digestSchema] : []),
  ];
  return schemas.length === 1 ? (schemas[0] ?? null) : null;
}

function ruleOf(
  read: z.output<typeof kindSchema> | z.output<typeof eachSchema> | z.output<typeof digestSchema>,
): SummaryRule {
  if (typeof read === 'string') return plainSummaryRule(read);
  if ('each' in read) return { kind: 'each', filter: read.each.filter };
  const { window, per = 'all', areas = {} } = read.digest;
  return {
    kind: 'digest',
    window,
    per,
    areas: Object.entries(areas).map(([name, filter]) => ({ name, filter })),
  };
}
