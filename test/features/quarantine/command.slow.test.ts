/** `earshot quarantine`: listing, showing, retrying and dropping quarantined bodies. */
import Sqlite from 'better-sqlite3';
import { describe, expect, test } from 'vitest';
import { expectEnd, printed, printedJson } from '../../helpers/fake-io.ts';
import { createContext, delivery, filledContext, rawDelivery } from '../../helpers/filled-store.ts';
import { replaceBody } from '../../helpers/replace-body.ts';

const fields = [
  ...['id', 'receivedAt', 'subscription', 'source', 'reason', 'faults', 'bodyBytes', 'releasedAt'],
];
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
    const [title, ...lines] = out.trimEnd().split('\n');
    expect(title).toMatch(/^id +received \(UTC\) +path +bytes +source +reason$/);
    expect(lines.map((line) => line.trim().split(/ {2,}/)[0])).toEqual(['3', '2', '1']);
    expect(lines[0]).toMatch(/2026-05-02 11:00 .*sea-ice.*ProductId and value\.Id are both/);
  });

  it('prints the documented fields as JSON', async ({ context }) => {
    const rows = await listed(context, '--limit', '2');
    expect(rows.map(({ id }: { id: number }) => id)).toEqual([3, 2]);
    for (const row of rows) expect(Object.keys(row)).toEqual(fields);
    expect(rows[1]).toEqual({
      id: 2,
      receivedAt: '2026-05-02T11:00:00.000000Z',
      subscription: 'sea-ice',
      reason: 'not-an-object',
      faults: [{ code: 'not-an-object', index: 1, message: expect.stringContaining('object') }],
      source: 'push',
      bodyBytes: 66,
      releasedAt: null,
    });
  });

  it('reports an empty quarantine', async () => {
    const context = await filledContext([delivery()]);
    expect(await context.earshot('quarantine list')).toMatchObject({
      code: 0,
      out: '',
      err: expect.stringMatching(/^The quarantine is empty\./),
    });
    expect((await context.earshot('quarantine list --json')).out).toBe('[]\n');
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

  it('prints everything as JSON, the body as base64', async ({ context }) => {
    const entry = await printedJson(context.earshot('quarantine show 1 --json'));
    expect(Object.keys(entry)).toEqual([...fields, 'headers', 'bodyBase64']);
    expect(entry.headers).toEqual(['Content-Type', 'text/html', 'X-A', '1']);
    expect(Buffer.from(entry.bodyBase64, 'base64').toString()).toMatch(/^<html>.*\n.*line {2}$/);
  });

  it('of an unknown id exits 2 and names the list', async ({ context }) => {
    const { code, out, err } = await context.earshot('quarantine show 99');
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toMatch(/^earshot: There is no body 99 .*quarantine list/);
  });
});

describe('quarantine retry', () => {
  it('stores a body that is readable now, and releases it', async ({ context }) => {
    const body = '{"SubscriptionEvent":"created","ProductId":"late","AckId":"late"}';
    replaceQuarantinedBody(context.dataDir, 3, body);
    expect(await context.earshot('quarantine retry 3')).toMatchObject({
      code: 0,
      out: '3  stored 1\n',
      err: '',
    });
    const [row] = await context.rows('query --ack-id late');
    expect(row).toMatchObject({ receivedAt: '2026-05-02T11:00:00.000000Z', productId: 'late' });
    expect((await context.earshot('query --ack-id late --body')).out).toBe(body);
    expect(await quarantinedIds(context)).toEqual([2, 1]);
    expect((await listed(context, '--released'))[0]).toMatchObject({
      id: 3,
      releasedAt: '2026-05-02T12:00:00.000000Z',
    });
  });

  it('--all skips released entries', async () => {
    const context = await filledContext([rawDelivery('{}')]);
    replaceQuarantinedBody(
      context.dataDir,
      1,
      '{"SubscriptionEvent":"created","ProductId":"late"}',
    );
    const argv = ['quarantine', 'retry', '--all'];
    expect(await context.earshot(argv)).toMatchObject({ code: 0, out: '1  stored 1\n' });
    expect(await context.earshot(argv)).toMatchObject({ code: 0, out: '' });
  });

  it('keeps an unreadable body, and exits 1', async ({ context }) => {
    const { out, err } = await expectEnd(context.earshot('quarantine retry 3'), 1);
    expect(out).toMatch(/^3 {2}still quarantined: ProductId and value/);
    expect(err).toBe('earshot: 1 of 1 body still invalid and in the quarantine.\n');
  });

  it('--all retries every entry, and reports each result', async ({ context }) => {
    replaceQuarantinedBody(
      context.dataDir,
      2,
      '{"SubscriptionEvent":"created","ProductId":"p","AckId":"good"}',
    );
    const { out, err } = await expectEnd(context.earshot('quarantine retry --all'), 1);
    expect(out).toMatch(/^3 {2}still quarantined.*\n2 {2}duplicate\n1 {2}still quarantined.*\n$/);
    expect(err).toContain('2 of 3 bodies still invalid');
    expect(await quarantinedIds(context)).toEqual([3, 1]);
  });

  it('--all succeeds with an empty quarantine', async () => {
    const context = await filledContext([delivery()]);
    expect(await context.earshot('quarantine retry --all')).toMatchObject({
      code: 0,
      out: '',
    });
  });

  it.each([[[]], [['1', '--all']]])('with %j is a usage error: one id or --all', async (words) => {
    const context = await createQuarantineContext();
    const { code, out, err } = await context.earshot(['quarantine', 'retry', ...words]);
    expect({ code, out }).toEqual({ code: 2, out: '' });
    expect(err).toContain('Use one id or --all');
  });

  it('of an unknown id exits 2 and names the list', async ({ context }) => {
    const { err } = await expectEnd(context.earshot('quarantine retry 99'), 2);
    expect(err).toMatch(/^earshot: There is no body 99 .*quarantine list/);
  });

  it('of a reused AckId leaves at most one entry, however often it runs', async () => {
    const context = await filledContext([delivery(), delivery({ ProductId: 'another' })]);
    for (let i = 0; i < 2; i += 1) await context.earshot('quarantine retry --all');
    expect(await listed(context, '--released')).toHaveLength(1);
  });
});

describe('quarantine drop', () => {
  it('shows the entries, and removes nothing without an answer', async ({ context }) => {
    const { err } = await expectEnd(context.earshot('quarantine drop 2'), 2, / 2 .*sea-ice/);
    expect(err).toContain('Confirmation needs a terminal');
    expect(await quarantinedIds(context)).toEqual([3, 2, 1]);
  });

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
    expect((await context.earshot('quarantine drop 1 9 --yes')).code).toBe(2);
    expect((await context.earshot('quarantine drop')).code).toBe(2);
    expect((await context.earshot('quarantine drop 1 --all')).code).toBe(2);
    expect(await quarantinedIds(context)).toEqual([3, 2, 1]);
  });
});
