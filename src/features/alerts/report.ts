/** Reports of alerts: an alert shows the evaluation of its thing, and since when. */

import { alertTitle } from '../../core/terms/evaluation.ts';
import * as report from '../../core/terms/report.ts';
import { channelVariables, isAccepted, type ListedAlert } from './terms.ts';

/** Reports alerts one by one. */
export function alertSections(alerts: readonly ListedAlert[]): report.Block[] {
  return alerts.map((alert) => {
    const { id, raisedAtUs, resolvedAtUs } = alert;
    return {
      ...{ kind: 'section', id: `alert-${id}`, title: alertTitle(alert), evaluation: alert },
      blocks: [
        report.facts(
          ['id', String(id)],
          ['since (UTC)', report.time(raisedAtUs)],
          ['resolved (UTC)', report.time(resolvedAtUs)],
          ['sent to', channelText(alert)],
        ),
      ],
    };
  });
}

/** Reports resolved alerts in a table. */
export function resolvedTable(alerts: readonly ListedAlert[]): report.Block {
  return report.table(
    'Resolved alerts, newest first',
    [
      { title: 'id', isNumber: true, value: ({ id }: ListedAlert) => String(id), drop: 2 },
      { title: 'raised (UTC)', value: ({ raisedAtUs }: ListedAlert) => report.time(raisedAtUs) },
      { title: 'level', value: (alert: ListedAlert) => report.levelOf(alert), drop: 3 },
      { title: 'alert', value: alertTitle },
      { title: 'problem', grows: true, value: ({ text }: ListedAlert) => text },
      {
        title: 'active for',
        drop: 1,
        value: ({ raisedAtUs, resolvedAtUs }: ListedAlert) =>
          resolvedAtUs === null ? null : report.span(Math.max(0, resolvedAtUs - raisedAtUs)),
      },
    ],
    alerts,
  );
}

/** Names each channel, and why it has not accepted the alert. */
function channelText(alert: ListedAlert): string {
  const { channels } = alert;
  if (channels.length === 0) return 'nobody: no channel was configured';
  return channels
    .map(({ channel, sent, error }) => {
      const state = isAccepted(alert, sent) ? 'accepted' : 'not sent yet';
      const result = error === null ? state : `failed: ${error}`;
      return `${channelVariables[channel]} (${result})`;
    })
    .join(', ');
}
