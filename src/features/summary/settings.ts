/** Settings of summaries and of the language model. */

import { z } from 'zod';
import {
  defineSections,
  defineVariables,
  type Loaded,
  type Reader,
} from '../../core/config/load.ts';
import * as values from '../../core/config/variables.ts';
import { variables as indexVariables } from '../products/settings.ts';
import {
  digestWindows,
  plainSummaryRule,
  type SummaryRule,
  type SummaryRuleKind,
  summaryRuleKinds,
} from './terms.ts';

declare module '../../core/config/config.ts' {
  interface Config extends Loaded<typeof sections> {}
  interface StartConfig extends Pick<Config, 'summary'> {}
}

declare module '../../core/config/subscriptions-file.ts' {
  interface FileSubscription {
    summary?: SummaryRule | undefined;
  }
  interface SubscriptionInput {
    /**
     * Summaries by a language model: for `each` product, a `digest` of a window, or `off`. The default is
     * EARSHOT_SUMMARY.
     */
    summary?:
      | SummaryRuleKind
      /** A text per product. */
      | { each: z.input<typeof ruleForms.each> }
      /** A text per period in UTC: an hour, a day, or a week starting on Monday. */
      | { digest: z.input<typeof ruleForms.digest> }
      | undefined;
  }
}

/** Returns the message for a value that is not an object; other issues have their own. */
const objectOr =
  (advice: string) =>
  ({ code }: { code?: string }) =>
    code === 'invalid_type' ? advice : undefined;

const products = {
  /** Filter of products; by default every product. */
  filter: values.filterSchema.default(''),
  /** Maximum time from the end of sensing to publication, such as 30d. */
  maxAge: values.maximumAge.optional(),
};

const ruleForms = {
  each: z.strictObject(products, { error: objectOr("use 'each', or { each: { filter: … } }") }),
  digest: z.strictObject(
    {
      /** `day` by default. */
      window: z.enum(digestWindows).default('day'),
      ...products,
    },
    { error: objectOr("use 'digest', or { digest: { window: … } }") },
  ),
};

const ruleAdvice = 'use off, each, digest, { each: { filter: … } } or { digest: { window: … } }';

/** The rule `summary` of a subscription in any of its forms. Filters are parsed later. */
const summaryKey = z.preprocess(
  (value) => (summaryRuleKinds.some((kind) => kind === value) ? { [String(value)]: {} } : value),
  z
    .strictObject(
      {
        off: z.strictObject({}).optional(),
        each: ruleForms.each.optional(),
        digest: ruleForms.digest.optional(),
      },
      { error: objectOr(ruleAdvice) },
    )
    .refine((rule) => Object.values(rule).filter(Boolean).length === 1, ruleAdvice)
    .transform(({ each, digest }): SummaryRule => {
      const kind = digest ? 'digest' : each ? 'each' : 'off';
      const { maxAge: maxAgeUs, ...rule } = { ...each, ...digest };
      return { ...plainSummaryRule(kind), ...rule, maxAgeUs };
    }),
);

export const variables = defineVariables({
  EARSHOT_SUMMARY: {
    schema: z.enum(summaryRuleKinds),
    default: 'off',
    description:
      'Default of the option `summary` of each subscription in `earshot.config.ts`: `each` (one text per product), `digest` (one text per day) or `off`. Without a language model, earshot generates the texts from the product data.',
    example: 'digest',
  },
  EARSHOT_INFERENCE_URL: {
    schema: values.inferenceUrl,
    default: 'https://api-sherlock.cloudferro.com',
    description: 'URL of the inference service, without `/openai/v1`.',
    example: 'https://api-sherlock.cloudferro.com',
  },
  EARSHOT_INFERENCE_API_KEY: {
    schema: values.word,
    secret: true,
    description:
      'API key of your project at the inference service. The key and EARSHOT_INFERENCE_MODEL together enable summaries by a language model.',
    example: 'the-key-of-your-project',
  },
  EARSHOT_INFERENCE_MODEL: {
    schema: values.modelName,
    description:
      'Language model, as `<vendor>/<model_name>`. The model must be available to the project of the API key.',
    example: 'openai/gpt-oss-120b',
  },
  EARSHOT_SUMMARY_REQUESTS_PER_DAY: {
    schema: values.amount,
    default: '500',
    description:
      'Maximum number of requests to the inference service in any 24 hours. Additional summaries wait.',
    example: '500',
  },
  EARSHOT_SUMMARY_TOKENS_PER_DAY: {
    schema: values.amount,
    default: '500000',
    description: 'Maximum number of tokens, in prompts and answers, in any 24 hours.',
    example: '500000',
  },
});

const known = { ...variables, ...indexVariables };

export const sections = defineSections(known, {
  summary: readSummary,
});

export const subscriptionKeys = { summary: summaryKey };

export const groups = { start: ['summary'] };

function readSummary(reader: Reader<typeof known>) {
  const { value, report } = reader;
  /** Rule of the subscriptions without one of their own. */
  const rule = value('EARSHOT_SUMMARY');
  const inference = readInference(reader);
  const budget = {
    requestsPerDay: value('EARSHOT_SUMMARY_REQUESTS_PER_DAY'),
    tokensPerDay: value('EARSHOT_SUMMARY_TOKENS_PER_DAY'),
  };
  if (rule !== 'off' && !value('EARSHOT_INDEX')) {
    report(
      'EARSHOT_SUMMARY',
      `EARSHOT_SUMMARY=${rule} needs the product index, but EARSHOT_INDEX is off.`,
      'Set EARSHOT_INDEX=on, or EARSHOT_SUMMARY=off.',
    );
  }
  return { rule, inference, budget };
}

/** Reads the language model; null when none is configured: texts are then generated from the facts alone. */
function readInference({ value, failed, report }: Reader<typeof known>) {
  const url = value('EARSHOT_INFERENCE_URL');
  const apiKey = value('EARSHOT_INFERENCE_API_KEY');
  const model = value('EARSHOT_INFERENCE_MODEL');
  if (apiKey !== undefined && model !== undefined) return { url, apiKey, model };
  if (failed('EARSHOT_INFERENCE_API_KEY', 'EARSHOT_INFERENCE_MODEL')) return null;
  if (apiKey !== undefined) {
    report(
      'EARSHOT_INFERENCE_MODEL',
      'EARSHOT_INFERENCE_API_KEY is set, but EARSHOT_INFERENCE_MODEL is not.',
      'Set EARSHOT_INFERENCE_MODEL to a model that is available to the project of the key, such as openai/gpt-oss-120b.',
    );
  }
  if (model !== undefined) {
    report(
      'EARSHOT_INFERENCE_API_KEY',
      'EARSHOT_INFERENCE_MODEL is set, but EARSHOT_INFERENCE_API_KEY is not.',
      'Set EARSHOT_INFERENCE_API_KEY to an API key of your project at the inference service, or EARSHOT_INFERENCE_API_KEY_FILE to the path of a file with the key.',
    );
  }
  return null;
}
