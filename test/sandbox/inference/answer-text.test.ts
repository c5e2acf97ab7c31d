/** The text that the inference service makes of the facts in a request: it reads well, and adds nothing. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answerText } from '../../../src/sandbox/inference/answer.ts';
import { messageOf } from './inference-world.ts';

const neutral = 'There is nothing to tell about this request.';
const product = {
  subject: 'product',
  satellite: 'Sentinel-2B',
  content: 'surface reflectance',
  name: 'S2B_MSIL2A_20240520T101559_N0510_R065_T34UCF_20240520T121203.SAFE',
  'sensing start': '20 May 2024 10:15 UTC',
  'cloud cover': '12.3 %',
  place: 'mostly Poland, with a small part of Slovakia',
};
const textOf = (told: unknown) => answerText(messageOf(told));

describe('the text', () => {
  it.each<[string, object, string]>([
    [
      'a product',
      product,
      'This product of Sentinel-2B holds surface reflectance. It was sensed on 20 May 2024 10:15 UTC. It covers mostly Poland, with a small part of Slovakia.',
    ],
    [
      'an auxiliary file',
      {
        subject: 'auxiliary file',
        content: 'precise orbits',
        'valid from': '10 April 2014 22:59 UTC',
      },
      'This auxiliary file holds precise orbits. It is valid from 10 April 2014 22:59 UTC on.',
    ],
    [
      'a deleted product',
      { satellite: 'Sentinel-1A', 'deletion date': '1 January 2026 00:00 UTC' },
      'This product is of Sentinel-1A. It was deleted on 1 January 2026 00:00 UTC.',
    ],
    [
      'a digest',
      {
        'time of receipt': '20 May 2024 00:00 UTC to 21 May 2024 00:00 UTC',
        products: '380 products',
        'products by collection': 'Sentinel-2 (300) and Sentinel-1 (80)',
        'seas, with the products over them': 'the Baltic Sea (12)',
      },
      'Between 20 May 2024 00:00 UTC and 21 May 2024 00:00 UTC, 380 products arrived. They cover the Baltic Sea (12). The collections are Sentinel-2 (300) and Sentinel-1 (80).',
    ],
    [
      'something else',
      { size: '2 GB.', orbits: '12 and 13' },
      'The size is 2 GB. The orbits are 12 and 13.',
    ],
  ])('of %s reads well', (_title, told, text) => {
    expect(textOf(told)).toBe(text);
  });

  it('is the same for every form in which facts come', () => {
    const list = Object.entries(product).map(([label, text]) => ({ label, text }));
    const forms = [
      product,
      list,
      { kind: 'product', facts: product },
      { kind: 'product', facts: list },
    ];
    expect(new Set(forms.map(textOf)).size).toBe(1);
    expect(textOf(product)).not.toBe(neutral);
  });

  it.each([
    'Hello.',
    '<facts>{"a":"b"}',
    '<facts>{"a":</facts>',
    '<facts>null</facts>',
    '<facts>7</facts>',
    '<facts>{"a":1,"b":null,"c":{"d":"e"},"f":" "}</facts>',
    '<facts>[null,[],{"label":"a"},{"text":"b"}]</facts>',
  ])('tells nothing where there are no facts: %s', (message) => {
    expect(answerText(message)).toBe(neutral);
  });

  it('has no number and no name that the facts do not have, and at most three sentences', () => {
    const labels = [...Object.keys(product), 'deletion date', 'products', 'valid from', 'size'];
    const word = fc.stringMatching(/^[A-Za-z0-9]{1,8}$/);
    const text = fc.oneof(
      fc.array(word, { minLength: 1, maxLength: 5 }).map((words) => words.join(' ')),
      fc.constant('20 May 2024 10:15 UTC'),
    );
    fc.assert(
      fc.property(fc.dictionary(fc.constantFrom(...labels), text, { minKeys: 1 }), (told) => {
        const answer = textOf(told);
        const known = Object.values(told).flatMap((one) => one.split(/\W+/));
        const special = answer.split(/\W+/).filter((one) => /[A-Z0-9]/.test(one));
        const openers = ['It', 'This', 'The', 'They', 'Between'];
        expect(special.filter((one) => !known.includes(one) && !openers.includes(one))).toEqual([]);
        expect(answer.split(/\.(?: |$)/).length).toBeLessThanOrEqual(4);
        expect(Object.values(told).some((one) => answer.includes(one))).toBe(true);
      }),
      { numRuns: 200 },
    );
  });
});
