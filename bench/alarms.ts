/** `npm run bench:alarms`: false alarms of the watchdog in simulated months, and its delay to detect real failures. */

import { playLosses, usualLosses } from '../test/simulation/lost-pushes.ts';
import { subscriptionKinds } from '../test/simulation/subscription-kinds.ts';
import { renderTable, target } from './figures.ts';
import { defineBenchmark, integer } from './harness.ts';

export const benchmark = defineBenchmark({
  command: 'npm run bench:alarms --',
  about: `Simulates months of subscriptions with the watchdog's rule for lost pushes, then loses pushes. The same arguments give the same figures.`,
  options: {
    subscriptions: integer('of each kind', 20, 1),
    months: integer('months per subscription, from its creation', 6, 2),
  },
  async measure({ subscriptions, months }) {
    const losses = subscriptionKinds.flatMap((kind) =>
      usualLosses.map((usual) => {
        const played = playLosses(kind, usual, subscriptions, months);
        return { ...played, name: `${kind.name}, ${usual.name}` };
      }),
    );
    return {
      setting: `${subscriptions} subscriptions of each kind, ${months} months`,
      figures: { losses },
      text: [
        renderTable(losses, [
          ['lost pushes', ({ name }) => name],
          ['false alarms', ({ falseAlarms }) => falseAlarms],
          ['30 % lost, h', ({ falls }) => falls[0]?.hoursMedian ?? null],
          ['all lost, h', ({ falls }) => falls[1]?.hoursMedian ?? null],
        ]),
      ],
      targets: losses.map(({ name, falseAlarms }) =>
        target(`${name}: false alarms a month`, falseAlarms / subscriptions / months, {
          max: 0.2,
        }),
      ),
    };
  },
});
