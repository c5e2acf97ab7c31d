/** The doctor's step about summaries: the inference service takes the key and has the model. */
import type { Finding } from '../../domain/finding.ts';
import { areAllOff, plainSummaryRule } from '../../domain/summary-rule.ts';
import { createChatClient } from '../../summary/chat/chat-client.ts';
import { checkInference } from '../../summary/inference-checks.ts';
import type { Io } from '../io.ts';
import type { DoctorSettings } from './doctor-settings.ts';
import type { Step } from './run-steps.ts';

/** For one answer: somebody sits and waits. */
const timeoutMs = 30_000;

/** The step also tells of the check `inference model`. */
export function inferenceSteps({ summary, summaryRules }: DoctorSettings, io: Io): Step[] {
  // What cannot be read has failed as a check.
  const isReadable = summary !== undefined && summaryRules !== undefined;
  return [
    {
      name: 'inference key',
      needs: isReadable ? [] : ['configuration'],
      run: async () => {
        if (summary?.inference) {
          const { url: baseUrl, apiKey, model } = summary.inference;
          const client = createChatClient({ baseUrl, apiKey, fetch: io.fetch, timeoutMs });
          return checkInference({ client, model, signal: io.signal });
        }
        const otherwise = plainSummaryRule(summary?.rule ?? 'off');
        return [withoutModel(!areAllOff([otherwise, ...(summaryRules?.values() ?? [])]))];
      },
    },
  ];
}

/** A choice, and no fault: texts are made all the same. */
function withoutModel(isAsked: boolean): Finding {
  const check = 'inference key';
  const advice =
    'For a language model to write them, set EARSHOT_INFERENCE_API_KEY and EARSHOT_INFERENCE_MODEL: a key of your project, and a model that it has.';
  if (!isAsked) {
    return {
      check,
      state: 'skipped',
      message: 'No model is configured, and no rule asks for texts.',
    };
  }
  const message =
    'Summaries are asked for, but no model is configured: they are made of the facts alone.';
  return { check, state: 'warn', message, advice };
}
