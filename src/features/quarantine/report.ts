/** Reports of quarantined bodies: requests that are not valid notifications. */
import type { QuarantineEntry, QuarantineRow } from '../../core/terms/ports.ts';
import * as report from '../../core/terms/report.ts';
import { pathOf } from '../subscriptions/state.ts';

export const emptyQuarantine = report.empty(
  'The quarantine is empty.',
  'Each received body that is not a valid notification is stored here unchanged.',
);

/** The table of `earshot quarantine list`. */
export const quarantineColumns: report.Column<QuarantineRow>[] = [
  { title: 'id', isNumber: true, value: ({ id }) => report.link(String(id), `/quarantine/${id}`) },
  { title: 'received (UTC)', value: ({ receivedAtUs }) => report.time(receivedAtUs) },
  { title: 'path', drop: 2, value: ({ subscription }) => report.code(pathOf(subscription)) },
  { title: 'bytes', isNumber: true, drop: 1, value: ({ bodyBytes }) => bodyBytes },
  { title: 'source', drop: 3, value: ({ source }) => source },
  { title: 'reason', grows: true, value: ({ reason, faults }) => faults[0]?.message ?? reason },
];

/** Reports the reason of a quarantined body, and what to do with it. */
export function bodyReport(entry: QuarantineEntry): report.Report {
  const { id, faults, reason } = entry;
  return {
    title: `Quarantined body ${id}`,
    blocks: [
      report.facts(
        ['reason', faults.length === 0 ? reason : faults.map(({ message }) => message).join(' ')],
        ['code', report.code(reason)],
        ['received (UTC)', report.time(entry.receivedAtUs)],
        ['path', report.code(pathOf(entry.subscription))],
        ['source', entry.source],
        ['bytes', entry.bodyBytes],
      ),
      report.commands(
        ['Save the body to a file', `earshot quarantine show ${id} --body > body-${id}`],
        ['Parse it again', `earshot quarantine retry ${id}`],
        ['Delete it', `earshot quarantine drop ${id}`],
      ),
    ],
  };
}

/** Returns the headers of a request, one per line. */
export const headerLines = ({ headers }: Pick<QuarantineEntry, 'headers'>): string[] =>
  headers.flatMap((name, i) => (i % 2 === 0 ? [`${name}: ${headers[i + 1] ?? ''}`] : []));
