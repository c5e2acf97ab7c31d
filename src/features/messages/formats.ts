/** The formats of messages about notifications: one table for sinks, the feed and `earshot tail`. */
import type { Config } from '../../core/config/config.ts';
import { consoleBase } from '../../core/http/network-address.ts';
import type { NotificationDocument } from './document.ts';

/** URLs in messages. */
export interface MessageUrls {
  /** Catalogue, without `/odata/v1` and without a last slash. */
  catalogue: string;
  /** Public URL of this receiver; undefined if it is not configured. */
  receiver: string | undefined;
  /** Private listener, without a last slash; empty without one. */
  base: string;
}

export function messageUrls(
  config: Pick<Config, 'catalogueUrl' | 'publicUrl' | 'console'>,
): MessageUrls {
  const { catalogueUrl: catalogue, publicUrl: receiver, console } = config;
  return { catalogue, receiver, base: consoleBase(console) };
}

/** Ids of STAC items and collections: those of earshot's own STAC API, or of the catalogue's. */
export const stacIds = ['earshot', 'catalogue'] as const;

export interface MessageSettings {
  format: FormatName;
  stacIds: (typeof stacIds)[number];
  /** Identifier of the discovery metadata record of WIS2. */
  metadataId?: string | undefined;
}

export interface MessageContext extends Omit<MessageSettings, 'format'> {
  urls: MessageUrls;
  /** Time of publication. */
  nowUs: number;
}

/** Returns the message as an object. */
type BuildMessage = (document: NotificationDocument, context: MessageContext) => object;

interface Format {
  mediaType: string;
  /** Media type of an array of messages. */
  batchType: string;
  load(): Promise<BuildMessage>;
}

const json = 'application/json';
const geoJson = { mediaType: 'application/geo+json', batchType: json };
const cloudEvents = {
  mediaType: 'application/cloudevents+json',
  batchType: 'application/cloudevents-batch+json',
};

/** Formats by their value of the field `format`. Each is loaded with its first message. */
export const formats = {
  document: { mediaType: json, batchType: json, load: async () => (document) => document },
  stac: {
    ...geoJson,
    load: async () => (await import('./stac-message.ts')).stacMessage,
  },
  cloudevents: {
    ...cloudEvents,
    load: async () => (await import('./stac-message.ts')).ogcCloudEvent,
  },
  'cloudevents-document': {
    ...cloudEvents,
    load: async () => (await import('./cloudevents.ts')).documentCloudEvent,
  },
  wis2: {
    ...geoJson,
    load: async () => (await import('./wis2.ts')).wis2Message,
  },
} as const satisfies Record<string, Format>;

export type FormatName = keyof typeof formats;

export const formatNames = Object.keys(formats) as FormatName[];

/** A document, and the same notification in another format, as JSON. */
export interface Message {
  document: NotificationDocument;
  text: string;
}

/** Returns the function that writes messages. It rejects for a record that cannot be serialized as JSON. */
export function messageWriter(
  { format, ...settings }: MessageSettings,
  { urls, nowUs }: { urls: MessageUrls; nowUs: () => number },
): (document: NotificationDocument) => Promise<Message> {
  let loaded: Promise<BuildMessage> | undefined;
  return async (document) => {
    loaded ??= formats[format].load();
    const message = (await loaded)(document, { ...settings, urls, nowUs: nowUs() });
    return { document, text: JSON.stringify(message) };
  };
}
