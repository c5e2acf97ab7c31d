/** Draws cases: the same seed and number give the same one. */
import { hash } from 'node:crypto';
import { createRandom } from '../../src/sandbox/random.ts';
import type { Case, CaseMaker, CaseWorld } from './case.ts';
import { bodyMakers, largeBodyMakers } from './cases/bodies.ts';
import { framingMakers } from './cases/framing.ts';
import { headerMakers } from './cases/headers.ts';
import { loginMakers } from './cases/logins.ts';
import { requestLineMakers } from './cases/request-lines.ts';

type Weighted<Item> = readonly (readonly [weight: number, Item])[];

const families: Weighted<Weighted<CaseMaker>> = [
  [22, requestLineMakers],
  [22, framingMakers],
  [16, headerMakers],
  [20, loginMakers],
  [19, bodyMakers],
  [1, largeBodyMakers],
];

/** The makers of the public listener's cases. */
export const publicMakers: Weighted<CaseMaker> = families.flatMap(([share, makers]) => {
  const total = makers.reduce((sum, [weight]) => sum + weight, 0);
  return makers.map(([weight, make]) => [(share * weight) / total, make] as const);
});

/** Returns what draws a case, each maker as often as its weight says. */
export function drawFrom(makers: Weighted<CaseMaker>): (world: CaseWorld) => Case {
  const total = makers.reduce((sum, [weight]) => sum + weight, 0);
  return (world) => {
    let left = world.random.between(0, total);
    const drawn = makers.find(([weight]) => {
      left -= weight;
      return left < 0;
    });
    if (drawn === undefined) throw new Error('nothing to draw from');
    return drawn[1](world);
  };
}

/** What the maker of case number `index` draws on. */
export function caseWorld(seed: number, index: number, right: string): CaseWorld {
  // Neighbouring numbers would begin alike.
  const random = createRandom(hash('sha256', `${seed}/${index}`, 'buffer').readInt32LE());
  return {
    random,
    right,
    notification: (who, extra = {}) => {
      const productId = random.uuid();
      return JSON.stringify({
        '@odata.context': '$metadata#Notification/$entity',
        SubscriptionEvent: 'created',
        ProductId: productId,
        ProductName: `S2A_${random.hex(20)}.SAFE`,
        SubscriptionId: 'c06f2e68-fb9e-4e22-ac57-49566e8621fb',
        NotificationDate: '2026-05-01T10:59:08.698Z',
        AckId: `${who}-${index}-${random.hex(16)}`,
        value: { Id: productId, Name: 'fuzz' },
        ...extra,
      });
    },
  };
}
