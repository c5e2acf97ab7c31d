/** The doctor's checks of the inference service: the key is accepted, and the model is available to its project. */
import type { Finding } from '../domain/finding.ts';
import type { ChatClient } from './chat/chat-client.ts';
import { InferenceFault, modelAdvice } from './chat/inference-fault.ts';

const keyCheck = 'inference key';
const modelCheck = 'inference model';

interface InferenceCheckOptions {
  client: ChatClient;
  /** Value of EARSHOT_INFERENCE_MODEL. */
  model: string;
  signal: AbortSignal;
}

/**
 * Lists the models, which costs nothing. If the service does not list them (the call is not in its
 * specification), requests one completion of a few tokens.
 */
export async function checkInference(options: InferenceCheckOptions): Promise<Finding[]> {
  try {
    const listed = await options.client.models(options.signal);
    return listed === null ? await checkCompletion(options) : checkList(listed, options.model);
  } catch (error) {
    const fault = faultIn(error);
    // A key without the right to list models may still request completions.
    const mayComplete = ['key_refused', 'request_refused', 'model_unavailable'].includes(
      fault.kind,
    );
    return mayComplete ? checkCompletion(options) : withoutKey(fault);
  }
}

function checkList(listed: readonly string[], model: string): Finding[] {
  const count = listed.length === 1 ? 'one model' : `${listed.length} models`;
  const key = passed(keyCheck, `The service accepts the key and lists ${count}.`);
  if (listed.includes(model)) return [key, passed(modelCheck, `The service lists ${model}.`)];
  const message = `The service does not list ${model} for this key.`;
  return [key, { check: modelCheck, state: 'fail', message, advice: modelAdvice(model, listed) }];
}

async function checkCompletion(options: InferenceCheckOptions): Promise<Finding[]> {
  const { client, model, signal } = options;
  const messages = [
    { role: 'system', content: 'You answer with one word.' },
    { role: 'user', content: 'Answer with the word: ready' },
  ] as const;
  try {
    await client.complete({ model, messages }, signal);
    const unlisted = 'The service has no list of models, so the check sent a short prompt.';
    return [
      passed(keyCheck, `The service accepts the key. ${unlisted}`),
      passed(modelCheck, `${model} answered.`),
    ];
  } catch (error) {
    return checkFault(faultIn(error), model);
  }
}

function checkFault(fault: InferenceFault, model: string): Finding[] {
  const accepted = passed(keyCheck, 'The service accepts the key.');
  const { kind, happened: message, advice } = fault;
  switch (kind) {
    case 'model_unavailable': {
      // The URL may be wrong.
      const unverified = skipped(
        keyCheck,
        'The service does not reject the key. A full check needs a model.',
      );
      return [unverified, { check: modelCheck, state: 'fail', message, advice }];
    }
    case 'request_refused':
    case 'empty':
    case 'cut': {
      const noText = `${model} was reached but returned no text: ${message}`;
      return [accepted, { check: modelCheck, state: 'warn', message: noText, advice }];
    }
    default:
      return withoutKey(fault);
  }
}

/** Returns the findings when the key could not be verified. */
function withoutKey({ kind, happened: message, advice }: InferenceFault): Finding[] {
  const model = skipped(modelCheck, 'Not checked because the key could not be verified.');
  if (kind === 'cancelled') return [skipped(keyCheck, message), model];
  // A rate limit implies that the service knows the key.
  const state = kind === 'rate_limited' ? 'warn' : 'fail';
  return [{ check: keyCheck, state, message, advice }, model];
}

function skipped(check: string, message: string): Finding {
  return { check, state: 'skipped', message };
}

function passed(check: string, message: string): Finding {
  return { check, state: 'pass', message };
}

/** Shows only the name of an unknown error: its text may contain secrets. */
function faultIn(error: unknown): InferenceFault {
  if (error instanceof InferenceFault) return error;
  const kind = error instanceof Error ? error.name : typeof error;
  const happened = `This check failed with an internal error (${kind}).`;
  return new InferenceFault('unreachable', { happened, advice: 'Please report it.' });
}
