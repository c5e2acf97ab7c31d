/** Reads the text out of a chat completion, and the ids out of a list of models; ignores all else. */
import { z } from 'zod';
import { foreignText } from '../../http/foreign-text.ts';
import type { InferenceAnswer } from './inference-calls.ts';
import { InferenceFault, type InferenceFaultKind } from './inference-fault.ts';
import type { AskedService } from './refusal-fault.ts';
import { readServiceWords, saying } from './service-words.ts';

export interface ChatAnswer {
  text: string;
  /** Of question and answer together; null when the service does not tell. */
  totalTokens: number | null;
}

const tokensMax = 100_000_000;
const modelsMax = 1_000;
const idCharactersMax = 200;
/** A shorter key might stand in a text by chance. */
const keyCharactersMin = 12;

/** Nothing of it but the text is in the specification. */
const completion = z.object({
  choices: z.array(z.unknown()),
  usage: z
    .object({ total_tokens: z.int().min(0).max(tokensMax).nullable().catch(null) })
    .nullish()
    .catch(null),
});
const choice = z.object({
  message: z.object({ content: z.string().nullish() }),
  finish_reason: z.string().nullish().catch(null),
});

/** Throws InferenceFault: not_json, unexpected_form, empty, cut. */
export function readAnswer(answer: InferenceAnswer, asked: AskedService): ChatAnswer {
  const whole = completion.safeParse(answer.json).data;
  const totalTokens = whole?.usage?.total_tokens ?? null;
  const fault = (kind: InferenceFaultKind, what: string, advice: string) => {
    const happened = `The inference service (${new URL(asked.baseUrl).host}) ${what}`;
    return new InferenceFault(kind, { happened, advice }, { tokens: totalTokens });
  };
  const said = () => saying(readServiceWords(answer, [asked.apiKey]));
  if (answer.json === undefined) {
    const what = `answered with something else than JSON (${answer.status}).${said()}`;
    throw fault('not_json', what, 'Perhaps EARSHOT_INFERENCE_URL is wrong.');
  }
  const [head] = whole?.choices ?? [];
  const first = choice.safeParse(head).data;
  if (whole === undefined || (head !== undefined && first === undefined)) {
    const what = `answered with JSON that is no chat completion (${answer.status}).${said()}`;
    throw fault('unexpected_form', what, 'Perhaps EARSHOT_INFERENCE_URL is wrong.');
  }
  const reason = first?.finish_reason ?? '';
  if (reason === 'length' || reason === 'content_filter') {
    const by = reason === 'length' ? 'at the length that the model may write' : 'by its filter';
    throw fault('cut', `cut the text off ${by}.`, 'Try again, or choose another model.');
  }
  const text = first?.message.content?.trim() ?? '';
  if (text === '') {
    throw fault('empty', 'answered without a text.', 'Try again, or choose another model.');
  }
  if (asked.apiKey.length >= keyCharactersMin && text.includes(asked.apiKey)) {
    const advice = 'Replace the key, and ask who runs the service.';
    throw fault('unexpected_form', 'answered with a text that holds our key.', advice);
  }
  return { text, totalTokens };
}

const modelList = z.object({ data: z.array(z.unknown()) });
const listedModel = z.object({ id: z.string().min(1) });

/** The ids of a list, made safe to show; null for what is no list (the specification shows none). */
export function readModels({ json }: InferenceAnswer, { apiKey }: AskedService): string[] | null {
  const list = modelList.safeParse(json).data?.data;
  if (list === undefined) return null;
  const ids = list.slice(0, modelsMax).flatMap((entry) => {
    const id = listedModel.safeParse(entry).data?.id;
    const options = { secrets: [apiKey], charactersMax: idCharactersMax };
    return id === undefined ? [] : [foreignText(id, options)];
  });
  return [...new Set(ids)];
}
