/** The doctor's checks of the inference service: it takes the key, and has the model for its project. */
import type { Finding } from '../domain/finding.ts';
import type { ChatClient } from './chat/chat-client.ts';
import { InferenceFault, modelAdvice } from './chat/inference-fault.ts';

const keyCheck = 'inference key';
const modelCheck = 'inference model';

interface CheckedInference {
  client: ChatClient;
  /** What EARSHOT_INFERENCE_MODEL holds. */
  model: string;
  signal: AbortSignal;
}

/**
 * Lists the models, which costs nothing. Where that is not to be had, as the specification does not show
 * it, one completion of a few tokens decides.
 */
export async function checkInference(options: CheckedInference): Promise<Finding[]> {
  try {
    const listed = await options.client.models(options.signal);
    return listed === null ? await checkByAsking(options) : checkList(listed, options.model);
  } catch (error) {
    const fault = faultIn(error);
    // Who may not list may still ask.
    const mayAsk = ['key_refused', 'request_refused', 'model_unavailable'].includes(fault.kind);
    return mayAsk ? checkByAsking(options) : withoutKey(fault);
  }
}

function checkList(listed: readonly string[], model: string): Finding[] {
  const count = listed.length === 1 ? 'one model' : `${listed.length} models`;
  const key = passed(keyCheck, `The service takes it, and lists ${count}.`);
  if (listed.includes(model)) return [key, passed(modelCheck, `${model} is among those listed.`)];
  const message = `${model} is not among the models that the service lists for this key.`;
  return [key, { check: modelCheck, state: 'fail', message, advice: modelAdvice(model, listed) }];
}

async function checkByAsking({ client, model, signal }: CheckedInference): Promise<Finding[]> {
  const messages = [
    { role: 'system', content: 'You answer with one word.' },
    { role: 'user', content: 'Answer with the word: ready' },
  ] as const;
  try {
    await client.complete({ model, messages }, signal);
    const listless = 'The service lists no models, so it was asked for a word:';
    return [
      passed(keyCheck, `${listless} it takes the key.`),
      passed(modelCheck, `${model} gave an answer.`),
    ];
  } catch (error) {
    return checkFault(faultIn(error), model);
  }
}

function checkFault(fault: InferenceFault, model: string): Finding[] {
  const taken = passed(keyCheck, 'The service takes it.');
  const { kind, happened: message, advice } = fault;
  switch (kind) {
    case 'model_unavailable': {
      // It may mean that the address is wrong.
      const unproven = skipped(
        keyCheck,
        'It was not refused, which proves little without a model.',
      );
      return [unproven, { check: modelCheck, state: 'fail', message, advice }];
    }
    case 'request_refused':
    case 'empty':
    case 'cut': {
      const short = `${model} was reached but gave no word: ${message}`;
      return [taken, { check: modelCheck, state: 'warn', message: short, advice }];
    }
    default:
      return withoutKey(fault);
  }
}

/** The findings where it did not come to the model. */
function withoutKey({ kind, happened: message, advice }: InferenceFault): Finding[] {
  const model = skipped(modelCheck, 'Not checked, as the key could not be verified.');
  if (kind === 'cancelled') return [skipped(keyCheck, message), model];
  // The service takes the key, or would not count its requests.
  const state = kind === 'rate_limited' ? 'warn' : 'fail';
  return [{ check: keyCheck, state, message, advice }, model];
}

function skipped(check: string, message: string): Finding {
  return { check, state: 'skipped', message };
}

function passed(check: string, message: string): Finding {
  return { check, state: 'pass', message };
}

/** Of an error that is not ours only the kind is shown: its text may hold anything. */
function faultIn(error: unknown): InferenceFault {
  if (error instanceof InferenceFault) return error;
  const kind = error instanceof Error ? error.name : typeof error;
  const happened = `This check failed in a way it should not (${kind}).`;
  return new InferenceFault('unreachable', { happened, advice: 'Please report it.' });
}
