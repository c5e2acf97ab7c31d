/**
 * docs/operations.md shows the output of the commands on completeness, in this order, for two days of a catalogue and a
 * log that lacks some of its events. To update it: `npx vitest run test/docs/completeness.slow.test.ts --update`.
 */
import { expect, it, onTestFinished } from 'vitest';
import { catchUpIndex } from '../../src/features/products/index-file/index-maintenance.ts';
import { startSandbox } from '../../src/sandbox/sandbox.ts';
import { registration } from '../features/alerts/watch-context.ts';
import { productsIn, pushOf } from '../features/coverage/reconcile-context.ts';
import { nowUs } from '../helpers/fake-io.ts';
import { createContext, withStore } from '../helpers/filled-store.ts';
import { asOnPages, readPage, sessionsOf } from './console-sessions.ts';

const minuteUs = 60_000_000;
const hourUs = 60 * minuteUs;
/** Nothing is received from 2026-05-01T20:00Z until five hours later. */
const outage = { fromUs: nowUs - 16 * hourUs, toUs: nowUs - 11 * hourUs };

/**
 * Fills the 48 hours before the commands' time: 500 products a day. The subscription `s2` selects
 * Sentinel-2. A push arrives 46 s after a product's publication. Every 120th push is lost, and all
 * during the outage; every 150th is two hours late.
 */
async function openCompletenessContext() {
  const sandbox = await startSandbox({
    now: () => nowUs / 1_000,
    seed: 7,
    past: { durationMs: 48 * 3_600_000, productsPerDay: 500 },
  });
  onTestFinished(() => sandbox.close());
  const context = createContext();
  const filter = "Collection/Name eq 'SENTINEL-2'";
  const records = await productsIn(sandbox, { $filter: filter });
  await withStore(context.dataDir, async (store) => {
    const activityAtUs = nowUs - 48 * hourUs;
    const times = { activityAtUs, notifiedAtUs: activityAtUs, runningSeenAtUs: activityAtUs };
    await store.administration.commit({ save: registration({ name: 's2', filter, ...times }) });
    for (const [i, record] of records.entries()) {
      const publishedUs = Date.parse(record.PublicationDate) * 1_000;
      const receivedAtUs = publishedUs + (i % 150 === 100 ? 2 * hourUs : 46_400_000);
      const isAway = receivedAtUs >= outage.fromUs && receivedAtUs < outage.toUs;
      if (isAway || i % 120 === 60 || receivedAtUs >= nowUs) continue;
      await store.accept(pushOf('s2', record, receivedAtUs));
    }
  });
  await catchUpIndex({ dataDir: context.dataDir });
  const env = {
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_RECONCILE_REQUESTS_PER_MINUTE: '6000',
    ...asOnPages,
  };
  return { earshot: (argv: readonly string[]) => context.earshot(argv, { env }) };
}

it('docs/operations.md shows the outputs of the commands, which recover everything', async () => {
  let page = readPage('operations.md');
  const sessions = sessionsOf(page);
  expect(sessions.length).toBe(4);
  const { earshot } = await openCompletenessContext();
  for (const { line, text, command } of sessions) {
    const { out, err } = await earshot(command);
    page = page.replace(text, () => `${line}\n${out}${err}`);
  }
  const { out } = await earshot(['coverage', '--since', '48h']);
  expect(out).toMatch(/^s2 +620 +541 +3 +76 +0 +48 of 48 h +100 %$/m);
  await expect(page).toMatchFileSnapshot('../../docs/operations.md');
});
