/** The page and the API of alerts. */

import { z } from 'zod';
import {
  type ApiRoute,
  apiRoute,
  dateParameter,
  flagParameter,
  limitParameter,
  nextField,
  pageOf,
  positionParameter,
} from '../../core/api/api-route.ts';
import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import {
  type PageRequest,
  type PageRoute,
  periodChoice,
  stateForm,
} from '../../core/page/layout.ts';
import { html } from '../../core/page/markup.ts';
import { beforeId, olderLink, renderReport } from '../../core/page/render-report.ts';
import { jsonSchemaOf } from '../../core/terms/json-rows.ts';
import { alertSchema, toAlertJson } from '../../core/terms/read-models.ts';
import * as report from '../../core/terms/report.ts';
import { alertSections, resolvedTable } from './report.ts';
import type { AlertReader } from './terms.ts';

/** Active alerts shown. */
const activeMax = 100;

/** Resolved alerts per page. */
const resolvedMax = 50;

const alertsPage: PageRoute = {
  path: '/alerts',
  label: 'Alerts',
  group: 'operation',
  scope: ['period'],
  parts: ['alerts'],
  count: ({ alerts }) =>
    alerts.length === 0
      ? null
      : {
          count: alerts.length,
          level: alerts.some(({ level }) => level === 'critical') ? 'critical' : 'warning',
        },
  back: '30d',
  list: async (parts, request) => {
    const { state, nowUs } = request;
    const [active, resolved] = await Promise.all([
      parts.alerts.alerts({ all: false, limit: activeMax }),
      resolvedAlerts(parts, request),
    ]);
    const none = report.empty(
      'No alert is active.',
      'The receiver checks every minute: subscriptions, coverage, certificate, disk, database, backup and sinks.',
    );
    const sections = alertSections(active);
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
  { alerts }: Pick<ConsoleParts, 'alerts'>,
  { state, nowUs, url }: PageRequest,
) {
  const { sinceUs, untilUs } = state;
  const query = { all: true, resolved: true, sinceUs, untilUs, beforeId: beforeId(url) };
  const found = await alerts.alerts({ ...query, limit: resolvedMax + 1 });
  const rows = found.slice(0, resolvedMax);
  const block =
    rows.length === 0 ? report.empty('No alert was resolved in this period.') : resolvedTable(rows);
  return html`${renderReport({ title: 'Resolved alerts', blocks: [block] }, nowUs)}${olderLink(url, found, resolvedMax)}`;
}

function channelsReport({ setting }: ConsoleParts): report.Report {
  const has = setting('alertUrl') !== null || setting('alertCommand') !== null;
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

const alertQuery = z.strictObject({
  all: flagParameter.describe('`true`: also resolved alerts.'),
  since: dateParameter
    .optional()
    .describe('Only alerts that were active at this time or later, ISO 8601.'),
  until: dateParameter.optional().describe('Only alerts raised before this time, ISO 8601.'),
  before: positionParameter.optional().describe('Only alerts with a lower id.'),
  limit: limitParameter,
});

/** Returns the route. */
function alertsRoute(alerts: AlertReader): ApiRoute {
  return apiRoute({
    path: '/api/alerts',
    operationId: 'listAlerts',
    summary: 'Active and resolved alerts, with evidence and next step',
    description: 'Pages of alerts, the newest first; by default only active alerts.',
    query: alertQuery,
    answer: z.object({ alerts: z.array(jsonSchemaOf(alertSchema)), next: nextField }),
    respond: async ({ all, since, until, before, limit }, url) => {
      const bounds = { sinceUs: since, untilUs: until, beforeId: before };
      const rows = await alerts.alerts({ all: all === 'true', ...bounds, limit: limit + 1 });
      const { page, next } = pageOf(rows, { limit, url, parameter: 'before' }, ({ id }) => id);
      return { body: { alerts: page.map(toAlertJson), next } };
    },
  });
}

export const pages = [alertsPage];

export const routes = ({ alerts }: ConsoleParts): ServedRoute[] => [
  { route: alertsRoute(alerts), line: 'log' },
];
