/** Registration with a real store: the endpoint is looked at, the plan applied, and the account verified. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { carryOut, type PlanOptions, preparePlan } from '../../../src/admin/carry-out-plan.ts';
import type { ProbeReport } from '../../../src/admin/endpoint-probe.ts';
import type { AccountContext } from '../../../src/admin/plan-context.ts';
import { openSqliteStore } from '../../store/sqlite-store.ts';
import {
  credentials,
  held,
  otherFilter,
  publicUrl,
  registrationOf,
  stranger,
  wanted,
} from './plan-samples.ts';
import { openPlanWorld, type Situation } from './plan-world.ts';

const well: ProbeReport = { fault: null, status: 200, tls: null };
const endpoint = `${publicUrl}/notifications/alps`;

/** A world with a store on disk; `answers` is what the probe finds. */
async function openWorld(
  situation: Situation = {},
  answers: (url: string) => ProbeReport = () => well,
) {
  const { store, dataDir, reopen } = await openSqliteStore();
  const planned = await openPlanWorld(situation, store.administration);
  const probed: unknown[] = [];
  const world: AccountContext = {
    ...planned.world(),
    probe: async (url, given) => {
      probed.push({ url, given, writes: planned.catalogue.writes.length });
      return answers(url);
    },
  };
  const register = async (options: PlanOptions, how: { skipProbe?: boolean } = {}) => {
    const steps: string[] = [];
    const prepared = await preparePlan(options, world);
    const onStep = (step: { kind: string }) => void steps.push(step.kind);
    await carryOut(prepared, world, { actor: 'register', onStep, ...how });
    return steps;
  };
  return { ...planned, world, probed, register, dataDir, reopen };
}

describe('a registration', () => {
  it('from nothing, and again, and with another filter, ends as wanted each time', async () => {
    const { register, catalogue, administration } = await openWorld({ held: [stranger()] });
    expect(await register({ desired: [wanted()] })).toEqual(['create']);
    expect(await register({ desired: [wanted()] })).toEqual([]);
    const changed = wanted({ filter: otherFilter, events: ['created', 'modified'] });
    expect(await register({ desired: [changed] })).toEqual(['replace']);
    expect(await register({ desired: [changed] })).toEqual([]);
    const [others, ours] = catalogue.held();
    expect(others).toEqual(stranger());
    expect(ours).toMatchObject({ filter: otherFilter, status: 'running', endpoint, credentials });
    expect(await administration.gaps()).toMatchObject([{ filter: otherFilter }]);
    const history = await administration.history({ limit: 10 });
    expect(history.map(({ action, actor }) => `${action} ${actor}`)).toEqual([
      'replaced register',
      'created register',
    ]);
  });

  it('is remembered by the next program that opens the store', async () => {
    const { register, reopen, catalogue } = await openWorld();
    await register({ desired: [wanted()] });
    const { administration } = await reopen();
    const [made] = catalogue.held();
    expect(await administration.registrations()).toMatchObject([
      { ...wanted(), subscriptionId: made?.id, unfinished: false },
    ]);
    expect(await administration.history({ limit: 10 })).toHaveLength(1);
  });

  it('leaves no password in the data directory', async () => {
    const { register, dataDir } = await openWorld();
    await register({ desired: [wanted()] });
    const files = readdirSync(dataDir);
    expect(files).not.toEqual([]);
    const encoded = Buffer.from(`${credentials.username}:${credentials.password}`);
    for (const file of files) {
      const text = readFileSync(join(dataDir, file), 'latin1');
      expect(text.includes(credentials.password), file).toBe(false);
      expect(text.includes(encoded.toString('base64')), file).toBe(false);
    }
  });
});

describe('the endpoint', () => {
  const fault = { stage: 'answer', message: 'it answers 401.', advice: 'Restart it.' } as const;
  const unwell = (): ProbeReport => ({ fault, status: 401, tls: null });

  it('is asked for with the credentials before anything is created', async () => {
    const { register, probed } = await openWorld();
    await register({ desired: [wanted()] });
    expect(probed).toEqual([{ url: endpoint, given: credentials, writes: 0 }]);
  });

  it('that does not answer well stops everything, with the reason and the advice', async () => {
    const baltic = wanted({ name: 'baltic', status: 'paused' });
    const situation = {
      held: [held({ name: 'baltic' })],
      registrations: [registrationOf({ name: 'baltic' })],
    };
    const { register, catalogue, administration } = await openWorld(situation, unwell);
    const refused = register({ desired: [baltic, wanted()] });
    await expect(refused).rejects.toMatchObject({ code: 'unavailable' });
    await expect(refused).rejects.toThrow(`${endpoint} does not answer`);
    await expect(refused).rejects.toThrow('it answers 401.');
    await expect(refused).rejects.toMatchObject({
      details: [fault.advice, expect.stringContaining('--skip-probe')],
    });
    expect(catalogue.writes).toEqual([]);
    expect(await administration.registrations()).toEqual(situation.registrations);
    expect(await administration.history({ limit: 10 })).toEqual([]);
  });

  it('is not asked for when the user says so', async () => {
    const { register, probed, catalogue } = await openWorld({}, unwell);
    await register({ desired: [wanted()] }, { skipProbe: true });
    expect(probed).toEqual([]);
    expect(catalogue.held()).toHaveLength(1);
  });

  it.each([
    ['a replacement', held({ filter: otherFilter }), 1],
    ['other credentials', held({ id: 'id-by-hand' }), 1],
    ['another endpoint', held({ endpoint: 'https://elsewhere.example.org/' }), 1],
    ['a resumption', held({ status: 'paused' }), 0],
    ['nothing to do', held(), 0],
  ])('is asked for as often as needed for %s', async (_, there, times) => {
    const situation = { held: [there], registrations: [registrationOf()] };
    const { register, probed } = await openWorld(situation);
    await register({ desired: [wanted()] });
    expect(probed).toHaveLength(times);
  });
});

describe('a plan beyond the limits', () => {
  it('is refused with what has no room and what to do, before anything is touched', async () => {
    const account = [stranger(), stranger({ id: 'id-another' })];
    const { register, catalogue, probed } = await openWorld({ held: account });
    const refused = register({ desired: [wanted()] });
    await expect(refused).rejects.toMatchObject({
      code: 'conflict',
      details: [expect.stringContaining('number 3'), expect.stringContaining('paused')],
    });
    expect(probed).toEqual([]);
    expect(catalogue.writes).toEqual([]);
  });
});

describe('the account listed again', () => {
  it('must be as planned, though every step was answered with success', async () => {
    const { register, catalogue } = await openWorld({
      held: [held({ status: 'paused' })],
      registrations: [registrationOf()],
    });
    // As the service may do, which does not say what a resumption beyond its limit answers.
    catalogue.client.edit = async () => undefined;
    const refused = register({ desired: [wanted()] });
    await expect(refused).rejects.toMatchObject({
      code: 'conflict',
      details: [expect.stringContaining('Not as wanted: alps')],
    });
  });
});
