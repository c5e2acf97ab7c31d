/** The page `/alerts`: active alerts as `earshot alerts` reports them, and resolved ones. */

import { periodChoice, stateForm } from '../../core/page/layout.ts';
import { html } from '../../core/page/markup.ts';
import type { PageParts, PageRequest, PageRoute } from '../../core/page/page-route.ts';
import { beforeId, olderLink, renderReport } from '../../core/page/render-report.ts';
import * as report from '../../core/terms/report.ts';
import { alertSections, alertTable } from './report.ts';

/** Active alerts shown. */
const activeMax = 100;

/** Resolved alerts per page. */
const resolvedMax = 50;

export const alertsPage: PageRoute = {
  path: '/alerts',
  back: '30d',
  list: async (parts, request) => {
    const { state, nowUs } = request;
    const [active, unsent, resolved] = await Promise.all([
      parts.alerts.alerts({ all: false, limit: activeMax }),
      parts.alerts.unsentDeliveries(nowUs),
      resolvedAlerts(parts, request),
    ]);
    const none = report.empty(
      'No alert is active.',
      'The receiver checks every minute: subscriptions, coverage, certificate, disk, database, backup and sinks.',
    );
    const sections = alertSections(active, { unsent, nowUs });
    return {
      title: 'Alerts',
      refresh: true,
      controls: stateForm('/alerts', periodChoice(state, '30d'), {
        subscription: state.subscription,
      }),
      body: html`${renderReport({ title: 'Active alerts', blocks: active.length === 0 ? [none] : sections }, nowUs)}
${resolved}${renderReport(channelsReport(parts), nowUs)}`,
    };
  },
};

async function resolvedAlerts(
  { alerts }: Pick<PageParts, 'alerts'>,
  { state, nowUs, url }: PageRequest,
) {
  const { sinceUs, untilUs } = state;
  const query = { all: true, resolved: true, sinceUs, untilUs, beforeId: beforeId(url) };
  const found = await alerts.alerts({ ...query, limit: resolvedMax + 1 });
  const rows = found.slice(0, resolvedMax);
  const block =
    rows.length === 0
      ? report.empty('No alert was resolved in this period.')
      : alertTable(rows, 'Resolved alerts, newest first');
  const last = found.length > rows.length ? (rows.at(-1)?.id ?? null) : null;
  return html`${renderReport({ title: 'Resolved alerts', blocks: [block] }, nowUs)}${olderLink(url, last)}`;
}

function channelsReport({ hasAlertChannel }: PageParts): report.Report {
  const has = hasAlertChannel();
  const unset = has ? '' : ' Neither is set. `docs/monitoring.md` explains them.';
  return {
    title: 'Notification channels',
    blocks: [
      report.text(
        `Each raised and each resolved alert is sent to \`EARSHOT_ALERT_URL\` and \`EARSHOT_ALERT_COMMAND\`, if they are set.${unset}`,
      ),
      report.commands(has && ['Send a test alert', `earshot alerts --test`], [
        'List all alerts',
        `earshot alerts --all`,
      ]),
    ],
  };
}
