/** The rows of the table that say which texts are made, by which model, and what they may cost. */
import { z } from 'zod';
import { summaryRuleKinds } from '../domain/summary-rule.ts';
import { amount, inferenceUrl, modelName } from './value-schemas.ts';
import { variable } from './variable.ts';

export const summaryVariables = {
  summary: variable({
    name: 'EARSHOT_SUMMARY',
    schema: z.enum(summaryRuleKinds),
    default: 'off',
    description:
      'What is told in words, for subscriptions whose `summary` in `earshot.config.ts` does not say so: `each` product, a `digest` of each day, or nothing. Without a model the texts are plain ones made from the facts.',
    example: 'digest',
  }),
  inferenceUrl: variable({
    name: 'EARSHOT_INFERENCE_URL',
    schema: inferenceUrl,
    default: 'https://api-sherlock.cloudferro.com',
    description: 'The inference service that texts are asked of, without `/openai/v1`.',
    example: 'https://api-sherlock.cloudferro.com',
  }),
  inferenceApiKey: variable({
    name: 'EARSHOT_INFERENCE_API_KEY',
    schema: z.string().regex(/^[\x21-\x7e]+$/, 'must be one word without blanks'),
    secret: true,
    description:
      'The API key of your project at the inference service. With EARSHOT_INFERENCE_MODEL it lets a language model write the texts.',
    example: 'the-key-of-your-project',
  }),
  inferenceModel: variable({
    name: 'EARSHOT_INFERENCE_MODEL',
    schema: modelName,
    description:
      'The language model, `<vendor>/<model_name>`: one that is available to the project of the key.',
    example: 'openai/gpt-oss-120b',
  }),
  summaryRequestsPerHour: variable({
    name: 'EARSHOT_SUMMARY_REQUESTS_PER_HOUR',
    schema: amount,
    default: '60',
    description:
      'How many requests the inference service gets in any hour at the most. What exceeds it waits.',
    example: '60',
  }),
  summaryRequestsPerDay: variable({
    name: 'EARSHOT_SUMMARY_REQUESTS_PER_DAY',
    schema: amount,
    default: '500',
    description: 'The same in any 24 hours.',
    example: '500',
  }),
  summaryTokensPerDay: variable({
    name: 'EARSHOT_SUMMARY_TOKENS_PER_DAY',
    schema: amount,
    default: '500000',
    description:
      'How many tokens, of questions and answers together, are spent in any 24 hours at the most.',
    example: '500000',
  }),
} as const;
