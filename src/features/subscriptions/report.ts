/** Reports of subscriptions, as the receiver knows them. */
import type { HistoryEntry } from '../../admin/account.ts';
import { oldestEntryAgeUs } from '../../admin/pull-queue.ts';
import { shortDateUs } from '../../core/terms/dates.ts';
import * as report from '../../core/terms/report.ts';
import type { EvaluatedSubscription } from './state.ts';

/** Changes and gaps shown of a subscription. */
const entriesShown = 10;

type Shown = EvaluatedSubscription & { history: readonly HistoryEntry[] };

/** Reports a registered subscription. */
export function subscriptionSection(one: Shown, nowUs: number): report.Block {
  const { name, filter, gaps, history } = one;
  const gapColumns = [
    { title: 'from (UTC)', value: (gap: Shown['gaps'][0]) => report.time(gap.fromUs) },
    { title: 'to (UTC)', value: (gap: Shown['gaps'][0]) => report.time(gap.toUs) ?? 'open' },
    { title: 'reason', grows: true, value: (gap: Shown['gaps'][0]) => gap.reason },
  ];
  return {
    ...{ kind: 'section', title: name, id: name, evaluation: one.evaluation },
    blocks: [
      report.facts(
        ['type', one.type],
        ['events', one.events.join(', ')],
        ['filter', filter === '' ? 'none: all products' : report.code(filter)],
        ['URL path', report.code(one.path)],
        ['catalogue id', report.code(one.id)],
        ['last notification (UTC)', report.time(one.lastDeliveryAtUs) ?? 'none yet'],
        ['last seen running (UTC)', report.time(one.runningSeenAtUs)],
        ['paused since (UTC)', report.time(one.pausedSeenAtUs)],
        [
          'maintenance',
          one.changedByPerson ? 'keeps the status: changed by a person in the catalogue' : null,
        ],
        ['automatic pause (UTC)', report.time(one.pausesAtUs)],
        ['automatic deletion (UTC)', report.time(one.cancelsAtUs)],
        ['user name of pushes', senderText(one)],
        ...queueFacts(one, nowUs),
      ),
      ...(gaps.length === 0
        ? []
        : [report.table('Gaps, newest first', gapColumns, gaps.slice(0, entriesShown))]),
      ...(history.length === 0 ? [] : [historyTable(history.slice(0, entriesShown))]),
      report.commands(...commandsOf(one)),
    ],
  };
}

function commandsOf({ name, state }: Shown): report.Command[] {
  const isChangeable = state === 'paused' || state === 'running';
  const [toggle, verb] = state === 'paused' ? ['Resume', 'resume'] : ['Pause', 'pause'];
  return [
    ['Check in the catalogue', `earshot subscriptions show ${name}`],
    ...(isChangeable ? [[`${toggle}`, `earshot subscriptions ${verb} ${name}`] as const] : []),
    ['Change', `earshot register --subscription ${name} --dry-run`],
    ['Check the coverage', `earshot coverage --subscription ${name}`],
    ['List all changes', `earshot subscriptions history ${name}`],
  ];
}

function senderText({ senders }: Pick<Shown, 'senders'>): string | null {
  if (senders.length === 0) return null;
  const texts = senders.map(
    ({ username, lastAtUs }) => `${username} (last used ${shortDateUs(lastAtUs)})`,
  );
  return texts.join(', ');
}

/** Facts of the queue of a pull subscription. */
function queueFacts({ queue }: Shown, nowUs: number): [string, report.Value][] {
  if (queue === null) return [];
  const { length, emptiedAtUs, failure } = queue;
  return [
    ['unread entries', length ?? 'not known yet'],
    ['maximum of entries', queue.lengthMax],
    ['age of the oldest entry', report.span(oldestEntryAgeUs(queue, nowUs))],
    ['last read to the end (UTC)', report.time(emptiedAtUs)],
    ['last failure', failure],
  ];
}

/** A table of changes, newest first. */
export function historyTable(entries: readonly HistoryEntry[]): report.Block {
  const columns = [
    { title: 'time (UTC)', value: ({ atUs }: HistoryEntry) => report.time(atUs) },
    { title: 'subscription', drop: 1, value: ({ subscription }: HistoryEntry) => subscription },
    { title: 'change', value: ({ action }: HistoryEntry) => action },
    { title: 'by', drop: 2, value: ({ actor }: HistoryEntry) => actor },
    { title: 'reason', grows: true, value: ({ reason }: HistoryEntry) => reason },
  ];
  return report.table('Changes, newest first', columns, entries);
}
