/** The truth that the sandbox tells of its events: what was owed, what arrived, what the lists still show. */
import { describe, expect, it } from 'vitest';
import { SubscriptionRefusal } from '../../src/sandbox/account.ts';
import { dayMs, send, startAccountWorld, startMs } from './account-world.ts';
import { startDeliveryWorld } from './delivery-world.ts';

const only = (filter: string) => ({ FilterParam: filter, SubscriptionEvent: ['created'] });
const radar = "Collection/Name eq 'SENTINEL-1'";

describe('the truth about an event', () => {
  it('is what became of it for each subscription that it was for, the paused ones too', async () => {
    const { sandbox, subscribe, edit, publishAll } = await startDeliveryWorld();
    const all = await subscribe('all');
    const some = await subscribe('some', only(radar));
    await publishAll(10);
    await edit(some, { Status: 'paused' });
    sandbox.faults.change({ lost: 1 });
    await publishAll(30);
    sandbox.faults.change({ lost: 0, answerLost: 1 });
    await publishAll(1);
    const events = [...sandbox.events()];
    const matching = new Set(
      [...sandbox.events({ filter: radar })].map(({ sequence }) => sequence),
    );
    expect(matching.size).toBeGreaterThan(2);
    const delivered = { outcome: 'delivered', received: true, reason: null };
    const lost = { outcome: 'lost', received: false, reason: expect.stringContaining('played') };
    const unseen = { outcome: 'lost', received: true, reason: expect.stringContaining('played') };
    const paused = { outcome: 'paused', received: false, reason: null };
    for (const { sequence, subscriptions } of events) {
      const [own, others] =
        sequence <= 10 ? [delivered, delivered] : [sequence <= 40 ? lost : unseen, paused];
      const expected = [
        { subscriptionId: all, ...own },
        ...(matching.has(sequence) ? [{ subscriptionId: some, ...others }] : []),
      ];
      expect(subscriptions).toEqual(expected);
    }
  });

  it('counts as paused what comes after sixty days without a notification', async () => {
    const { sandbox, subscribe, publishAll } = await startDeliveryWorld();
    const id = await subscribe('one');
    sandbox.clock.advance(61 * dayMs);
    await publishAll(1);
    expect([...sandbox.events()][0]?.subscriptions).toMatchObject([
      { subscriptionId: id, outcome: 'paused' },
    ]);
  });

  it('is the date of its list, and whether that shows it still', async () => {
    const { sandbox } = await startAccountWorld();
    await sandbox.publishNow(2);
    await sandbox.publishNow(3, 'modified');
    await sandbox.publishNow(1, 'deleted');
    const told = [...sandbox.events()].map(({ event, shown }) => [event, shown]);
    // The second product is the one that was left alone longest, and so the one deleted.
    expect(told).toEqual([
      ['created', true],
      ['created', false],
      ['modified', false],
      ['modified', false],
      ['modified', true],
      ['deleted', true],
    ]);
    const list = async (entity: string) =>
      (await send(`${sandbox.catalogueUrl}/odata/v1/${entity}`, {})).json.value[0];
    const shown = [...sandbox.events()].filter((event) => event.shown);
    const [product, deleted] = [await list('Products'), await list('DeletedProducts')];
    const dates = [product.PublicationDate, product.ModificationDate, deleted.DeletionDate];
    expect(shown.map(({ dateUs }) => Math.floor((dateUs ?? 0) / 1_000))).toEqual(
      dates.map((date) => Date.parse(date)),
    );
    expect(shown.map(({ productId }) => productId)).toEqual([product.Id, product.Id, deleted.Id]);
  });

  it('tells of late records when the lists show them, after their notification', async () => {
    const { sandbox, subscribe, publishAll, requests } = await startDeliveryWorld({
      lateShare: 1,
      lateMaxMs: 600_000,
    });
    await subscribe('one');
    await publishAll(20);
    expect(requests).toHaveLength(20);
    expect(sandbox.holdings().products).toBe(0);
    const late = [...sandbox.events()];
    expect(late.some(({ shown }) => shown)).toBe(false);
    const from = late.map(({ shownFrom }) => Date.parse(shownFrom)).toSorted((a, b) => a - b);
    expect(from[0]).toBeGreaterThan(startMs);
    sandbox.clock.advance((from[9] ?? 0) - startMs);
    const seen = from.filter((fromMs) => fromMs <= (from[9] ?? 0)).length;
    expect(sandbox.holdings().products).toBe(seen);
    sandbox.clock.advance(600_000);
    expect([...sandbox.events()].every(({ shown }) => shown)).toBe(true);
  });

  it('has corrected checksums as a second modification', async () => {
    const shares = { modifiedShare: 1, secondModifiedShare: 1 };
    const { sandbox, subscribe, requests } = await startDeliveryWorld(shares);
    await subscribe('one', { SubscriptionEvent: ['created', 'modified'] });
    await sandbox.pass({ durationMs: 60_000, products: 3 });
    await sandbox.pass({ durationMs: 60_000, products: 0, steps: 60 });
    await expect.poll(() => sandbox.totals().delivered).toBe(9);
    const bodies = requests.map(({ body }) => JSON.parse(body.toString()));
    const courses = Map.groupBy(bodies, ({ ProductId }) => ProductId);
    for (const course of courses.values()) {
      expect(course.map((one) => one.SubscriptionEvent)).toEqual([
        'created',
        'modified',
        'modified',
      ]);
      const [, first, second] = course.map(({ value }) => value);
      expect(second.Checksum).not.toEqual(first.Checksum);
      expect(second.ModificationDate > first.ModificationDate).toBe(true);
      expect(second.Attributes).toEqual(first.Attributes);
    }
  });
});

