/** The page and the API of subscriptions. */

import { z } from 'zod';
import { historyActions, historyActors } from '../../admin/account.ts';
import { type ApiRoute, apiRoute } from '../../core/api/api-route.ts';
import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import { choice, type PageRoute, stateForm } from '../../core/page/layout.ts';
import { html } from '../../core/page/markup.ts';
import { renderReport } from '../../core/page/render-report.ts';
import type { Status } from '../../core/status/status.ts';
import { jsonSchemaOf, toJson } from '../../core/terms/json-rows.ts';
import * as report from '../../core/terms/report.ts';
import { subscriptionSection } from './report.ts';
import { subscriptionSchema } from './state.ts';

/** Changes shown of each subscription. */
const historyShown = 20;

const subscriptionsPage: PageRoute = {
  path: '/subscriptions',
  label: 'Subscriptions',
  group: 'operation',
  scope: ['subscription'],
  parts: ['subscriptions', 'certificate'],
  back: '7d',
  list: async ({ administration, slots }, { status, state, nowUs }) => {
    const names = status.subscriptions.map(({ name }) => name);
    const shown = status.subscriptions.filter(
      ({ name }) => state.subscription === undefined || name === state.subscription,
    );
    const sections = shown.map(async (one) => {
      const history = await administration.history({ subscription: one.name, limit: historyShown });
      return subscriptionSection({ ...one, history }, nowUs);
    });
    const blocks = await Promise.all(sections);
    const reports = [
      {
        title: 'Registered subscriptions',
        blocks: shown.length === 0 ? [noneShown(state.subscription)] : blocks,
      },
      ...(status.hasEndpoint ? [endpointReport(status, { slots })] : []),
    ];
    return {
      title: 'Subscriptions',
      refresh: true,
      controls: stateForm(
        '/subscriptions',
        choice(
          'subscription',
          'subscription',
          [['', 'all'], ...names.map((name) => [name, name] as const)],
          state.subscription,
        ),
        { since: state.since, until: state.until },
      ),
      body: html`${reports.map((one) => renderReport(one, nowUs))}`,
    };
  },
};

function noneShown(name: string | undefined): report.Block {
  if (name !== undefined) return report.empty(`No subscription "${name}" is registered.`);
  return report.empty(
    'No subscription is registered, so no notifications will arrive.',
    'Describe subscriptions in earshot.config.ts, or with the flags of `earshot register`.',
  );
}

/** Certificate and credentials apply to all subscriptions. */
function endpointReport(status: Status, { slots }: Pick<ConsoleParts, 'slots'>): report.Report {
  return {
    title: 'Endpoint of all subscriptions',
    blocks: [
      ...slots.flatMap(({ endpointBlocks }) => endpointBlocks?.(status) ?? []),
      report.commands(
        ['Check the endpoint', `earshot doctor`],
        ['Replace the credentials', `earshot credentials rotate`],
      ),
    ],
  };
}

const historySchema = z.object({
  atUs: z.number(),
  subscriptionId: z.string().nullable(),
  action: z.enum(historyActions),
  actor: z.enum(historyActors).describe('Command that made the change.'),
  reason: z.string(),
});

/** Maximum history per subscription. */
const historyMax = 50;

const history = z
  .array(historySchema)
  .describe(`Changes of the subscription, the newest ${historyMax} first.`);

const subscriptionsSchema = z.object({
  subscriptions: z.array(subscriptionSchema.extend({ history })),
});

function subscriptionsRoute({ administration, status }: ConsoleParts): ApiRoute {
  return apiRoute({
    path: '/api/subscriptions',
    operationId: 'listSubscriptions',
    summary: 'Subscriptions as the receiver knows them, with gaps and history',
    description:
      'Registered subscriptions. The states are the last known ones: the request does not query the catalogue.',
    query: z.strictObject({}),
    answer: jsonSchemaOf(subscriptionsSchema),
    respond: async () => {
      const { subscriptions } = await status();
      const withHistory = subscriptions.map(async (one) => ({
        ...one,
        history: await administration.history({ subscription: one.name, limit: historyMax }),
      }));
      const found = { subscriptions: await Promise.all(withHistory) };
      return { body: toJson(subscriptionsSchema, found) };
    },
  });
}

export const pages = [subscriptionsPage];

export const routes = (parts: ConsoleParts): ServedRoute[] => [
  { route: subscriptionsRoute(parts), line: 'log' },
];
