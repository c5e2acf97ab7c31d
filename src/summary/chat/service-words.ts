/** Reads what the inference service says of a failure, in the forms that such services use. */
import { z } from 'zod';
import { foreignText, hintCharactersMax, hintOf } from '../../http/foreign-text.ts';
import type { InferenceAnswer } from './inference-calls.ts';
import { withoutKeyParts } from './key-echoes.ts';

export interface ServiceWords {
  /** Safe to show; empty when it says nothing. */
  text: string;
  /** Its own names for the failure, such as `model_not_found`; empty when it has none. Not for people. */
  code: string;
}

const wordsCharactersMax = 500;
const findingsMax = 5;

const name = z.union([z.string(), z.number()]).nullish().catch(null);
const finding = z.object({
  loc: z.array(z.union([z.string(), z.number()])).catch([]),
  msg: z.string(),
});

/** The forms of bodies (facts, catalogue 6): not shown in the specification. */
const errorBody = z.union([
  z.string().transform((message) => ({ message, code: null, type: null })),
  z.object({ message: z.string(), code: name, type: name }),
  z
    .object({
      detail: z.union([
        z.string(),
        z.object({ message: z.string() }).transform(({ message }) => message),
        // What was sent stands in their `input`, which stays unread.
        z.array(finding).min(1).transform(wordsOf),
      ]),
    })
    .transform(({ detail }) => ({ message: detail, code: null, type: null })),
]);

/** The words of an answer; what is in `secrets` shows as `…` should the service repeat any part of it. */
export function readServiceWords(
  { json, text }: Pick<InferenceAnswer, 'json' | 'text'>,
  secrets: readonly string[],
): ServiceWords {
  const inner = z.object({ error: z.unknown() }).safeParse(json).data?.error;
  const { data } = errorBody.safeParse(inner ?? json);
  const words = data?.message ?? (json === undefined ? hintOf(text) : printed(json));
  const charactersMax = data === undefined ? hintCharactersMax : wordsCharactersMax;
  return {
    text: foreignText(withoutKeyParts(words, secrets), { secrets, charactersMax }),
    code: [data?.code, data?.type].filter((part) => part != null).join(' '),
  };
}

/** Printed anew: a secret may stand in the body itself with escapes that nobody expects. */
function printed(json: unknown): string {
  try {
    return JSON.stringify(json);
  } catch {
    return ''; // Nested too deeply.
  }
}

function wordsOf(findings: z.infer<typeof finding>[]): string {
  return findings
    .slice(0, findingsMax)
    .map(({ loc, msg }) => (loc.length === 0 ? msg : `${loc.join('.')}: ${msg}`))
    .join('; ');
}

/** Completes a sentence with the service's words, in quotes; empty when there are none. */
export function saying({ text }: ServiceWords): string {
  return text === '' ? '' : ` It says: "${text.replace(/\.$/, '')}".`;
}

/** Words that speak of a request that is too long, as those may name the model too. */
const sizeWords = /context|\btokens?\b|length|too (long|large)/i;

/** Whether the service means that it has no such model, or not for this project. */
export function namesModel({ text, code }: ServiceWords, model: string): boolean {
  if (/model[_ ]?not[_ ]?(found|available)|(invalid|unknown)[_ ]?model/i.test(code)) return true;
  const rest = text.replaceAll(model, 'model');
  return /\bmodel\b/i.test(rest) && !sizeWords.test(rest);
}
