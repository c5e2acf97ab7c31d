/** The page and the API of quarantined bodies. */

import { z } from 'zod';
import {
  type ApiRoute,
  apiRoute,
  limitParameter,
  nextField,
  pageOf,
  positionParameter,
} from '../../core/api/api-route.ts';
import type { ConsoleParts, ServedRoute } from '../../core/api/listener-slot.ts';
import type { PageRequest, PageRoute } from '../../core/page/layout.ts';
import { command, emptyState, type Html, html, panel } from '../../core/page/markup.ts';
import { beforeId, olderLink, renderReport } from '../../core/page/render-report.ts';
import { AppError, isAppError } from '../../core/terms/app-error.ts';
import { jsonSchemaOf } from '../../core/terms/json-rows.ts';
import {
  collect,
  type Quarantine,
  type QuarantineEntry,
  type QuarantineRow,
} from '../../core/terms/ports.ts';
import {
  quarantineSchema,
  toQuarantineEntryJson,
  toQuarantineJson,
} from '../../core/terms/read-models.ts';
import * as report from '../../core/terms/report.ts';
import { counted, printable, sizeText } from '../../core/terms/text.ts';
import { bodyReport, emptyQuarantine, headerLines, quarantineColumns } from './report.ts';

const rowsMax = 50;

/** Maximum size of a body, and of one of its headers, on the page. */
const shownBytes = 32_768;
const lineMax = 1_000;

const quarantinePage: PageRoute = {
  path: '/quarantine',
  label: 'Quarantine',
  group: 'operation',
  scope: [],
  back: '30d',
  list: async ({ quarantine }, request) => {
    const { url, signal } = request;
    const query = { beforeId: beforeId(url), limit: rowsMax + 1 };
    const [rows, total] = await Promise.all([
      collect(quarantine.quarantined(query), signal),
      quarantine.quarantinedCount(),
    ]);
    return { title: 'Quarantine', refresh: true, body: list(rows, total, request) };
  },
  item: async ({ quarantine }, request) => {
    const { id } = request;
    if (!/^[1-9]\d{0,14}$/.test(id)) {
      throw new AppError(
        'not_found',
        'The last part of the address is not the id of a quarantined body.',
      );
    }
    const entry = await quarantine.quarantineEntry(Number(id));
    return {
      title: `Quarantined body ${entry.id}`,
      controls: html`<a class="button" href="/quarantine">All quarantined bodies</a>`,
      body: html`${renderReport({ ...bodyReport(entry), title: 'Reason' }, request.nowUs)}${headersPanel(entry)}${bodyPanel(entry)}`,
    };
  },
};

function list(read: readonly QuarantineRow[], total: number, { url, nowUs }: PageRequest): Html {
  const rows = read.slice(0, rowsMax);
  const none = url.searchParams.has('before')
    ? report.empty('There are no older bodies.')
    : emptyQuarantine;
  const blocks =
    rows.length === 0
      ? [none]
      : [
          report.text(`${counted(total, 'body', 'bodies')} in quarantine.`),
          report.table('Quarantined bodies, newest first', quarantineColumns, rows),
          report.commands(
            ['Parse all again, after an upgrade', `earshot quarantine retry --all`],
            ['Delete old ones', `earshot quarantine drop --older-than 30d`],
          ),
        ];
  const title = 'Bodies that are not notifications';
  return html`${renderReport({ title, blocks }, nowUs)}${olderLink(url, read, rowsMax)}`;
}

function headersPanel(entry: QuarantineEntry): Html {
  const lines = headerLines(entry);
  if (lines.length === 0) return panel('Headers', emptyState('No headers are stored.'));
  const shown = lines.map((line) => line.slice(0, lineMax));
  return panel('Headers', plainText(shown, 'Headers'), 'without credentials');
}

function bodyPanel({ id, body, bodyBytes }: QuarantineEntry): Html {
  if (bodyBytes === 0) return panel('Body', emptyState('The body is empty.'));
  const isCut = body.length > shownBytes;
  // `stream`: does not end with a part of a character.
  const text = new TextDecoder().decode(body.subarray(0, shownBytes), { stream: isCut });
  const note = isCut
    ? html`<p class="note">The first ${sizeText(shownBytes)} of ${sizeText(bodyBytes)} are shown. To print all:</p>${command(`earshot quarantine show ${id}`)}`
    : '';
  return panel(
    'Body',
    html`${plainText(text.split(/\r?\n/), 'Body')}${note}`,
    'Plain text. Control characters and marks of text direction are shown as codes.',
  );
}

/** Renders an untrusted text as it is, with codes such as `\u202e` for control characters. */
function plainText(lines: readonly string[], label: string): Html {
  const text = lines.map((line) => line.split('\t').map(printable).join('\t')).join('\n');
  return html`<pre class="body untrusted" dir="ltr" tabindex="0" role="region" aria-label="${label}">${text}</pre>`;
}

const quarantineFields = jsonSchemaOf(quarantineSchema).extend({
  headers: z
    .array(z.string())
    .optional()
    .describe('Names and values, alternating, without credentials. Only with the parameter `id`.'),
  bodyBase64: z
    .base64()
    .optional()
    .describe('The body as received, as Base64. Only with the parameter `id`.'),
});

const quarantineQuery = z.strictObject({
  id: positionParameter.optional().describe('Only this body, with its headers and content.'),
  before: positionParameter.optional().describe('Only bodies with a lower id.'),
  limit: limitParameter,
});

type QuarantineReader = Pick<Quarantine, 'quarantined' | 'quarantineEntry'>;

/** Returns the route. */
function quarantineRoute(quarantine: QuarantineReader): ApiRoute {
  return apiRoute({
    path: '/api/quarantine',
    operationId: 'listQuarantine',
    summary: 'Quarantined bodies with the reasons',
    description:
      'Pages of bodies that are not valid notifications, the newest first. The content of a body is not trustworthy: escape it in markup.',
    query: quarantineQuery,
    answer: z.object({ quarantine: z.array(quarantineFields), next: nextField }),
    respond: async ({ id, before: beforeId, limit }, url, signal) => {
      if (id !== undefined) {
        const entry = await quarantine.quarantineEntry(id).catch(nullIfMissing);
        return {
          body: { quarantine: entry === null ? [] : [toQuarantineEntryJson(entry)], next: null },
        };
      }
      const found = quarantine.quarantined({ beforeId, limit: limit + 1 });
      const rows = await collect(found, signal);
      const { page, next } = pageOf(rows, { limit, url, parameter: 'before' }, (row) => row.id);
      return { body: { quarantine: page.map(toQuarantineJson), next } };
    },
  });
}

function nullIfMissing(error: unknown): null {
  if (isAppError(error, 'not_found')) return null;
  throw error;
}

export const pages = [quarantinePage];

export const routes = ({ quarantine }: ConsoleParts): ServedRoute[] => [
  { route: quarantineRoute(quarantine), line: 'log' },
];
