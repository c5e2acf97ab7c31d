/** Publishes items to an MQTT broker, with MQTT 5 and QoS 1. */
import { z } from 'zod';
import { networkFault } from '../../../core/http/bounded-fetch.ts';
import { foreignText, hintCharactersMax } from '../../../core/http/service-error.ts';
import { countText } from '../../../core/terms/text.ts';
import { type NotificationDocument, viewOf } from '../../messages/document.ts';
import { type FormatName, formats, type Message } from '../../messages/formats.ts';
import {
  aborted,
  certificatesForm,
  createConnection,
  defineThreadKind,
  nameField,
  secretForm,
  type TargetAnswer,
  type TargetFailure,
  unavailable,
  unusable,
  usable,
} from '../target.ts';
import {
  hasReasonCode,
  loadMqtt,
  type MqttConnection,
  type MqttMessage,
  openMqtt,
} from './mqtt-connection.ts';

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
      /** Unique at the broker; by default random. */
      clientId: z
        .string(clientIdForm)
        .regex(/^[!-~]{1,128}$/, clientIdForm)
        .optional(),
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

/** Settings of an MQTT sink: its fields, with the content of the files. */
export interface MqttSettings
  extends Omit<z.output<typeof mqttSchema>, 'user' | 'passwordFile' | 'ca'> {
  login: { user: string; password: string } | null;
  ca: string | null;
}

/**
 * Publishes each item to the topic. The acknowledgement of the broker (PUBACK) acknowledges the item. Connects with the
 * first item, and with the next one after a connection loss. Unacknowledged messages are repeated by the queue of the
 * sink, so the broker keeps no session.
 */
export const mqtt = defineThreadKind({
  load: loadMqtt,
  fields: {
    /** An MQTT broker. */
    mqtt: mqttSchema.optional(),
  },
  concurrency: 32,
  settings: ({ mqtt }, readFile): MqttSettings => {
    if (mqtt === undefined) throw new Error('The schema requires a target.');
    const { user, passwordFile, ca, ...fields } = mqtt;
    const password = readFile('mqtt.passwordFile', passwordFile, secretForm);
    return {
      ...fields,
      login: user === undefined || password === null ? null : { user, password },
      ca: readFile('mqtt.ca', ca, certificatesForm),
    };
  },
  open: (target, { format }) => {
    let suffix = '';
    const connection = createConnection((signal) => openMqtt(target, signal, suffix));
    return {
      deliver: async (item, signal) => {
        const message = messageOf(item, target, format);
        if (Buffer.byteLength(message.topic) > topicBytesMax) {
          const reason = `the topic is longer than ${countText(topicBytesMax)} bytes`;
          return { kind: 'refused', reason };
        }
        // Another client for a test, because the receiver may be connected with the same id.
        suffix = item.document.test === true ? '-test' : '';
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
      close: connection.close,
    };
  },
  check: async (target, { sink, signal }) => {
    const { host } = new URL(target.url);
    let connection: MqttConnection;
    try {
      connection = await openMqtt(target, signal, '-doctor');
    } catch (error) {
      return unusable(host, mqttFault(error).reason);
    }
    await connection.close();
    const fault = brokerFault(target, connection);
    if (fault !== null) return unusable(host, fault);
    const login = target.login === null ? 'connections without a login' : 'the login';
    const message = `${host} accepts ${login}, MQTT 5 and QoS 1. Permission to publish to the topic is not checked, because that requires a message: run \`earshot sinks test ${sink.name}\`.`;
    return usable(message, [target.url], { login: target.login, secure: 'mqtts' });
  },
});

/** Returns the reason why the broker cannot be used for this sink; null if it can. */
function brokerFault(
  { retain }: MqttSettings,
  { properties }: Pick<MqttConnection, 'properties'>,
): string | null {
  if (properties.maximumQoS === 0) return 'the broker does not support QoS 1';
  if (retain && properties.retainAvailable === false) {
    return 'the broker does not support retained messages: set retain to false';
  }
  return null;
}

function messageOf(
  { document: item, text: payload }: Message,
  { topic, retain }: MqttSettings,
  format: FormatName,
): MqttMessage {
  return {
    // Only documents are marked as a test.
    topic: `${topicFor(topic, item)}${item.test === true && format === 'wis2' ? '/test' : ''}`,
    id: item.id,
    // A retained message is the newest of its topic; these two are not.
    retain: retain && !item.replay && item.test !== true,
    contentType: formats[format].mediaType,
    payload,
  };
}

/** Fills the template. Values from outside must not add a level or a wildcard, nor characters that brokers reject. */
function topicFor(template: string, item: NotificationDocument): string {
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

/** Reason codes of MQTT 5 (2.4) with their result and its reason; all others are temporary. */
const results: ReadonlyMap<number, ['refused' | 'misconfigured', reason: string]> = new Map([
  // Return code 1 of MQTT 3.1.1.
  [0x01, ['misconfigured', 'it does not support MQTT 5']],
  [0x84, ['misconfigured', 'it does not support MQTT 5']],
  [0x85, ['misconfigured', 'it rejected the client id: set clientId']],
  [0x86, ['misconfigured', 'it rejected the login']],
  [0x87, ['misconfigured', 'the login has no permission']],
  [0x8a, ['misconfigured', 'it banned this client']],
  [0x8c, ['misconfigured', 'it requires another authentication method']],
  [0x8e, ['misconfigured', 'another client connected with the same client id: set clientId']],
  [0x90, ['refused', 'the broker rejects the topic']],
  [0x95, ['refused', 'the message is larger than the broker accepts']],
  [0x99, ['refused', 'the broker rejects the format of the payload']],
  [0x9c, ['misconfigured', 'it refers to another server: change the URL']],
  [0x9d, ['misconfigured', 'it refers to another server: change the URL']],
]);

/** Returns the answer for the reason code of a message. */
function answerOf(code: number, topic: string): TargetAnswer {
  if (code === 0) return { kind: 'acknowledged' };
  if (code !== 0x87) return codeFault(code);
  const shown = foreignText(topic, { secrets: [], charactersMax: hintCharactersMax });
  return { kind: 'misconfigured', reason: `the login has no permission to publish to ${shown}` };
}

function codeFault(code: number): TargetFailure {
  const [kind, reason] = results.get(code) ?? [];
  if (kind === undefined) return unavailable(`it answered 0x${code.toString(16)}`);
  return { kind, reason: reason ?? '' };
}

/** Classifies an error of the connection. */
function mqttFault(error: unknown): TargetFailure {
  return hasReasonCode(error) ? codeFault(error.code) : unavailable(networkFault(error));
}
