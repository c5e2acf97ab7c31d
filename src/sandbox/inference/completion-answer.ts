/** What the inference service answers to a request for a completion that it takes, faults included. */
import { answerText } from './answer-text.ts';
import type { CompletionRequest } from './completion-request.ts';
import { faultyText } from './faulty-text.ts';
import {
  type InferenceAnswer,
  modelUnavailable,
  pageOf,
  rateLimited,
  serverError,
  unauthorized,
} from './inference-errors.ts';
import type { InferenceFault } from './inference-faults.ts';
import type { InferenceOutcome } from './inference-record.ts';
import type { InferenceSettings } from './inference-settings.ts';

/** An answer with what the record is to say of it; `never` is one that does not come, `cut` a cut connection. */
export interface CompletionAnswer {
  readonly outcome: InferenceOutcome;
  readonly answer: InferenceAnswer | 'never' | 'cut';
}

// A common rule of thumb for English; which tokens a model really counts is nobody's business here.
const charactersPerToken = 4;

/** Makes the answer. `nowMs` is the sandbox's time; it stands in `created`, as in every answer of this kind. */
export function completionAnswer(
  request: CompletionRequest,
  fault: InferenceFault | null,
  { settings, nowMs }: { settings: InferenceSettings; nowMs: number },
): CompletionAnswer {
  const right = answerText(request.userText);
  const complete = (content: string | null, finishReason: 'stop' | 'length' = 'stop') =>
    completion(request, { content, finishReason }, { settings, nowMs });
  const played = (
    answer: CompletionAnswer['answer'],
    outcome: InferenceOutcome = fault ?? 'answered',
  ) => ({ outcome, answer });
  switch (fault) {
    case null:
      return played(complete(right));
    case 'unauthorized':
      return played(unauthorized(settings));
    case 'modelUnavailable':
      return played(modelUnavailable(request.model, settings));
    case 'rateLimited':
      return played(rateLimited(settings, nowMs));
    case 'serverError':
      return played(serverError(settings));
    case 'hang':
      return played('never');
    case 'connectionCut':
      return played('cut');
    case 'htmlPage':
      return played({ status: 200, body: pageOf('The service is being maintained') });
    case 'brokenJson': {
      const whole = JSON.stringify(complete(right).body);
      const headers = { 'Content-Type': 'application/json' };
      return played({ status: 200, body: whole.slice(0, whole.length / 2), headers });
    }
    case 'nullContent':
      return played(complete(null));
    case 'emptyContent':
      return played(complete(''));
    case 'cut':
      return played(complete(right.slice(0, right.length / 2), 'length'));
    default: {
      const text = faultyText(fault, right, request.userText);
      return text === null ? played(complete(right), 'answered') : played(complete(text));
    }
  }
}

function completion(
  { model, characters, digest }: CompletionRequest,
  { content, finishReason }: { content: string | null; finishReason: 'stop' | 'length' },
  { settings, nowMs }: { settings: InferenceSettings; nowMs: number },
): InferenceAnswer {
  const reasoning = settings.reasoningGiven
    ? { reasoning: 'The user wants a few sentences. I take them from the facts.' }
    : {};
  const message = { role: 'assistant', content, ...reasoning };
  const prompt = Math.ceil(characters / charactersPerToken);
  const generated = Math.ceil((content ?? '').length / charactersPerToken);
  const usage = {
    prompt_tokens: prompt,
    completion_tokens: generated,
    total_tokens: prompt + generated,
  };
  return {
    status: 200,
    body: {
      id: `chatcmpl-${digest.slice(0, 24)}`,
      object: 'chat.completion',
      created: Math.floor(nowMs / 1_000),
      model,
      choices: [{ index: 0, message, logprobs: null, finish_reason: finishReason }],
      ...(settings.usageGiven ? { usage } : {}),
    },
  };
}
