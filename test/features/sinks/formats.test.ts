/** Every format at every sink that takes messages, as a client of the other side receives it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CloudEvent, HTTP } from 'cloudevents';
import { describe, expect, it } from 'vitest';
import { formatNames, formats, messageWriter } from '../../../src/features/messages/formats.ts';
import type { SinkTarget } from '../../../src/features/sinks/registry.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { startHook } from './hook-server.ts';
import { hasNats, startNats } from './nats-server.ts';
import { startBroker } from './simulated-broker.ts';
import { openTestTarget } from './sink-context.ts';
import { messageUrls, mqttTarget, natsTarget, webhookTarget } from './sink-definition.ts';
import { sinkDocument } from './sink-items.ts';

interface Received {
  /** Undefined where the protocol has none. */
  contentType: string | undefined;
  message: Record<string, unknown>;
}

/** A target, and the message that arrived there. */
interface Side {
  target: SinkTarget;
  received: () => Received | Promise<Received>;
}

const sides: Readonly<Record<string, () => Promise<Side>>> = {
  webhook: async () => {
    const hook = await startHook();
    const received = () => {
      const { headers = {}, body = '' } = hook.received[0] ?? {};
      return { contentType: headers['content-type'], message: JSON.parse(body) };
    };
    return { target: webhookTarget(hook.url), received };
  },
  command: async () => {
    const file = join(temporaryDirectory(), 'line');
    const command = ['sh', '-c', 'cat > "$0"', file];
    const received = () => ({
      ...{ contentType: undefined, message: JSON.parse(readFileSync(file, 'utf8')) },
    });
    return { target: { kind: 'command', command }, received };
  },
  mqtt: async () => {
    const broker = await startBroker();
    const received = () => {
      const { payload, properties } = broker.published[0] ?? {};
      return { contentType: properties?.contentType, message: JSON.parse(String(payload)) };
    };
    return { target: mqttTarget(broker.url), received };
  },
  nats: async () => {
    const server = await startNats();
    await server.addStream(['earshot.products']);
    const received = async () => {
      const [{ data, contentType } = {}] = await server.messages();
      return { contentType, message: data };
    };
    return { target: natsTarget(server.server), received };
  },
};

describe.each(Object.keys(sides))('the sink %s', (kind) => {
  it.skipIf(kind === 'nats' && !hasNats).each(formatNames)(
    'delivers the format %s',
    async (format) => {
      const side = await sides[kind]?.();
      if (side === undefined) throw new Error('unreachable');
      const message = { format, stacIds: 'catalogue' } as const;
      const document = { ...sinkDocument, value: { Name: 'S2A_X.SAFE' } };
      const nowUs = () => 1_795_000_000_000_000;
      const { deliver } = openTestTarget(side.target, { message, nowUs });
      const answer = await deliver(document, AbortSignal.timeout(10_000));
      expect(answer).toEqual({ kind: 'acknowledged' });
      const received = await side.received();
      const { text } = await messageWriter(message, { urls: messageUrls, nowUs })(document);
      // A webhook wraps the document.
      const isWrapped = kind === 'webhook' && format === 'document';
      expect(isWrapped ? received.message.data : received.message).toEqual(JSON.parse(text));
      if (kind !== 'command') expect(received.contentType).toBe(formats[format].mediaType);
      if (!format.startsWith('cloudevents')) return;
      const headers = { 'content-type': formats[format].mediaType };
      const event = HTTP.toEvent({ headers, body: received.message }) as CloudEvent<unknown>;
      expect(event.validate()).toBe(true);
    },
  );
});
