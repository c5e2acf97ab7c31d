/**
 * Read models for programs: notification, quarantined body, product, alert and summary. `--json`, CSV, the API and its
 * description have these fields, in this order. Absent values are null.
 */
import { z } from 'zod';
import { evaluationSchema } from './evaluation.ts';
import { jsonFields, toJson } from './json-rows.ts';
import { faultCodes } from './notification.ts';
import {
  alertChannels,
  alertLevels,
  alertStates,
  notificationSources,
  summaryKinds,
  summaryStates,
} from './ports.ts';

/** A notification for programs. */
export const notificationSchema = z.object({
  position: z.int().describe('Position in the log; later notifications have higher positions.'),
  ackId: z.string().nullable(),
  productId: z.string(),
  productName: z.string().nullable(),
  event: z.string().describe('created, modified or deleted, in lower case.'),
  subscription: z.string().nullable().describe('Subscription name in the URL path of the push.'),
  subscriptionId: z.string().nullable().describe('Subscription id in the notification.'),
  notificationDateUs: z.number().nullable(),
  receivedAtUs: z.number(),
  source: z
    .enum(notificationSources)
    .describe('push, pull, or reconcile if the notification was fetched from the catalogue.'),
  timesSeen: z.int().describe('Number of times that the notification was received, at least 1.'),
});

export const notificationFields = jsonFields(notificationSchema);

export const toNotificationJson = (row: z.infer<typeof notificationSchema>) =>
  toJson(notificationSchema, row);

/** A quarantined body: not a notification, or an array with an item that is not one. */
export const quarantineSchema = z.object({
  id: z.int(),
  receivedAtUs: z.number(),
  subscription: z.string().nullable(),
  source: z.enum(notificationSources),
  reason: z.string().describe('Code of the first fault.'),
  faults: z
    .array(
      z.object({
        code: z.enum(faultCodes),
        index: z.int().nullable().describe('Index in the array; null for the whole body.'),
        message: z.string(),
      }),
    )
    .describe('Each problem of the body.'),
  bodyBytes: z.int(),
});

export const toQuarantineJson = (row: z.infer<typeof quarantineSchema>) =>
  toJson(quarantineSchema, row);

/** Converts a body with its headers and its content to JSON. */
export function toQuarantineEntryJson({
  headers,
  body,
  ...row
}: z.infer<typeof quarantineSchema> & { headers: string[]; body: Uint8Array }) {
  return { ...toQuarantineJson(row), headers, bodyBase64: Buffer.from(body).toString('base64') };
}

/** Columns of the product index; null if not in the record. */
export const productSchema = z.object({
  position: z.int().describe('Position of the first notification about the product.'),
  productId: z.string(),
  productName: z.string().nullable(),
  collection: z
    .string()
    .nullable()
    .describe('Collection, such as SENTINEL-2, derived from other values of the record.'),
  platform: z.string().nullable(),
  productType: z.string().nullable(),
  processingLevel: z.string().nullable(),
  sensingStartUs: z.number().nullable(),
  sensingEndUs: z.number().nullable(),
  publicationDateUs: z.number().nullable(),
  modificationDateUs: z.number().nullable(),
  sizeBytes: z.number().nullable(),
  online: z.boolean().nullable(),
  cloudCoverPercent: z.number().nullable(),
  orbitNumber: z.number().nullable(),
  relativeOrbitNumber: z.number().nullable(),
  orbitDirection: z.string().nullable(),
  tile: z.string().nullable(),
  processingBaseline: z.string().nullable(),
  receivedAtUs: z.number().describe('Time of receipt of the first notification about the product.'),
  deletionDateUs: z.number().nullable().describe('Null if the product is not deleted.'),
  deletionCause: z.string().nullable(),
});

export const productFields = jsonFields(productSchema);

export const toProductJson = (row: z.infer<typeof productSchema>) => toJson(productSchema, row);

/** Fields that locate the data of a product. They follow the columns in CSV and GeoJSON. */
export const productLinkFields = ['s3Path', 'downloadUrl'] as const;

