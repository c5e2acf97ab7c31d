/** Identity of notifications: the rule for duplicates. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Notification } from '../../../src/core/terms/notification.ts';
import type { CatalogueEvent } from '../../../src/core/terms/subscription.ts';
import { identityOf, recoveredIdentityOf } from '../../../src/store/log/dedupe-key.ts';
import { sampleRead } from './sample-notification.ts';

const unnumbered: Notification = { ...sampleRead, ackId: null };

function identity(
  changes: Partial<Notification> = {},
  {
    subscription = 'sea-ice',
    digest = 'd1',
  }: { subscription?: string | null; digest?: string } = {},
): string {
  return identityOf({ ...unnumbered, ...changes }, { subscription, bodyDigest: () => digest });
}

describe('two notifications with an AckId', () => {
  it('are the same when it is the same, whatever else differs', () => {
    const other = { ackId: 'a', productId: 'p2', event: 'deleted', notificationDateUs: null };
    expect(identity({ ackId: 'a' })).toBe(identity(other, { subscription: null, digest: 'd2' }));
  });

  it('differ when it differs, even only in blanks', () => {
    expect(identity({ ackId: 'a' })).not.toBe(identity({ ackId: 'a ' }));
    expect(identity({ ackId: 'a' })).not.toBe(identity({ ackId: 'A' }));
  });
});

describe('two notifications without an AckId', () => {
  it('are the same when subscription, event, product and date are the same', () => {
    expect(identity({ productName: 'x', index: 3 }, { digest: 'd2' })).toBe(identity());
  });

  it.each<Partial<Notification>>([
    { subscriptionId: 'another' },
    { event: 'modified' },
    { productId: 'another' },
    { notificationDateUs: sampleRead.notificationDateUs + 1 },
    { notificationDateUs: null },
    { ackId: 'an AckId after all' },
  ])('differ with %o', (change) => {
    expect(identity(change)).not.toBe(identity());
  });

  it('and without a subscription id are distinguished by the name in the path', () => {
    const nameless = { subscriptionId: null };
    expect(identity(nameless, { subscription: 'a' })).toBe(
      identity(nameless, { subscription: 'a' }),
    );
    expect(identity(nameless, { subscription: 'a' })).not.toBe(
      identity(nameless, { subscription: 'b' }),
    );
    expect(identity(nameless, { subscription: null })).not.toBe(
      identity(nameless, { subscription: 'b' }),
    );
  });

  it('and without a date are distinguished by their bodies, and by their positions in them', () => {
    const undated = { notificationDateUs: null };
    expect(identity(undated)).toBe(identity(undated));
    expect(identity(undated, { digest: 'd2' })).not.toBe(identity(undated));
    expect(identity({ ...undated, index: 1 })).not.toBe(identity(undated));
  });

  it('never share an identity with one that has an AckId', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), fc.string(), (ackId, productId, event) => {
        expect(identity({ ackId })).not.toBe(identity({ productId, event }));
      }),
    );
  });

  it('are not confused when text moves from one field to the next', () => {
    fc.assert(
      fc.property(
        fc.tuple(fc.string(), fc.string()),
        fc.tuple(fc.string(), fc.string()),
        ([event, productId], [otherEvent, otherProductId]) => {
          const same = event === otherEvent && productId === otherProductId;
          const other = { event: otherEvent, productId: otherProductId };
          expect(identity({ event, productId }) === identity(other)).toBe(same);
        },
      ),
    );
  });
});

describe('two recovered events', () => {
  const recovered: CatalogueEvent = {
    subscription: 'sea-ice',
    event: 'created',
    productId: '0F2B-a',
    eventUs: 1_777_645_200_123_456,
  };

  it('are the same when subscription, event, product (in any case) and date are the same', () => {
    expect(recoveredIdentityOf({ ...recovered, productId: '0f2b-A' })).toBe(
      recoveredIdentityOf(recovered),
    );
  });

  it.each<Partial<CatalogueEvent>>([
    { subscription: 'another' },
    { event: 'modified' },
    { productId: 'another' },
    { eventUs: recovered.eventUs + 1 },
  ])('differ with %o', (change) => {
    expect(recoveredIdentityOf({ ...recovered, ...change })).not.toBe(
      recoveredIdentityOf(recovered),
    );
  });

  it('sort by date after the line break, and never equal a notification', () => {
    const identities = [recovered, { ...recovered, eventUs: recovered.eventUs + 1 }].map((one) =>
      recoveredIdentityOf(one),
    );
    expect(identities.toSorted()).toEqual(identities);
    expect(identities[0]).toMatch(/^reconcile\n1777645200123456 /);
    expect(identity({ productId: recovered.productId })).not.toMatch(/^reconcile\n/);
  });
});
