/** The receivers of a shared log in the status, and their alert. */

import { z } from 'zod';
import { gaugesIn } from '../../core/status/gauge.ts';
import { type AnyWatch, defineStatusPart, type StatusSources } from '../../core/status/status.ts';
import { minuteUs } from '../../core/terms/dates.ts';
import {
  checkOf,
  type Evaluation,
  evaluation,
  ok,
  problem,
  withAlerts,
} from '../../core/terms/evaluation.ts';
import { counted, countText, lengthText, quoted, sizeText } from '../../core/terms/text.ts';
import { withLog } from './open.ts';
import type { KnownNode } from './postgres-log.ts';

/** A receiver reports every five seconds; a restart takes a few. */
const silentUs = minuteUs;

/** A receiver that applies entries has a lag of a few hundred under full load. */
const lagMax = 20_000;

/** A receiver without space for its own log still accepts notifications, but its queries stop. */
const freeBytesMin = 2 ** 30;

/** The subject is another receiver of the shared log. */
export const receiverCheck = checkOf<KnownNode>('receiver', (node) => {
  const { name, facts } = node;
  const what = receiverFault(node);
  if (what === null) return null;
  return problem(
    'warning',
    `The receiver ${quoted(name)} ${what}.`,
    `Check the log, the disk and the database connection of that receiver. If you have removed the receiver, run \`earshot admin log remove ${name}\`.`,
    quoted(facts.refusing ?? facts.fault ?? 'The other receivers accept notifications.'),
  );
});

/** Returns what the receiver does. */
function receiverFault({ lag, ageMs, facts }: KnownNode): string | null {
  const { refusing, fault, freeBytes } = facts;
  if (ageMs * 1_000 > silentUs) return `has not reported for ${lengthText(ageMs * 1_000)}`;
  if (refusing !== null) return 'cannot store notifications';
  if (fault !== null) return 'cannot apply entries of the shared log, so its queries are old';
  if (lag > lagMax) return `lags ${countText(lag)} entries, so its queries are old`;
  if (freeBytes === null || freeBytes >= freeBytesMin) return null;
  return `has only ${sizeText(freeBytes)} of free space on its disk`;
}

const receiverSchema = z.object({
  name: z.string(),
  isThis: z.boolean().describe('True for the receiver of this data directory.'),
  reportedAtUs: z
    .number()
    .describe('Time of its last report, which each sends every five seconds.'),
  lag: z.int().min(0).describe('Number of entries of the shared log that it had not applied then.'),
  refusing: z
    .string()
    .nullable()
    .describe('Reason why it refuses notifications; null while it accepts them.'),
  fault: z.string().nullable().describe('Reason why it applies no entries; null while it does.'),
});

declare module '../../core/status/status.ts' {
  interface StatusFacts {
    /** Null without a shared log. */
    receivers: readonly z.infer<typeof receiverSchema>[] | null;
  }
}

/** Asks the log of a running receiver, or opens it. Null without a shared log. */
async function readNodes(sources: StatusSources) {
  const { store, running, setting, io } = sources;
  if (running !== null) {
    const { shared } = running.store;
    return shared && { ownId: shared.id, nodes: await shared.log.nodes() };
  }
  const sharedLog = setting('sharedLog');
  const ownId = sharedLog === null ? null : await store.nodeId();
  if (ownId === null) return null;
  const nodes = await withLog({ sharedLog }, io, (log) => log.nodes(), ownId);
  return { ownId, nodes };
}

const part = defineStatusPart({
  name: 'receivers',
  unknown: { receivers: null },
  fields: {
    receivers: z
      .array(receiverSchema)
      .nullable()
      .describe('Receivers of the shared log; null without a shared log.'),
  },
  open: (sources) => ({
    read: async (nowUs) => {
      const known = await readNodes(sources);
      if (known === null) return { receivers: null };
      const receivers = known.nodes.map(({ id, name, lag, ageMs, facts: { refusing, fault } }) => ({
        ...{ name, isThis: id === known.ownId, lag, refusing, fault },
        reportedAtUs: nowUs - Math.round(ageMs * 1_000),
      }));
      return { receivers };
    },
    watch: (): AnyWatch[] => [
      {
        checks: [receiverCheck],
        read: async () => {
          const { ownId, nodes } = (await readNodes(sources)) ?? { ownId: '', nodes: [] };
          return nodes.filter(({ id }) => id !== ownId).map((node) => [node.name, node]);
        },
      },
    ],
  }),
  evaluate: ({ receivers }, situation): Evaluation | null => {
    if (receivers === null) return null;
    const { lag, fault } = receivers.find(({ isThis }) => isThis) ?? { lag: 0, fault: null };
    if (fault === null) {
      const lagText = `lag of this one: ${counted(lag, 'entry', 'entries')}`;
      const fine = ok(`${counted(receivers.length, 'receiver')}; ${lagText}`);
      return withAlerts(fine, ['receiver'], situation);
    }
    const cause = 'This receiver applies no entries of the shared log, so its queries are old';
    return evaluation(
      'critical',
      `${cause}: ${fault}`,
      'Check the log and the disk of this receiver.',
    );
  },
  alertKinds: ['receiver'],
  metrics: {
    'Several receivers': [
      gaugesIn('entries')(
        'earshot_receiver_lag_entries',
        'Number of entries of the shared log that a receiver had not applied at its last report.',
        ({ receivers }) => receivers?.map(({ name, lag }) => [{ receiver: name }, lag]),
        { receiver: 'name of the receiver' },
      ),
    ],
  },
});

export const parts = [part];
