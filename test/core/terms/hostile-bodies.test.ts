/** Malicious bodies: the reader never throws, and its result stays small. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Reading } from '../../../src/core/terms/notification.ts';
import { times } from '../../helpers/thorough.ts';
import { read, readOne, sample, sampleRead } from './sample-notification.ts';

const bodyBytesMax = 2 ** 20;
const depth = 100_000;

/** Properties of every result of the reader, for any body. */
function expectSound({ notifications, faults, drift }: Reading): void {
  expect(notifications.length + faults.length).toBeGreaterThan(0);
  for (const { productId, event, ackId, notificationDateUs } of notifications) {
    expect(productId.trim()).toBe(productId);
    expect(productId).not.toBe('');
    expect(event).toBe(event.toLowerCase());
    expect([productId, event, ackId ?? ''].every((text) => text.isWellFormed())).toBe(true);
    expect(ackId).not.toBe('');
    if (notificationDateUs !== null) expect(Number.isInteger(notificationDateUs)).toBe(true);
  }
  for (const { message } of faults) expect(message).toMatch(/^[\x20-\x7e]+$/);
  for (const shape of drift) expect(shape).toMatch(/^[a-z0-9-]+$|^unknown-field:/);
}

const anyJson = fc.jsonValue({ maxDepth: 4 });
const someFields = fc.dictionary(fc.constantFrom(...Object.keys(sample), 'Value'), anyJson);

describe('the reader never throws', () => {
  it('on random JSON, alone or in an array', () => {
    fc.assert(fc.property(anyJson, (value) => expectSound(read(JSON.stringify(value)))));
    fc.assert(fc.property(fc.array(anyJson), (items) => expectSound(read(JSON.stringify(items)))));
  });

  it('on notifications with any value in any field', () => {
    fc.assert(
      fc.property(someFields, (fields) => {
        expectSound(read(JSON.stringify({ ...sample, ...fields })));
        expectSound(read(JSON.stringify([fields, { ...sample, value: fields }])));
      }),
      { numRuns: times(150, 500) },
    );
  });

  it('on notifications with changed, lost and added bytes', () => {
    const intact = new TextEncoder().encode(JSON.stringify(sample));
    const change = fc.record({
      at: fc.nat(intact.length),
      lost: fc.nat(8),
      added: fc.uint8Array({ maxLength: 4 }),
    });
    fc.assert(
      fc.property(fc.array(change, { minLength: 1, maxLength: 4 }), (changes) => {
        const bytes = [...intact];
        for (const { at, lost, added } of changes) bytes.splice(at, lost, ...added);
        expectSound(read(Uint8Array.from(bytes)));
      }),
      { numRuns: times(150, 500) },
    );
  });

  it.each([
    ['100 levels', 100, []],
    ['101 levels', 101, ['too-deep']],
    ['a hundred thousand levels', depth, ['too-deep']],
  ])('on a notification that is nested %s deep', (_title, levels, codes) => {
    // The notification and its product are two of the levels; brackets in a text do not count.
    const deep = `"[{\\"[":${'['.repeat(levels - 2)}1${']'.repeat(levels - 2)}`;
    const product = JSON.stringify({ ...sample.value }).replace('{', `{${deep},`);
    const body = `${JSON.stringify({ ...sample, value: undefined }).slice(0, -1)},"value":${product}}`;
    const { notifications, faults } = read(body);
    expect(faults.map(({ code }) => code)).toEqual(codes);
    expect(notifications).toHaveLength(codes.length === 0 ? 1 : 0);
  });

  it('on a megabyte of empty objects, and lists at most 50 faults', () => {
    const body = `[${'{},'.repeat(bodyBytesMax / 3 - 1)}{}]`;
    const { notifications, faults } = read(body);
    expect(notifications).toEqual([]);
    expect(faults).toHaveLength(50);
    expect(JSON.stringify(faults).length).toBeLessThan(10_000);
  });
});

const space = fc.stringMatching(/^[ \t\r\n]{0,5}$/);
const unknownFields = fc.dictionary(
  fc.string({ minLength: 1 }).filter((name) => !Object.hasOwn({ ...sample, Value: 0 }, name)),
  anyJson,
);

it('a notification has the same identity with any added fields, order and white space', () => {
  fc.assert(
    fc.property(
      unknownFields,
      fc.infiniteStream(fc.nat()),
      fc.nat(4),
      fc.tuple(space, space, fc.boolean()),
      (added, ranks, indent, [before, after, mark]) => {
        const entries = Object.entries({ ...added, ...sample })
          .map((entry) => ({ entry, rank: ranks.next().value }))
          .toSorted((a, b) => a.rank - b.rank)
          .map(({ entry }) => entry);
        const text = JSON.stringify(Object.fromEntries(entries), null, indent);
        const { drift, ...notification } = readOne(
          `${mark ? '\ufeff' : ''}${before}${text}${after}`,
        );
        expect(notification).toEqual(sampleRead);
        expect(drift.every((shape) => shape.startsWith('unknown-field:'))).toBe(true);
      },
    ),
  );
});