/** Returns the locations of a product. Null: the record has no path, or the product is deleted. */
export function toProductLinks(
  row: Pick<z.infer<typeof productSchema>, 'productId' | 'deletionDateUs'> & {
    s3Path: string | null;
  },
  catalogueUrl: string,
) {
  const product = `Products(${encodeURIComponent(row.productId)})`;
  return {
    s3Path: row.s3Path,
    downloadUrl: row.deletionDateUs === null ? `${catalogueUrl}/odata/v1/${product}/$value` : null,
  } satisfies Record<(typeof productLinkFields)[number], unknown>;
}

/** An alert as listed. */
export const alertSchema = z.object({
  id: z.int(),
  kind: z.string().describe('Kind of the problem, such as disk (docs/reference/alerts.md).'),
  subject: z
    .string()
    .describe(
      'Affected subscription, sink or receiver; empty if there is only one, or all are affected.',
    ),
  ...evaluationSchema.shape,
  level: z.enum(alertLevels),
  nextStep: z.string().describe('What to do next, usually with a command.'),
  raisedAtUs: z.number(),
  resolvedAtUs: z.number().nullable().describe('Null for an active alert.'),
  channels: z
    .array(
      z.object({
        channel: z.enum(alertChannels),
        sent: z
          .enum(alertStates)
          .nullable()
          .describe('State that the channel has accepted; null before the first success.'),
        error: z.string().nullable().describe('Error of the last attempt; null if it succeeded.'),
      }),
    )
    .describe('Channels through which the alert was or will be sent.'),
});

export const toAlertJson = (alert: z.infer<typeof alertSchema>) => toJson(alertSchema, alert);

/** Text of a product or digest. Texts are plain: escape them in markup. */
export const summaryTextSchema = z.object({
  text: z.string().describe('Plain text.'),
  model: z.string().nullable().describe('Language model; null if the text is from the template.'),
  facts: z
    .record(z.string(), z.string())
    .describe('Values by name, also those that the text does not contain.'),
  createdAtUs: z.number(),
});

export type SummaryText = z.infer<typeof summaryTextSchema>;

export const toTextJson = (text: SummaryText) => toJson(summaryTextSchema, text);

const { text: textField, model, facts, createdAtUs } = summaryTextSchema.shape;

/** A summary for programs. */
export const summarySchema = z.object({
  kind: z.enum(summaryKinds),
  productId: z.string().nullable().describe('Id of the product; null for a digest.'),
  productName: z.string().nullable(),
  text: textField.nullable().describe('Plain text; null before the first attempt.'),
  model,
  facts: facts.nullable(),
  createdAtUs: createdAtUs.nullable(),
  reason: z
    .string()
    .nullable()
    .describe(
      'Why the summary waits, or why the text is from the template; null without a reason.',
    ),
  id: z.int(),
  state: z.enum(summaryStates),
  subscription: z
    .string()
    .nullable()
    .describe('Name of the subscription that requested the summary.'),
  requestedAtUs: z.number(),
  nextTryAtUs: z.number().nullable(),
  receivedFromUs: z
    .number()
    .nullable()
    .describe('Start of the period of a digest, by time of the first receipt, inclusive.'),
  receivedUntilUs: z
    .number()
    .nullable()
    .describe('End of the period of a digest, by time of the first receipt, exclusive.'),
  filter: z.string().nullable().describe('Filter expression of a digest.'),
});

export const summaryFields = jsonFields(summarySchema);

type Summary = z.infer<typeof summarySchema>;

/** A row of the store: its text and the period of a digest are objects. */
type StoredSummary = Omit<
  Summary,
  keyof SummaryText | 'nextTryAtUs' | 'receivedFromUs' | 'receivedUntilUs' | 'filter'
> & {
  text: SummaryText | null;
  scope: { fromUs: number; untilUs: number; filter: string | null } | null;
  dueAtUs: number | null;
};

export function toSummaryJson({ text, scope, dueAtUs, ...row }: StoredSummary) {
  const none = { text: null, model: null, facts: null, createdAtUs: null };
  return toJson(summarySchema, {
    ...row,
    ...(text ?? none),
    nextTryAtUs: dueAtUs,
    receivedFromUs: scope?.fromUs ?? null,
    receivedUntilUs: scope?.untilUs ?? null,
    filter: scope?.filter ?? null,
  });
}
