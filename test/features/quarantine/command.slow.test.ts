/** `earshot quarantine`: listing, showing, retrying and dropping quarantined bodies. */
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { expectEnd, expectRefusal, printed, printedJson } from '../../helpers/fake-io.ts';
import { createContext, delivery, filledContext, rawDelivery } from '../../helpers/filled-store.ts';
import { replaceBody } from '../../helpers/replace-body.ts';

const fields = 'id receivedAt subscription source reason faults bodyBytes'.split(' ');
const headers = ['Content-Type', 'text/html', 'Authorization', 'Basic c2VjcmV0', 'X-A', '1'];

/** Three quarantined bodies: invalid JSON, an array with an invalid item, no product. */
async function createQuarantineContext() {
  return filledContext([
    delivery(),
    rawDelivery('<html>\u001b[2Jé</html>\nsecond line  ', { headers, subscription: null }),
    rawDelivery('[{"SubscriptionEvent":"created","ProductId":"p","AckId":"good"},7]'),
    rawDelivery('{"SubscriptionEvent":"created"}'),
  ]);
}

const it = test.extend('context', () => createQuarantineContext());

/** Replaces a quarantined body by a readable one, as if a new version of the program could read it. */
function replaceQuarantinedBody(dataDir: string, id: number, body: string): void {
  const database = new Sqlite(`${dataDir}/earshot.db`);
  const bodyId = database.prepare('SELECT body_id FROM quarantine WHERE id = ?').pluck().get(id);
  database.close();
  replaceBody(dataDir, Number(bodyId), Buffer.from(body));
}

async function listed(context: ReturnType<typeof createContext>, ...flags: string[]) {
  return await printedJson(context.earshot(['quarantine', 'list', '--json', ...flags]));
}

const quarantinedIds = async (context: ReturnType<typeof createContext>): Promise<number[]> =>
  (await listed(context)).map(({ id }: { id: number }) => id);

describe('quarantine list', () => {
  it('lists quarantined bodies, newest first', async ({ context }) => {
    const out = await printed(context.earshot('quarantine list'));
    const [, ...lines] = out.trimEnd().split('\n');
    expect(lines.map((line) => line.trim().split(/ {2,}/)[0])).toEqual(['3', '2', '1']);
  });

  it('prints the documented fields as JSON', async ({ context }) => {
    const rows = await listed(context, '--limit', '2');
    for (const row of rows) expect(Object.keys(row)).toEqual(fields);
    expect(rows).toMatchObject([{ id: 3 }, { id: 2 }]);
    expect(rows[1]).toMatchObject({
      ...{ receivedAt: '2026-05-02T11:00:00.000000Z', subscription: 'sea-ice', source: 'push' },
      ...{ reason: 'not-an-object', bodyBytes: 66 },
      faults: [{ code: 'not-an-object', index: 1, message: expect.stringContaining('object') }],
    });
  });
});

describe('quarantine show', () => {
  it('shows reason, headers without credentials, and the body, safe for a terminal', async () => {
    const context = await createQuarantineContext();
    const { out } = await expectEnd(context.earshot('quarantine show 1'), 0);
    expect(out).toMatch(/^reason +The body is not JSON/m);
    expect(out).toMatch(/^path +\/notifications$/m);
    expect(out).toMatch(/^ {2}Content-Type: text\/html\n {2}X-A: 1$/m);
    expect(out).toContain('<html>\\u001b[2Jé</html>\nsecond line  \n');
    for (const text of ['\u001b', 'Authorization', 'c2VjcmV0']) expect(out).not.toContain(text);
  });

  it('prints the body byte by byte', async () => {
    const context = createContext();
    const bytes = Buffer.from([0xff, 0x00, 0x1b, 0x20, 0x0d, 0x0a]);
    await context.fill([rawDelivery(bytes)]);
    const { outBytes } = await expectEnd(context.earshot('quarantine show 1 --body'), 0);
    expect(outBytes.equals(bytes)).toBe(true);
    // A terminal would act on some of them.
    const shown = await context.earshot('quarantine show 1 --body', { isTTY: true });
    expect(shown.out).toBe('\ufffd\\u0000\\u001b \\u000d\n');
  });
});

describe('quarantine retry', () => {
  it('stores a body that is readable now, and removes its entry', async ({ context }) => {
    const body = '{"SubscriptionEvent":"created","ProductId":"late","AckId":"late"}';
    replaceQuarantinedBody(context.dataDir, 3, body);
    expect(await printed(context.earshot('quarantine retry 3'))).toBe('3  stored 1\n');
    const [row] = await context.rows('query --ack-id late');
    expect(row).toMatchObject({ receivedAt: '2026-05-02T11:00:00.000000Z', productId: 'late' });
    expect((await context.earshot('query --ack-id late --body')).out).toBe(body);
    expect(await quarantinedIds(context)).toEqual([2, 1]);
  });

  it('keeps an unreadable body, and --all retries every entry', async ({
    context: { earshot, dataDir, ...context },
  }) => {
    const one = await expectEnd(earshot('quarantine retry 3'), 1, '1 of 1 body still invalid');
    expect(one.out).toMatch(/^3 {2}still quarantined: ProductId and value/);
    const body = '{"SubscriptionEvent":"created","ProductId":"p","AckId":"good"}';
    replaceQuarantinedBody(dataDir, 2, body);
    const { out } = await expectEnd(earshot('quarantine retry --all'), 1, '2 of 3 bodies still');
    expect(out).toMatch(/^3 {2}still quarantined.*\n2 {2}duplicate\n1 {2}still quarantined.*\n$/);
    await expectEnd(earshot('quarantine retry --all'), 1, '2 of 2 bodies still');
    expect(await quarantinedIds({ earshot, dataDir, ...context })).toEqual([3, 1]);
  });

  it('and show refuse an unknown id, and retry needs one id or --all', async ({
    context: { earshot },
  }) => {
    for (const command of ['show', 'retry']) {
      const reason = /^earshot: There is no body 99 .*quarantine list/;
      await expectRefusal(earshot(`quarantine ${command} 99`), reason);
    }
    for (const words of ['', ' 1 --all']) {
      await expectRefusal(earshot(`quarantine retry${words}`), 'Use one id or --all');
    }
  });
});

describe('quarantine drop', () => {
  it('removes entries by id, by age, or all, and keeps notifications of the same body', async () => {
    const context = await createQuarantineContext();
    expect((await context.earshot('quarantine drop 2 3 --yes')).code).toBe(0);
    expect(await quarantinedIds(context)).toEqual([1]);
    const old = await context.earshot('quarantine drop --older-than 2h --yes');
    expect(old).toMatchObject({ code: 0, err: expect.stringContaining('Nothing to drop.') });
    const { err } = await context.earshot('quarantine drop --older-than 30m --yes');
    expect(err).toContain('Dropped 1 body.');
    expect(await quarantinedIds(context)).toEqual([]);
    const body = await context.earshot('query --ack-id good --body');
    expect(JSON.parse(body.out)[0].AckId).toBe('good');
  });

  it('refuses an unknown entry, and a call with no selection or two of them', async ({
    context,
  }) => {
    for (const words of [' 1 9 --yes', '', ' 1 --all']) {
      await expectEnd(context.earshot(`quarantine drop${words}`), 2);
    }
    expect(await quarantinedIds(context)).toEqual([3, 2, 1]);
  });
});
