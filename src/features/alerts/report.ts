/** Reports of alerts: an alert shows the evaluation of its thing, and since when. */

import { weekUs } from '../../core/terms/dates.ts';
import { alertTitle } from '../../core/terms/evaluation.ts';
import * as report from '../../core/terms/report.ts';
import { type AlertDelivery, channelVariables, type ListedAlert } from './terms.ts';

type Unsent = AlertDelivery & { isGivenUp: boolean };

export interface AlertContext {
  /** Deliveries that no channel has accepted yet. */
  unsent: readonly Unsent[];
  nowUs: number;
}

/** Reports alerts one by one. */
export function alertSections(
  alerts: readonly ListedAlert[],
  context: AlertContext,
): report.Block[] {
  return alerts.map((alert) => {
    const { id, raisedAtUs, resolvedAtUs } = alert;
    return {
      ...{ kind: 'section', id: `alert-${id}`, title: alertTitle(alert), evaluation: alert },
      blocks: [
        report.facts(
          ['id', String(id)],
          ['since (UTC)', report.time(raisedAtUs)],
          ['resolved (UTC)', report.time(resolvedAtUs)],
          ['sent to', channelText(alert, context)],
        ),
      ],
    };
  });
}

/** Reports resolved alerts, or all, in a table. */
export function alertTable(alerts: readonly ListedAlert[], caption: string): report.Block {
  return report.table(
    caption,
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

/** Time for which the store knows a delivery that was given up. */
const givenUpShownUs = weekUs;

/** Names each channel, and why it has not accepted the alert. */
function channelText({ id, channels, raisedAtUs }: ListedAlert, context: AlertContext): string {
  const { unsent, nowUs } = context;
  if (channels.length === 0) return 'nobody: no channel was configured';
  const sent = nowUs - raisedAtUs < givenUpShownUs ? 'accepted' : 'nothing to be sent';
  return channels
    .map((channel) => {
      const own = unsent.find((one) => one.alert.id === id && one.channel === channel);
      return `${channelVariables[channel]} (${own === undefined ? sent : unsentText(own)})`;
    })
    .join(', ');
}

function unsentText({ error, isGivenUp }: Unsent): string {
  if (error === null) return 'not sent yet';
  return `${isGivenUp ? 'failed, not retried' : 'failed, will be retried'}: ${error}`;
}
