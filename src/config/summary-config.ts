/** What is told in words unless a subscription says otherwise, by which model, and what it may cost. */
import type { SummaryBudget } from '../domain/summaries.ts';
import type { SummaryRuleKind } from '../domain/summary-rule.ts';
import { frozen } from './frozen.ts';
import { type Environment, readVariables, refuseProblems } from './read-variables.ts';
import type { Values } from './variables.ts';

export interface SummaryConfig {
  /** For the subscriptions that state no rule of their own. */
  rule: SummaryRuleKind;
  /** Null where no model is configured: texts are made from the facts alone. */
  inference: InferenceConfig | null;
  budget: SummaryBudget;
}

export interface InferenceConfig {
  /** Without `/openai/v1`, and without a slash at its end. */
  url: string;
  apiKey: string;
  /** `<vendor>/<model_name>`. */
  model: string;
}

/** What `start`, `summarize` and `doctor` need. Throws one `configuration` error that lists every problem. */
export function readSummaryConfig(environment: Environment): Readonly<SummaryConfig> {
  const { values, problems } = readVariables(environment, [
    'summary',
    'index',
    'inferenceUrl',
    'inferenceApiKey',
    'inferenceModel',
    'summaryRequestsPerHour',
    'summaryRequestsPerDay',
    'summaryTokensPerDay',
  ]);
  const inference = readInference(values, problems);
  const { summary: rule, index } = values;
  // Undefined: it could not be read, which has been reported.
  if (rule !== undefined && rule !== 'off' && index === 'off') {
    problems.push(
      `EARSHOT_SUMMARY=${rule} needs the product index, from which texts are made, but EARSHOT_INDEX is off. Set EARSHOT_INDEX=on, or EARSHOT_SUMMARY=off.`,
    );
  }
  refuseProblems(problems);
  return frozen({
    rule,
    inference,
    budget: {
      requestsPerHour: values.summaryRequestsPerHour,
      requestsPerDay: values.summaryRequestsPerDay,
      tokensPerDay: values.summaryTokensPerDay,
    },
  });
}

function readInference(
  values: Values<'inferenceUrl' | 'inferenceApiKey' | 'inferenceModel'>,
  problems: string[],
): InferenceConfig | null {
  const { inferenceUrl: url, inferenceApiKey: apiKey, inferenceModel: model } = values;
  if (apiKey !== undefined && model !== undefined) return { url, apiKey, model };
  // What is wrong with one of them has been said; the other one alone is no second problem.
  const told = problems.some((problem) => /EARSHOT_INFERENCE_(?!URL)/.test(problem));
  if (!told && apiKey !== undefined) {
    problems.push(
      'EARSHOT_INFERENCE_API_KEY is set, but no model is. Set EARSHOT_INFERENCE_MODEL to one that is available to the project of the key, such as openai/gpt-oss-120b.',
    );
  }
  if (!told && model !== undefined) {
    problems.push(
      'EARSHOT_INFERENCE_MODEL is set, but there is no key. Set EARSHOT_INFERENCE_API_KEY to an API key of your project at the inference service, or EARSHOT_INFERENCE_API_KEY_FILE to a file that holds it.',
    );
  }
  return null;
}
