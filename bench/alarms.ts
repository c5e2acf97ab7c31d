/** `npm run bench:alarms`: false alarms of the watchdog in simulated months, and its delay to detect real failures. */

import { playKind } from '../test/simulation/false-alarms.ts';
import { playLosses, usualLosses } from '../test/simulation/lost-pushes.ts';
import { subscriptionKinds } from '../test/simulation/subscription-kinds.ts';
import { renderTable, target } from './figures.ts';
import { defineBenchmark, integer } from './harness.ts';

export const benchmark = defineBenchmark({
  command: 'npm run bench:alarms --',
  about: `Simulates months of subscriptions with the watchdog's rules for silence and lost pushes, then stops
each subscription or loses pushes. The same arguments give the same figures.`,
  options: {
    subscriptions: integer('of each kind; a fifth of them for each usual loss', 100, 4),
    months: integer('months per subscription, from its creation', 6, 2),
  },
  async measure({ subscriptions, months }) {
    const kinds = subscriptionKinds.map((kind) => playKind(kind, subscriptions, months));
    const losses = subscriptionKinds.flatMap((kind) =>
      usualLosses.map((usual) => {
        const played = playLosses(kind, usual, Math.ceil(subscriptions / 5), months);
        return { ...played, name: `${kind.name}, ${usual.name}` };
      }),
    );
    return {
      setting: `${subscriptions} subscriptions of each kind, ${months} months`,
      figures: { kinds, losses },
      text: [
        renderTable(kinds, [
          ['silence', ({ name }) => name],
          ['false alarms', ({ falseAlarms }) => falseAlarms],
          ['detected after h', ({ detectedHoursMedian }) => detectedHoursMedian],
          ['95 % h', ({ detectedHours95 }) => detectedHours95],
        ]),
        renderTable(losses, [
          ['lost pushes', ({ name }) => name],
          ['false alarms', ({ falseAlarms }) => falseAlarms],
          ['30 % lost, h', ({ falls }) => falls[0]?.hoursMedian ?? null],
          ['all lost, h', ({ falls }) => falls[1]?.hoursMedian ?? null],
        ]),
      ],
      targets: kinds.map(({ name, falseAlarms }) =>
        target(`${name}: false alarms a month`, falseAlarms / subscriptions / months, {
          max: 0.05,
        }),
      ),
    };
  },
});