describe('the events', () => {
  it('of one product have dates that rise, however soon they follow each other', async () => {
    const { sandbox } = await startAccountWorld();
    await sandbox.publishNow(1);
    await sandbox.publishNow(30, 'modified');
    await sandbox.publishNow(1, 'deleted');
    const dates = [...sandbox.events()].map(({ dateUs }) => dateUs ?? 0);
    expect(dates).toHaveLength(32);
    expect(dates).toEqual([...new Set(dates)].toSorted((one, other) => one - other));
  });

  it('are read from the control port as lines, a page at a time', async () => {
    const { sandbox, control } = await startAccountWorld();
    await sandbox.publishNow(5);
    await sandbox.publishNow(2, 'deleted');
    const read = async (path: string) =>
      (await control('GET', path)).text
        .split('\n')
        .flatMap((line) => (line ? JSON.parse(line) : []));
    expect(await read('/events')).toEqual([...sandbox.events()]);
    const page = await read('/events?after=2&limit=2');
    expect(page.map(({ sequence }) => sequence)).toEqual([3, 4]);
    expect(await read('/events?event=deleted')).toHaveLength(2);
    const cause = encodeURIComponent("DeletionCause ne 'none'");
    expect(await read(`/events?event=deleted&filter=${cause}`)).toHaveLength(2);
    const wrong = await control('GET', '/events?filter=nonsense');
    expect([wrong.status, wrong.json.detail]).toEqual([400, expect.stringMatching(/^Invalid f/)]);
    expect(() => sandbox.events({ filter: 'nonsense' })).toThrow(SubscriptionRefusal);
    const passed = await control('POST', '/pass', { products: 3, durationMs: 3_600_000 });
    expect(passed.json).toMatchObject({ published: 3, offsetMs: 3_600_000 });
  });

  it('are forgotten beyond the bound, and keep their numbers', async () => {
    const { sandbox } = await startAccountWorld({ eventsMax: 10 });
    await sandbox.publishNow(25);
    const kept = [...sandbox.events()].map(({ sequence }) => sequence);
    expect(kept.length).toBeGreaterThanOrEqual(10);
    expect(kept.length).toBeLessThanOrEqual(11);
    expect(kept.at(-1)).toBe(25);
    expect([...sandbox.events({ after: 24 })]).toHaveLength(1);
  });
});
