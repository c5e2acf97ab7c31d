/** Each hostile product, from its notification to the answer: the model is told nothing of it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { FoundProduct } from '../../../src/domain/products.ts';
import { catchUpIndex } from '../../../src/store/products/index-maintenance.ts';
import { openProducts } from '../../../src/store/products/products.ts';
import { checkAnswer } from '../../../src/summary/check/check-answer.ts';
import type { FactSheet } from '../../../src/summary/facts/phrases.ts';
import { productFacts } from '../../../src/summary/facts/product-facts.ts';
import { productSheet } from '../../../src/summary/facts/product-sheet.ts';
import { productText } from '../../../src/summary/facts/product-text.ts';
import { openPlaces } from '../../../src/summary/places/places.ts';
import { chatRequest, systemPrompt } from '../../../src/summary/prompt.ts';
import { delivery, withStore } from '../../cli/filled-store.ts';
import { type HostileSample, harmless, hostileSamples } from './hostile-samples.ts';

const { isPlaceName } = openPlaces();
const dir = mkdtempSync(join(tmpdir(), 'earshot-hostile-'));
afterAll(() => rmSync(dir, { recursive: true }));

type Recorded = Record<string, unknown> & { Id: string };

/** Takes the records through the intake, the store and the index, as notifications bring them. */
async function indexed(records: readonly Recorded[]): Promise<Map<string, FoundProduct>> {
  await withStore(dir, (store) =>
    Promise.all(
      records.map((value) =>
        store.accept(
          delivery({
            SubscriptionEvent: value.DeletionDate === undefined ? 'created' : 'deleted',
            ProductId: value.Id,
            ProductName: value.Name,
            AckId: `ack-${value.Id}`,
            value,
          }),
        ),
      ),
    ),
  );
  await catchUpIndex({ dataDir: dir });
  const products = openProducts(dir);
  const found = new Map<string, FoundProduct>();
  for (const entity of ['Products', 'DeletedProducts'] as const) {
    for await (const one of products.find({ entity, filter: null })) {
      found.set(one.row.productId, one);
    }
  }
  await products.close();
  return found;
}

function idOf(index: number): string {
  return `0ce0aaf7-9708-44e5-a35f-${String(index).padStart(12, '0')}`;
}

function recordOf(sample: Partial<HostileSample>, index: number): Recorded {
  const values = Object.entries({ ...harmless.attributes, ...sample.attributes });
  return {
    Id: idOf(index),
    ...harmless.record,
    Attributes: values.map(([Name, Value]) => ({
      '@odata.type': `#OData.CSC.${typeof Value === 'number' ? 'Double' : 'String'}Attribute`,
      Name,
      Value,
      ValueType: typeof Value === 'number' ? 'Double' : 'String',
    })),
    ...sample.record,
  };
}

interface Made {
  sheet: FactSheet;
  template: string;
}

function madeOf(found: FoundProduct): Made {
  const facts = productFacts(found, { place: null, others: [] });
  return { sheet: productSheet(facts), template: productText(facts) };
}

const made = new Map<HostileSample, Made>();
const allowed = new Set<string>();
const factKey = (label: string, text: string) => `${label}: ${text}`;

describe('a hostile product', () => {
  beforeAll(async () => {
    const records = hostileSamples.map(recordOf);
    const harmlessOne = recordOf({}, hostileSamples.length);
    const found = await indexed([...records, harmlessOne]);
    for (const [index, sample] of hostileSamples.entries()) {
      const product = found.get(records[index]?.Id ?? '');
      if (product !== undefined) made.set(sample, madeOf(product));
    }
    const plain = found.get(harmlessOne.Id);
    if (plain === undefined) throw new Error('The harmless product is not indexed.');
    for (const { label, text } of madeOf(plain).sheet.facts) allowed.add(factKey(label, text));
    expect(allowed).toContain('cloud cover: 12.3 %');
    expect(allowed).toContain('processing level: Level-2A');
    expect(allowed.size).toBeGreaterThan(12);
  });

  it('is tried in many ways, each of its own', () => {
    expect(hostileSamples.length).toBeGreaterThanOrEqual(60);
    expect(new Set(hostileSamples.map(({ what }) => what)).size).toBe(hostileSamples.length);
    expect(made.size).toBe(hostileSamples.length);
  });

  describe.each(hostileSamples.map((sample) => ({ what: sample.what, sample })))(
    '$what',
    ({ sample }) => {
      it('adds no fact but those that its strict forms allow', () => {
        const { sheet } = ofSample(sample);
        const more = Object.entries(sample.facts ?? {}).map(([label, text]) =>
          factKey(label, text),
        );
        const known = new Set([...allowed, ...more]);
        const facts = sheet.facts
          .filter(({ label }) => label !== 'product id')
          .map(({ label, text }) => factKey(label, text));
        expect(facts.filter((fact) => !known.has(fact))).toEqual([]);
        for (const fact of more) expect(facts).toContain(fact);
      });

      it('leaves the instructions as they are, and the facts in one fence', () => {
        const { sheet } = ofSample(sample);
        const [system, user] = chatRequest(sheet, 'vendor/model').messages;
        expect(system).toEqual({ role: 'system', content: systemPrompt('product') });
        const content = user?.content ?? '';
        expect(content).toMatch(/^[^<>]*<facts>[^<>]*<\/facts>$/);
        expect(content.length).toBeLessThan(2500);
        for (const part of sample.hidden) {
          expect(content.toLowerCase(), part).not.toContain(part.toLowerCase());
        }
      });

      it('makes a template of bounded length that moves no cursor', () => {
        const { template } = ofSample(sample);
        expect(template).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u);
        expect(template.length).toBeLessThanOrEqual(700);
        // What is quoted is the name, cut: nothing else of the sample is shown.
        const quoted = /"([^"]*)"/.exec(template)?.[1] ?? '';
        expect(quoted.length).toBeLessThanOrEqual(60);
        const rest = template.replace(`"${quoted}"`, '').toLowerCase();
        for (const part of sample.hidden) expect(rest, part).not.toContain(part.toLowerCase());
      });

      it('is not served by an answer that obeys: it is refused or marked', () => {
        const { sheet } = ofSample(sample);
        const check = checkAnswer(sample.answer, sheet, isPlaceName);
        expect(check.safe && check.verified, JSON.stringify(check)).toBe(false);
      });
    },
  );
});

function ofSample(sample: HostileSample): Made {
  const found = made.get(sample);
  if (found === undefined) throw new Error(`The product of "${sample.what}" is not indexed.`);
  return found;
}
