/** The sandbox's inference service, and a data directory with products to write about. */
import { onTestFinished } from 'vitest';
import { startSandbox } from '../../../src/sandbox/sandbox.ts';
import { demoProject, type InferenceSettingsInput } from '../../../src/sandbox/settings.ts';
import type { FakeIoOptions } from '../../helpers/fake-io.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { createProductContext } from '../products/product-samples.ts';

export const model = demoProject.models[0];

/** Starts the service. `env` selects it, without a budget that a test could reach. */
export async function startInference(settings: InferenceSettingsInput = {}) {
  const sandbox = await startSandbox({ count: 0, now: Date.now, inference: settings });
  onTestFinished(() => sandbox.close());
  const env = {
    EARSHOT_INFERENCE_URL: sandbox.inferenceUrl,
    EARSHOT_INFERENCE_API_KEY: demoProject.key,
    EARSHOT_INFERENCE_MODEL: model,
    EARSHOT_SUMMARY_REQUESTS_PER_DAY: '100000',
    EARSHOT_SUMMARY_TOKENS_PER_DAY: '999999999',
  };
  return { inference: sandbox.inference, env };
}

/** Creates a context without rules and with a model, unless `env` changes that. */
export async function createSummaryContext(settings: InferenceSettingsInput = {}) {
  const context = await createProductContext();
  const { inference, env: modelEnv } = await startInference(settings);
  // A folder without earshot.config.ts until a test writes one.
  const workingDir = temporaryDirectory();
  const startSummarize = (words: readonly string[], { env, ...more }: FakeIoOptions = {}) =>
    context.start(['summarize', ...words], { workingDir, ...more, env: { ...modelEnv, ...env } });
  return {
    ...{ ...context, inference, workingDir, startSummarize },
    summarize: (...args: Parameters<typeof startSummarize>) => startSummarize(...args).ended,
    /** The rows of `query summaries`, newest first. */
    summaries: (...words: string[]) => context.rows(['query', 'summaries', ...words]),
  };
}
