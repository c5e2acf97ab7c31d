/** Publishes items to an MQTT broker, with MQTT 5 and QoS 1. */
import { z } from 'zod';
import { networkFault } from '../../../core/http/bounded-fetch.ts';
import { foreignText, hintCharactersMax } from '../../../core/http/foreign-text.ts';
import { isLoopbackHost } from '../../../core/http/network-address.ts';
import { errorText } from '../../../core/terms/app-error.ts';
import { evaluation, ok } from '../../../core/terms/evaluation.ts';
import type { SinkDocument } from '../document.ts';
import {
  cloudEventOf,
  cloudEventType,
  type FormatName,
  type MessageUrls,
  viewOf,
  wis2Text,
} from '../formats.ts';
import { createConnection } from '../on-demand.ts';
import {
  aborted,
  certificatesForm,
  defineSinkKind,
  nameField,
  secretForm,
  type TargetAnswer,
  type TargetFailure,
  unavailable,
  unusable,
} from '../target.ts';
import {
  hasReasonCode,
  loadMqtt,
  type MqttConnection,
  type MqttMessage,
  type MqttOptions,
  openMqtt,
} from './mqtt-connection.ts';

/** Settings of an MQTT sink. */
export interface MqttSettings {
  url: string;
  topic: string;
  isRetained: boolean;
  login: { user: string; password: string } | null;
  ca: string | null;
  /** Null: derived from the name of the sink. */
  clientId: string | null;
  sessionExpirySeconds: number;
  /** Identifier of the discovery metadata record, for WIS2 messages. */
  metadataId: string | null;
  format: FormatName;
}

const urlForm =
  'must be mqtt:// or mqtts:// with a host and an optional port, such as mqtts://broker.example.org';
