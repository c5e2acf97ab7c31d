/** The simulated past day of the demo. */

import { expect, it } from 'vitest';
import { readSubscriptionCoverage } from '../../../src/features/coverage/coverage.ts';
import {
  pastStartUs,
  simulatedPast,
  storePast,
  withStore,
} from '../../../src/features/demo/past.ts';
import { createRandom } from '../../../src/sandbox/clock.ts';
import { testIo } from '../../helpers/fake-io.ts';
import {
  compareAutomatically,
  hourUs,
  nowUs,
  openReconcileContext,
  type ReconcileContext,
} from '../coverage/reconcile-context.ts';

const common = { type: 'push', filter: '', status: 'running' } as const;
const subscriptions = [
  { ...common, name: 'changes', events: ['created', 'modified'] },
  { ...common, name: 'deletions', events: ['deleted'] },
] as const;

const sinceUs = pastStartUs(nowUs);
const missingHourUs = sinceUs + 19 * hourUs;

async function openPast() {
  const past = simulatedPast({ nowUs: () => nowUs }, 300);
  const context = await openReconcileContext({ past });
  const { dataDir, sandbox } = context;
  const env = { EARSHOT_DATA_DIR: dataDir, EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl };
  const io = testIo({ env, nowUs: () => nowUs, random: createRandom(1).next });
  const stored = await withStore(io, (store) => storePast(io, store, subscriptions));
  return { ...context, stored };
}

const reported = ({ withStore }: Pick<ReconcileContext, 'withStore'>) =>
  withStore(({ completeness }) =>
    readSubscriptionCoverage(completeness, { sinceUs, untilUs: nowUs, nowUs }),
  );

it('one hour of the past is missing until the receiver compares, and then coverage is complete', async () => {
  const context = await openPast();
  const { missing } = context.stored;
  expect(missing).toBeGreaterThan(5);
  const before = await reported(context);
  expect(before.map(({ state }) => state)).toEqual(['not-compared', 'not-compared']);
  const checked = await context.run('reconcile --check --since 25h');
  expect(checked).toMatchObject({ code: 3 });
  expect(checked.err).toContain(`${missing} events are missing.`);

  expect(await compareAutomatically(context)).toBe('all');
  const after = await reported(context);
  expect(after.map(({ complete, unknownHours }) => [complete, unknownHours])).toEqual([
    [1, 0],
    [1, 0],
  ]);
  const found = after.flatMap(({ hours }) => hours.filter((hour) => hour.recovered > 0));
  expect(new Set(found.map((hour) => hour.hourUs))).toEqual(new Set([missingHourUs]));
  expect(found.reduce((sum, hour) => sum + hour.recovered, 0)).toBe(missing);
});
