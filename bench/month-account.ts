/** The subscriptions of a simulated month, registered by our own command, and what they asked for over time. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { notificationDelayUs } from '../src/domain/coverage.ts';
import type { Asked } from './month-truth.ts';
import type { MonthWorld } from './month-world.ts';

/** Subscriptions by name, as `earshot.config.ts` has them. */
export type Wanted = Record<string, Pick<Asked, 'events' | 'filter'>>;

export interface MonthAccount {
  /** Registers; `send` stands between the command and the network. Rejects when the command fails. */
  want(subscriptions: Wanted, send?: typeof fetch): Promise<void>;
  /** Oldest first. */
  asked(): readonly Asked[];
  /** The ids that a subscription has had at the catalogue. */
  idsOf(subscription: string): ReadonlySet<string>;
}

export function createMonthAccount({ folder, sandbox, command, nowMs }: MonthWorld): MonthAccount {
  const ids = new Map<string, Set<string>>();
  let asked: Asked[] = [];
  const noteIds = () => {
    for (const { endpoint, id } of sandbox.subscriptions()) {
      const name = endpoint?.split('/').at(-1) ?? '';
      ids.set(name, (ids.get(name) ?? new Set()).add(id));
    }
  };
  return {
    want: async (subscriptions, send) => {
      const text = `export default ${JSON.stringify({ subscriptions })};\n`;
      writeFileSync(join(folder, 'earshot.config.ts'), text);
      const { code, err } = await command(['register', '--yes'], send);
      if (code !== 0) throw new Error(`register failed: ${err}`);
      noteIds();
      const atUs = Math.trunc(nowMs()) * 1_000;
      for (const [subscription, { events, filter }] of Object.entries(subscriptions)) {
        const last = asked.findLast((one) => one.subscription === subscription);
        if (last?.filter === filter) continue;
        if (last !== undefined) last.toUs = atUs;
        // What was published shortly before the registration is pushed after it.
        const fromUs = last === undefined ? atUs - notificationDelayUs : atUs;
        const next = { subscription, events, filter, fromUs, toUs: Number.POSITIVE_INFINITY };
        asked = [...asked, next];
      }
    },
    asked: () => asked,
    idsOf: (subscription) => ids.get(subscription) ?? new Set<string>(),
  };
}
