/** `earshot doctor` with pull subscriptions: no endpoint, and the queue of each subscription. */
import { describe, expect, it } from 'vitest';
import { expectEnd } from '../../helpers/fake-io.ts';
import { openPullAccount } from '../pull/pull-account.ts';
import { account } from '../subscriptions/account-context.ts';
import type { PrintedFinding } from './context.ts';

type PullAccount = Awaited<ReturnType<typeof openPullAccount>>;

/** Opens an account with a registered pull subscription. */
async function openRegistered() {
  const context = await openPullAccount();
  await context.register();
  return context;
}

/** Runs the doctor; returns its exit code and findings. */
async function doctor({ run, env }: PullAccount, changed: Record<string, string> = {}) {
  const { code, out } = await run('doctor --json', { env: { ...env, ...changed } });
  const findings: PrintedFinding[] = JSON.parse(out);
  const finding = (check: string) => findings.find((one) => one.check === check);
  return { code, findings, finding };
}

const endpointChecks = /^(public URL|public address|certificate)/;

describe('the doctor with pull subscriptions only', () => {
  it('skips the endpoint with the reason, and finds no problem', async () => {
    const { code, findings, finding } = await doctor(await openRegistered());
    expect(code).toBe(0);
    expect(findings.filter(({ level }) => level === 'critical')).toEqual([]);
    expect(finding('endpoint')).toMatchObject({
      level: 'unknown',
      text: expect.stringContaining('no public listener is configured'),
    });
    expect(findings.filter(({ check }) => endpointChecks.test(check))).toEqual([]);
    expect(finding('subscription default')?.level).toBe('ok');
    expect(JSON.stringify(findings)).not.toContain(account.password);
  });

  it('reads the queue, removes nothing from it, and warns of entries older than a day', async () => {
    const context = await openRegistered();
    await context.sandbox.publishNow(3);
    expect((await doctor(context)).finding('queue default')).toMatchObject({
      ...{ level: 'ok', text: 'The queue can be read.', nextStep: null },
    });
    expect(context.sandbox.queues()[0]).toMatchObject({ length: 3, acknowledged: 0 });
    context.passDays(2.5);
    const { code, finding } = await doctor(context);
    expect(code).toBe(0);
    expect(finding('queue default')).toMatchObject({
      level: 'warning',
      text: 'The oldest unread entry is 60 hours old.',
      nextStep: expect.stringMatching(/`earshot start`.*three days/),
    });
  });

  it('skips the queue of a paused subscription that the catalogue refuses to read', async () => {
    const context = await openRegistered();
    await expectEnd(context.run('subscriptions pause default'), 0);
    context.sandbox.service.change({ readOfPaused: 'refuse' });
    expect((await doctor(context)).finding('queue default')?.level).toBe('unknown');
  });

  it('fails when the queue cannot be read, with the reason', async () => {
    const context = await openRegistered();
    context.sandbox.service.change({ nextQueueCalls: { serverError: 1_000 } });
    const { code, finding } = await doctor(context);
    expect(code).toBe(1);
    expect(finding('queue default')).toMatchObject({
      level: 'critical',
      text: expect.stringContaining('could not read the queue of subscription'),
      nextStep: expect.stringMatching(/./),
    });
  });
});