/** URL of a broker. */
const brokerUrl = z.string(urlForm).refine((text) => {
  const url = URL.parse(text);
  return /^mqtts?:\/\/[^/?#@]+$/.test(text) && url !== null && url.hostname !== '';
}, urlForm);

/** Maximum length of a topic (MQTT 5, 1.5.4). */
const topicBytesMax = 65_535;

const placeholder = /\{(?:collection|event|subscription|productId)\}/g;
const topicForm =
  'must be a topic without wildcards (+, #) and without a leading $, such as earshot/{collection}/{event}; may contain {collection}, {event}, {subscription} and {productId}';
/** Topic to publish to (MQTT 5, 4.7); `{…}` is replaced for each item. */
const topicTemplate = z.string(topicForm).refine((topic) => {
  const isPlain = /^[^$+#{}\p{C}][^+#{}\p{C}]*$/u.test(topic.replaceAll(placeholder, '_'));
  return isPlain && Buffer.byteLength(topic) <= topicBytesMax;
}, topicForm);

const clientIdForm = "must be 1 to 128 characters without spaces, such as 'earshot-archive'";
const expiryMax = 4_294_967_295;
const expiryForm = `must be a whole number from 0 to ${expiryMax}`;

const mqttSchema = z
  .strictObject(
    {
      url: brokerUrl,
      /** `{collection}`, `{event}`, `{subscription}` and `{productId}` are replaced for each item. */
      topic: topicTemplate.default('earshot/{collection}/{event}'),
      /** True: the broker keeps the newest message of each topic for new subscribers. */
      retain: z.boolean('must be true or false, such as retain: true').default(false),
      user: nameField('earshot').optional(),
      /** File with the password of `user`; must not be readable by everyone. */
      passwordFile: nameField('mqtt-password').optional(),
      /** PEM file with the certificate authorities of the broker, for `mqtts://`. */
      ca: nameField('authority.pem').optional(),
      /** Unique at the broker; by default `earshot-` and the name of the sink. */
      clientId: z
        .string(clientIdForm)
        .regex(/^[!-~]{1,128}$/, clientIdForm)
        .optional(),
      /** Time for which the broker keeps the session after a connection; a day by default. */
      sessionExpirySeconds: z
        .int(expiryForm)
        .min(0, expiryForm)
        .max(expiryMax, expiryForm)
        .default(86_400),
      /** Identifier of the discovery metadata record, for `format: 'wis2'`. */
      metadataId: nameField('urn:wmo:md:centre:dataset').optional(),
    },
    "must be an object, such as { url: 'mqtt://127.0.0.1:1883' }",
  )
  .refine(
    ({ user, passwordFile }) => (user === undefined) === (passwordFile === undefined),
    'user and passwordFile must be set together',
  )
  .refine(
    ({ url, ca }) => ca === undefined || url.startsWith('mqtts:'),
    'ca requires an mqtts:// URL',
  );

/**
 * Publishes each item to the topic. The acknowledgement of the broker (PUBACK) acknowledges the item. Connects with the
 * first item, and with the next one after a connection loss. The broker keeps the session, but unacknowledged messages
 * are repeated by the queue of the sink, as new messages.
 */
export const mqtt = defineSinkKind({
  hasThread: true,
  load: loadMqtt,
  fields: {
    /** An MQTT broker. */
    mqtt: mqttSchema.optional(),
  },
  faults: ({ mqtt, format }) =>
    mqtt?.metadataId === undefined || format === 'wis2'
      ? []
      : ["mqtt.metadataId requires format: 'wis2'"],
  targetFields: Object.keys(mqttSchema.shape),
  formats: ['cloudevents', 'wis2'],
  concurrency: 32,
  settings: ({ mqtt, format = 'document' }, readFile): MqttSettings => {
    if (mqtt === undefined) throw new Error('The schema requires a target.');
    const { url, topic, retain, user, clientId, sessionExpirySeconds, metadataId } = mqtt;
    const password = readFile('mqtt.passwordFile', mqtt.passwordFile, secretForm);
    return {
      ...{ url, topic, sessionExpirySeconds, format },
      isRetained: retain,
      login: user === undefined || password === null ? null : { user, password },
      ca: readFile('mqtt.ca', mqtt.ca, certificatesForm),
      clientId: clientId ?? null,
      metadataId: metadataId ?? null,
    };
  },
  open: (target, { name, nowUs, urls }) => {
    const connections = {
      usual: createSessionConnection(target, name),
      // Another client, because the receiver may be connected as the usual one.
      test: createConnection((signal) => openMqtt(clientOf(target, name, 'test'), { signal })),
    };
    return {
      deliver: async (item, signal) => {
        // Outside of the `try`: an item that cannot be serialized is not the broker's fault.
        const message = messageOf(item, target, { nowUs, urls });
        if (Buffer.byteLength(message.topic) > topicBytesMax) {
          const reason = `the topic is longer than ${topicBytesMax.toLocaleString('en')} bytes`;
          return { kind: 'refused', reason };
        }
        const connection = item.test === true ? connections.test : connections.usual;
        try {
          await loadMqtt();
        } catch (error) {
          return { kind: 'misconfigured', reason: cannotLoad(error) };
        }
        const publish = async () => {
          const opened = await connection.current();
          const fault = brokerFault(target, opened);
          if (fault !== null) return { kind: 'misconfigured', reason: fault } as const;
          return answerOf(await opened.publish(message, signal), message.topic);
        };
        try {
          return await Promise.race([publish(), aborted(signal)]);
        } catch (error) {
          return mqttFault(error);
        }
      },
      close: async () => {
        await Promise.all([connections.usual.close(), connections.test.close()]);
      },
    };
  },
  check: async (target, { sink, signal }) => {
    const { host, hostname } = new URL(target.url);
    let connection: MqttConnection;
    try {
      connection = await openMqtt(clientOf(target, sink.name, 'doctor'), { signal });
    } catch (error) {
      return unusable(host, mqttFault(error).reason);
    }
    await connection.close();
    const fault = brokerFault(target, connection);
    if (fault !== null) return unusable(host, fault);
    const login = target.login === null ? 'connections without a login' : 'the login';
    const message = `${host} accepts ${login}, MQTT 5 and QoS 1. Permission to publish to the topic is not checked, because that requires a message: run \`earshot sinks test ${sink.name}\`.`;
    const isLocal = isLoopbackHost(hostname.replace(/^\[|\]$/g, ''));
    if (target.login === null || target.url.startsWith('mqtts:') || isLocal) {
      return ok(message);
    }
    const text = `${message} The login and the notifications are sent unencrypted: mqtt:// has no TLS.`;
    return evaluation('warning', text, 'Enable TLS on the broker, and use mqtts:// for the sink.');
  },
});

const cannotLoad = (error: unknown) =>
  `the MQTT client library cannot be loaded: ${errorText(error)}`;

/** Returns the client id of a sink. */
export function clientIdOf(
  { clientId }: { clientId?: string | null | undefined },
  sink: string,
): string {
  return clientId ?? `earshot-${sink}`;
}

/** Returns the options of a client. Only the usual one has a session: the others must not take it over. */
function clientOf(
  { url, login, ca, clientId, sessionExpirySeconds }: MqttSettings,
  sink: string,
  purpose: 'usual' | 'test' | 'doctor',
): MqttOptions {
  const own = clientIdOf({ clientId }, sink);
  if (purpose === 'usual') return { url, login, ca, clientId: own, sessionExpirySeconds };
  return { url, login, ca, clientId: `${own}-${purpose}`, sessionExpirySeconds: null };
}

/**
 * Creates the connection of the sink's session. If another client took the session over since the last item, the next
 * item reports it: two receivers with one client id would otherwise interrupt each other unnoticed.
 */
function createSessionConnection(target: MqttSettings, sink: string) {
  let takenOver: Error | null = null;
  const connection = createConnection(async (signal) => {
    const opened = await openMqtt(clientOf(target, sink, 'usual'), { signal });
    void opened.closed().then((error) => {
      // Otherwise the items in flight report it.
      const isUnnoticed = opened.unacknowledged() === 0;
      const isTaken = hasReasonCode(error) && error.code === sessionTakenOver;
      takenOver = isTaken && isUnnoticed ? error : null;
    });
    return opened;
  });
  return {
    current: async () => {
      const error = takenOver;
      takenOver = null;
      if (error !== null) throw error;
      return connection.current();
    },
    close: connection.close,
  };
}

/** Returns the reason why the broker cannot be used for this sink; null if it can. */
function brokerFault(
  { isRetained }: Pick<MqttSettings, 'isRetained'>,
  { properties }: Pick<MqttConnection, 'properties'>,
): string | null {
  if (properties.maximumQoS === 0) return 'the broker does not support QoS 1';
  if (isRetained && properties.retainAvailable === false) {
    return 'the broker does not support retained messages: set retain to false';
  }
  return null;
}

function messageOf(
  item: SinkDocument,
  { topic, isRetained, format, metadataId }: MqttSettings,
  { nowUs, urls }: { nowUs: () => number; urls: MessageUrls },
): MqttMessage {
  return {
    // The notification message cannot be marked as a test.
    topic: `${topicFor(topic, item)}${item.test === true && format === 'wis2' ? '/test' : ''}`,
    id: item.id,
    // A retained message is the newest of its topic; these two are not.
    isRetained: isRetained && !item.replay && item.test !== true,
    ...bodyOf(),
  };

  function bodyOf() {
    switch (format) {
      case 'document':
        return { contentType: 'application/json', payload: JSON.stringify(item) };
      case 'cloudevents': {
        const contentType = `${cloudEventType}; charset=utf-8`;
        return { contentType, payload: JSON.stringify(cloudEventOf(item, urls)) };
      }
      case 'wis2': {
        const payload = wis2Text(item, { urls, nowUs: nowUs(), metadataId });
        return { contentType: 'application/geo+json', payload };
      }
    }
  }
}

/** Fills the template. Values from outside must not add a level or a wildcard, nor characters that brokers reject. */
function topicFor(template: string, item: SinkDocument): string {
  const level = (text: string | null) => text?.replaceAll(/[/+#\p{C}]/gu, '_') || 'unknown';
  const values: Readonly<Record<string, () => string>> = {
    '{collection}': () => level(viewOf(item).text('Collection/Name')),
    '{event}': () => level(item.event),
    '{subscription}': () => level(item.subscription),
    '{productId}': () => level(item.productId),
  };
  const topic = template.replaceAll(placeholder, (name) => values[name]?.() ?? name);
  // Such topics belong to the broker (MQTT 5, 4.7.2).
  return topic.replace(/^\$/, '_');
}

/** Reason codes of MQTT 5 (2.4) that need an own answer, with the clause for the user. */
const sessionTakenOver = 0x8e;
const misconfiguredCodes: ReadonlyMap<number, string> = new Map([
  // Return code 1 of MQTT 3.1.1.
  [0x01, 'it does not support MQTT 5'],
  [0x84, 'it does not support MQTT 5'],
  [0x85, 'it rejected the client id: set clientId'],
  [0x86, 'it rejected the login'],
  [0x87, 'the login has no permission'],
  [0x8a, 'it banned this client'],
  [0x8c, 'it requires another authentication method'],
  [sessionTakenOver, 'another client connected with the same client id: set clientId'],
  [0x9a, 'the broker does not support retained messages: set retain to false'],
  [0x9b, 'the broker does not support QoS 1'],
  [0x9c, 'it refers to another server: change the URL'],
  [0x9d, 'it refers to another server: change the URL'],
]);
const refusedCodes: ReadonlyMap<number, string> = new Map([
  [0x90, 'the broker rejects the topic'],
  [0x95, 'the message is larger than the broker accepts'],
  [0x99, 'the broker rejects the format of the payload'],
]);

/** Converts the result of `publish`. */
function answerOf(code: number, topic: string): TargetAnswer {
  if (code === 0) return { kind: 'acknowledged' };
  if (code === 0x87) {
    const shown = foreignText(topic, { secrets: [], charactersMax: hintCharactersMax });
    const reason = `the login has no permission to publish to ${shown}`;
    return { kind: 'misconfigured', reason };
  }
  const reason = refusedCodes.get(code);
  return reason === undefined ? codeFault(code) : { kind: 'refused', reason };
}

function codeFault(code: number): TargetFailure {
  const reason = misconfiguredCodes.get(code);
  if (reason !== undefined) return { kind: 'misconfigured', reason };
  const name = temporaryCodes.get(code);
  const hex = `0x${code.toString(16)}`;
  return unavailable(`it answered ${name === undefined ? hex : `${hex} (${name})`}`);
}

const temporaryCodes: ReadonlyMap<number, string> = new Map([
  [0x88, 'server unavailable'],
  [0x89, 'server busy'],
  [0x8b, 'server shutting down'],
  [0x8d, 'keep alive timeout'],
  [0x93, 'receive maximum exceeded'],
  [0x95, 'packet too large'],
  [0x96, 'message rate too high'],
  [0x97, 'quota exceeded'],
  [0x98, 'administrative action'],
  [0x9f, 'connection rate exceeded'],
]);

/** Classifies an error of the connection. */
function mqttFault(error: unknown): TargetFailure {
  return hasReasonCode(error) ? codeFault(error.code) : unavailable(networkFault(error));
}
