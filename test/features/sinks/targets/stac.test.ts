/** STAC APIs: items are created, replaced and deleted once, in order, and each repetition changes nothing. */
import { describe, expect, it } from 'vitest';
import { sinkKinds } from '../../../../src/features/sinks/registry.ts';
import { openSinkContext, openTestTarget } from '../sink-context.ts';
import { definition, stacTarget } from '../sink-definition.ts';
import { sinkDocument } from '../sink-items.ts';
import { startStacServer } from '../stac-server.ts';

const soon = () => AbortSignal.timeout(5_000);
const own = { format: 'stac', stacIds: 'earshot' } as const;
const catalogue = { format: 'stac', stacIds: 'catalogue' } as const;
const productName = 'S2A_MSIL2A_20260502T103021_N0511_R108_T31UFR_20260502T110008.SAFE';
const sceneId = productName.replace('.SAFE', '');
const scene = { ...sinkDocument, productId: 'p-1', productName, value: { Name: productName } };

describe('a STAC API', () => {
  it.each([404, 424])(
    'has the newest state of each product, whose collection is created first (status %i)',
    async (missingStatus) => {
      const server = await startStacServer({ missingStatus });
      const { accept, start, isDone, items } = await openSinkContext();
      const Attributes = [{ Name: 'productType', ValueType: 'String', Value: 'S2MSI2A' }];
      const value = { Name: productName, Attributes };
      await accept({ ProductId: 'p-1', value });
      await accept({ ProductId: 'p-1', value, SubscriptionEvent: 'modified' });
      await accept({ ProductId: 'p-2', value });
      // Deletions often lack the product type.
      await accept({ ProductId: 'p-2', SubscriptionEvent: 'deleted' });
      await accept({ ProductId: 'p-3', SubscriptionEvent: 'deleted' });
      start(definition(stacTarget(server.url), { message: own }));
      await expect.poll(() => isDone()).toBe(true);
      expect(await items('dead')).toEqual([]);
      expect(server.items().map(({ id }) => id)).toEqual(['p-1']);
      expect(server.collections()).toEqual(['SENTINEL-2.S2MSI2A']);
      const requests = (id: string) =>
        server.requests().filter((one) => one.includes(`/items/${id} `) && !one.startsWith('GET'));
      const items1 = `/collections/${server.collections()[0]}/items`;
      expect(requests('p-1')).toEqual([`PUT ${items1}/p-1 200`]);
      expect(requests('p-2')).toEqual([`DELETE ${items1}/p-2 204`]);
      expect(requests('p-3')).toEqual([]);
      // The API adds its own links.
      const rels = server.items()[0]?.links.map(({ rel }) => rel);
      expect(rels).toContain('via');
      expect(rels).not.toContain('self');
    },
  );

  it('keeps its item when a notification has no record, and refuses ids that would change the path', async () => {
    const server = await startStacServer();
    const { deliver } = openTestTarget(stacTarget(server.url), { message: own });
    await deliver(scene, soon());
    const before = server.items();
    const bare = { ...scene, event: 'modified', value: null };
    expect(await deliver(bare, soon())).toEqual({ kind: 'acknowledged' });
    expect(server.items()).toEqual(before);
    for (const productId of ['..', '.', '']) {
      for (const event of ['created', 'deleted']) {
        expect(await deliver({ ...scene, event, productId }, soon())).toMatchObject({
          kind: 'refused',
        });
      }
    }
    expect(server.items()).toEqual(before);
  });

  it('accepts a repetition of each state', async () => {
    const server = await startStacServer();
    const { deliver } = openTestTarget(stacTarget(server.url), { message: own });
    const events = ['created', 'created', 'modified', 'modified', 'deleted', 'deleted', 'created'];
    for (const event of events) {
      expect(await deliver({ ...scene, event }, soon())).toEqual({ kind: 'acknowledged' });
    }
    expect(server.items()).toHaveLength(1);
  });

  it('keeps an item that by now is that of another product with the same name', async () => {
    const server = await startStacServer();
    const { deliver } = openTestTarget(stacTarget(server.url), { message: catalogue });
    const [first, second] = [scene, { ...scene, id: 'n_2_b', productId: 'p-2' }];
    // The creation of the second product hangs, until the deletion of the first one has been started.
    let release = () => {};
    const blocked = new Promise<void>((resolve) => (release = resolve));
    expect(await deliver(first, soon())).toEqual({ kind: 'acknowledged' });
    server.change(async (request) => {
      if (request.startsWith('PUT')) await blocked;
      return undefined;
    });
    const both = [deliver(second, soon()), deliver({ ...first, event: 'deleted' }, soon())];
    release();
    expect(await Promise.all(both)).toEqual([{ kind: 'acknowledged' }, { kind: 'acknowledged' }]);
    expect(server.items()).toMatchObject([{ id: sceneId, collection: 'sentinel-2-l2a' }]);
    expect(JSON.stringify(server.items())).toContain('Products(p-2)');
    await deliver({ ...second, event: 'deleted' }, soon());
    expect(server.items()).toEqual([]);
  });

  it('refuses an item without a collection if none may be created, and shows its faults', async () => {
    const server = await startStacServer();
    const fixed = stacTarget(server.url, { createCollections: false });
    const { deliver } = openTestTarget(fixed, { message: catalogue });
    const answer = await deliver(scene, soon());
    expect(answer).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('sentinel-2-l2a'),
    });
    server.change(() => 503);
    expect(await deliver(scene, soon())).toMatchObject({ kind: 'unavailable' });
    expect(await deliver({ ...scene, event: 'deleted' }, soon())).toMatchObject({
      kind: 'unavailable',
    });
    server.change(() => 405);
    expect(await deliver(scene, soon())).toMatchObject({ kind: 'misconfigured' });
    // Only the items of this collection are concerned.
    const free = openTestTarget(stacTarget(server.url), { message: catalogue });
    server.change((request) => (request === 'POST /collections' ? 405 : undefined));
    expect(await free.deliver(scene, soon())).toMatchObject({ kind: 'refused' });
  });

  it('gets no item by a test delivery or the doctor, which check the login and the extension', async () => {
    const server = await startStacServer({ token: 'right', isPublic: true });
    const plain = await startStacServer({ conformsTo: [] });
    const right = stacTarget(server.url, { login: () => ({ authorization: 'Bearer right' }) });
    const targets = [right, stacTarget(server.url), stacTarget(plain.url)];
    const answers = targets.map((target) =>
      openTestTarget(target, { message: own }).deliver({ ...scene, test: true }, soon()),
    );
    const misconfigured = { kind: 'misconfigured' };
    expect(await Promise.all(answers)).toMatchObject([
      ...[{ kind: 'acknowledged' }, misconfigured, misconfigured],
    ]);
    const context = { sink: definition(right), findProgram: () => null, signal: soon() };
    const levels = targets.map((target) => sinkKinds.stac.check(target, context));
    expect(await Promise.all(levels)).toMatchObject([
      ...[{ level: 'ok' }, { level: 'critical' }, { level: 'critical' }],
    ]);
    const changes = [...server.requests(), ...plain.requests()].filter(
      (one) => !one.startsWith('GET'),
    );
    // Of an item that does not exist.
    const path = '/collections/earshot-test/items/earshot-test';
    const statuses = ['401', '401', '404', '404'];
    expect(changes.toSorted()).toEqual(statuses.map((status) => `DELETE ${path} ${status}`));
  });
});
