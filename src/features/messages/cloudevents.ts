/** CloudEvents 1.0 (cloudevents.io), JSON format. */
import type { NotificationDocument } from './document.ts';
import type { MessageContext, MessageUrls } from './formats.ts';

/** Attributes that are the same in every type of event. */
export function cloudEvent<Data>(
  document: NotificationDocument,
  { urls }: Pick<MessageContext, 'urls'>,
  fields: {
    type: string;
    subject: string;
    datacontenttype: string;
    data: Data;
    [extension: string]: unknown;
  },
) {
  const { id, notificationDate, receivedAt } = document;
  const { data, ...attributes } = fields;
  const time = notificationDate ?? receivedAt;
  return { specversion: '1.0', id, source: sourceOf(urls), time, ...attributes, data };
}

/**
 * A reversed domain name, as CloudEvents recommends. The project owns no domain; names below `internal` belong to nobody
 * (reserved for private use).
 */
const typePrefix = 'internal.earshot.product.';

/** Returns an event whose data is the document. */
export function documentCloudEvent(document: NotificationDocument, context: MessageContext) {
  return cloudEvent(document, context, {
    type: `${typePrefix}${document.event}`,
    subject: document.productId,
    datacontenttype: 'application/json',
    data: document,
  });
}

/** Identifies this receiver. The id of a document is unique within it. */
export function sourceOf({ receiver }: MessageUrls): string {
  return receiver ?? 'urn:earshot:receiver';
}
