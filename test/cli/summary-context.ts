/** A data directory with products, and the sandbox's inference service to write about them. */
import { onTestFinished } from 'vitest';
import { demoProject, type InferenceSettingsInput } from '../../src/sandbox/live-settings.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';
import type { FakeIoOptions } from './fake-io.ts';
import { createProductContext } from './product-samples.ts';

export const model = demoProject.models[0];

/** Creates a context without rules and with a model, unless `env` changes that. */
export async function createSummaryContext(inference: InferenceSettingsInput = {}) {
  const context = await createProductContext();
  const sandbox = await startSandbox({ now: Date.now, inference });
  onTestFinished(() => sandbox.close());
  // A folder without earshot.config.ts until a test writes one.
  const workingDir = temporaryDirectory();
  const sent: string[] = [];
  const options = ({ env = {}, ...more }: FakeIoOptions): FakeIoOptions => ({
    workingDir,
    fetch: async (input, init) => {
      const body = input instanceof Request ? await input.clone().text() : '';
      if (body !== '') sent.push(body);
      return fetch(input, init);
    },
    ...more,
    env: {
      EARSHOT_INFERENCE_URL: sandbox.inferenceUrl,
      EARSHOT_INFERENCE_API_KEY: demoProject.key,
      EARSHOT_INFERENCE_MODEL: model,
      ...env,
    },
  });
  return {
    ...context,
    sandbox,
    workingDir,
    /** The bodies of the sent requests, in order. */
    sent,
    summarize: (words: readonly string[], more: FakeIoOptions = {}) =>
      context.earshot(['summarize', ...words], options(more)),
    startWithModel: (words: readonly string[], more: FakeIoOptions = {}) =>
      context.start(words, options(more)),
    /** The rows of `query summaries`, newest first. */
    summaries: (...words: string[]) => context.rows(['query', 'summaries', ...words]),
  };
}
