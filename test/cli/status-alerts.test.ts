/** What lasting alerts say in a status: the watchdog has the last word on its own matters. */
import { describe, expect, it } from 'vitest';
import { evaluateStatus } from '../../src/cli/status/check-status.ts';
import { alertKinds } from '../../src/domain/alerts.ts';
import { lasting, judgedPart as of, wellFacts } from './status-facts.ts';

const gibibyte = 2 ** 30;
const nobody = { receiver: null };

describe('an alert that lasts', () => {
  it.each(alertKinds)(
    'of the kind %s makes its part not well, with its own words',
    async (kind) => {
      const parts = evaluateStatus(wellFacts({ alerts: [lasting(kind, 'x')] }));
      const bad = parts.filter(({ level }) => level === 'warning');
      expect(bad).toHaveLength(2);
      expect(bad).toContainEqual(
        expect.objectContaining({
          text: `The cause of ${kind}.`,
          nextStep: `What to do about ${kind}.`,
        }),
      );
      expect(bad.at(-1)).toMatchObject({ part: 'alerts', text: `1 last: ${kind} of x` });
    },
  );

  it('is told before milder ones of its part, and counted with them', async () => {
    const alerts = [
      ...[lasting('silence', 'alps'), lasting('not-running', 'sea-ice', 'critical')],
      lasting('silence', 'b'),
    ];
    expect(await of('subscriptions', { alerts })).toMatchObject({
      level: 'critical',
      text: 'The cause of not-running. (and 2 more)',
    });
    expect(await of('alerts', { alerts })).toMatchObject({ level: 'critical' });
  });

  it('gives way to what is worse now', async () => {
    const judged = await of('receiver', { ...nobody, alerts: [lasting('intake')] });
    expect(judged?.text).toMatch(/^No receiver runs/);
  });

  it('has the word where the judgement is of the same weight', async () => {
    const sinks = wellFacts().sinks.map((one) => ({ ...one, dead: 2 }));
    const judged = await of('sinks', { sinks, alerts: [lasting('sink-refused', 'orders')] });
    expect(judged?.text).toBe('The cause of sink-refused.');
  });

  it('keeps its part from being well for as long as the watchdog does', async () => {
    const room = { totalBytes: 80 * gibibyte, reserveBytes: 2 ** 28 };
    const disk = { ...room, freeBytes: 5.5 * gibibyte };
    expect(await of('disk', { disk })).toMatchObject({ level: 'well' });
    expect(await of('disk', { disk, alerts: [lasting('disk')] })).toMatchObject({
      level: 'warning',
    });
  });
});
