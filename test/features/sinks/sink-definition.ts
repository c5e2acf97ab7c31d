/** A basic sink, and targets. This file is also loaded without a test runner. */
import type { MessageUrls } from '../../../src/features/sinks/formats.ts';
import type { SinkDefinition, SinkTarget } from '../../../src/features/sinks/registry.ts';

/** URLs in messages. */
export const messageUrls: MessageUrls = {
  catalogue: 'https://catalogue.example.org',
  receiver: 'https://earshot.example.org',
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
    startAt: 'start',
    concurrency: 4,
    timeoutMs: 10_000,
    attemptsMax: 5,
    ...fields,
  };
}

type OfKind<Kind extends SinkTarget['kind']> = Extract<SinkTarget, { kind: Kind }>;

/** An unsigned webhook without a certificate authority of its own. */
export const webhookTarget = (url: string, fields: Partial<OfKind<'webhook'>> = {}) =>
  ({ kind: 'webhook', url, secret: null, ca: null, format: 'document', ...fields }) as const;

/** A server of NATS without a login. */
export const natsTarget = (server: string, fields: Partial<OfKind<'nats'>> = {}) =>
  ({
    ...{ kind: 'nats', servers: [server], subject: 'earshot.products' },
    ...{ login: null, ca: null, format: 'document', ...fields },
  }) satisfies SinkTarget;

export function mqttTarget(url: string, fields: Partial<OfKind<'mqtt'>> = {}): OfKind<'mqtt'> {
  return {
    kind: 'mqtt',
    url,
    topic: 'earshot/{collection}/{event}',
    retain: false,
    login: null,
    ca: null,
    format: 'document',
    ...fields,
  };
}
