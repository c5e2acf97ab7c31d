/** Finds the text of an answer of a chat model, without its reasoning. */
import { z } from 'zod';

/** Content of a message: a text, or a list of texts and parts. */
export const messageContent = z
  .union([
    z.string(),
    z.array(z.union([z.string(), z.object({ type: z.string().optional(), text: z.unknown() })])),
  ])
  .nullish();

/** Types of the parts that are the answer: `text`, `output_text`. */
const textType = /^(?:output_)?text$/;

/** Tags around reasoning (facts, catalogue 6). */
const reasoningTag = /<(\/?)(?:mm:)?think(?:ing)?>/gi;

/** Starts the answer in the format of gpt-oss, after the reasoning in other channels. */
const finalChannel = /<\|channel\|>\s*final\b(?:[^<]|<\|constrain\|>)*<\|message\|>/g;

/**
 * Returns the text, trimmed; empty if there is only reasoning. Joins the parts that are texts. A closing tag without an
 * opening one ends reasoning, an opening tag without a closing one begins it.
 */
export function answerText(content: z.output<typeof messageContent>): string {
  const parts = typeof content === 'string' ? [content] : (content ?? []);
  const whole = parts.map((part) => {
    if (typeof part === 'string') return part;
    return textType.test(part.type ?? 'text') && typeof part.text === 'string' ? part.text : '';
  });
  return withoutTags(inFinalChannel(whole.join(''))).trim();
}

function inFinalChannel(text: string): string {
  if (!text.includes('<|channel|>')) return text;
  const last = [...text.matchAll(finalChannel)].at(-1);
  const [answer = ''] =
    last === undefined ? [] : text.slice(last.index + last[0].length).split('<|');
  return answer;
}

function withoutTags(text: string): string {
  let [answer, from, isReasoning] = ['', 0, false];
  for (const { 0: tag, 1: slash, index } of text.matchAll(reasoningTag)) {
    const isClosing = slash === '/';
    if (isClosing && !isReasoning) answer = '';
    else if (!isReasoning) answer += text.slice(from, index);
    [from, isReasoning] = [index + tag.length, !isClosing];
  }
  return isReasoning ? answer : answer + text.slice(from);
}
