/** Answers of models that write their reasoning into the text. */
import { expect, it } from 'vitest';
import { answerText } from '../../../src/summary/chat/answer-text.ts';

const channels = '<|channel|>analysis<|message|>Short.<|end|><|start|>assistant';

it.each<[unknown, string]>([
  ['Yes.', 'Yes.'],
  [null, ''],
  [undefined, ''],
  ['<think>Short.</think>\n\nYes.', 'Yes.'],
  ['<THINKING>Short.</THINKING>Yes.', 'Yes.'],
  ['<mm:think>Short.</mm:think>Yes.', 'Yes.'],
  ['Yes,<think>Short.</think> both.', 'Yes, both.'],
  ['<think>a<think>b</think>c</think>Yes.', 'Yes.'],
  ['<think></think><think>again</think>Yes.', 'Yes.'],
  ['Write a short text.</think>\nYes.', 'Yes.'],
  ['<think>Write a short text', ''],
  ['Yes.<think>Is it right?', 'Yes.'],
  ['<think>Short.</think>', ''],
  ['1 < 2 <b>and</b> <thin>', '1 < 2 <b>and</b> <thin>'],
  [`${channels}<|channel|>final<|message|>Yes.`, 'Yes.'],
  [`${channels}<|channel|>final<|message|>Yes.<|return|>`, 'Yes.'],
  [`${channels}<|channel|>final <|constrain|>text<|message|>Yes.<|end|>`, 'Yes.'],
  [channels, ''],
  [`<|channel|>final<|message|>No.<|end|>${channels}<|channel|>final<|message|>Yes.`, 'Yes.'],
  [
    [
      { type: 'text', text: 'Yes' },
      { type: 'text', text: '.' },
    ],
    'Yes.',
  ],
  [
    [
      { type: 'thinking', thinking: [{ type: 'text', text: 'Short.' }] },
      { type: 'reasoning', text: 'Short.' },
      { type: 'text', text: '<think>Short.</think>Yes.' },
    ],
    'Yes.',
  ],
  [['Ye', { type: 'output_text', text: 's' }, { text: '.' }, { type: 'text', text: 1 }], 'Yes.'],
  [[], ''],
])('%j has the text %j', (content, text) => {
  expect(answerText(content as string)).toBe(text);
});

it('reads an answer made to stall quickly', () => {
  const startMs = performance.now();
  for (const part of ['<think>', '</think>', '<|channel|>final', '<|channel|>final<|message|>a'])
    answerText(part.repeat(100_000));
  // Milliseconds; quadratic code takes minutes.
  expect(performance.now() - startMs).toBeLessThan(6_000);
});
