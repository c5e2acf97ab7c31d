/** A basic sink, and targets. This file is also loaded without a test runner. */
import type { MessageUrls } from '../../../src/features/messages/formats.ts';
import type { SinkDefinition, SinkTarget } from '../../../src/features/sinks/registry.ts';

/** URLs in messages. */
export const messageUrls: MessageUrls = {
  catalogue: 'https://catalogue.example.org',
  receiver: 'https://earshot.example.org',
  base: 'http://127.0.0.1:9464',
};

/** A sink that by default receives everything from the start of the log. */
export function definition(
  target: SinkDefinition['target'],
  fields: Partial<SinkDefinition> = {},
): SinkDefinition {
  return {
    name: 'sink',
    target,
    subscriptions: [],
    events: [],
    filter: '',
    maxAgeUs: null,
    message: { format: 'document', stacIds: 'earshot' },
    batch: null,
    startAt: 'start',
    concurrency: 4,
    timeoutMs: 10_000,
    attemptsMax: 5,
    ...fields,
  };
}

type OfKind<Kind extends SinkTarget['kind']> = Extract<SinkTarget, { kind: Kind }>;

/** An unsigned webhook without a login and a certificate authority of its own. */
export const webhookTarget = (url: string, fields: Partial<OfKind<'webhook'>> = {}) =>
  ({
    ...{ kind: 'webhook', url, secret: null, ca: null, login: () => ({}) },
    ...{ method: 'POST', mode: 'structured', isBatch: false, ...fields },
  }) satisfies SinkTarget;

/** A STAC API without a login. */
export const stacTarget = (url: string, fields: Partial<OfKind<'stac'>> = {}) =>
  ({
    ...{ kind: 'stac', url, ca: null, login: () => ({}), createCollections: true, ...fields },
  }) satisfies SinkTarget;

/** A server of NATS without a login. */
export const natsTarget = (server: string, fields: Partial<OfKind<'nats'>> = {}) =>
  ({
    ...{ kind: 'nats', servers: [server], subject: 'earshot.products' },
    ...{ login: null, ca: null, ...fields },
  }) satisfies SinkTarget;

export function mqttTarget(url: string, fields: Partial<OfKind<'mqtt'>> = {}): OfKind<'mqtt'> {
  return {
    kind: 'mqtt',
    url,
    topic: 'earshot/{collection}/{event}',
    retain: false,
    login: null,
    ca: null,
    ...fields,
  };
}
