/** Connections to MQTT brokers: MQTT 5, messages with QoS 1. */
import { connect as connectPlain, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ErrorWithReasonCode, IClientOptions, IConnackPacket, MqttClient } from 'mqtt';
import { UnusableAnswer } from '../../../core/http/bounded-fetch.ts';
import { boundMqtt, packetBytesMax } from '../../../core/http/bounded-messages.ts';
import { contextTrusting } from '../../../core/http/tls-settings.ts';
import { aborted } from '../target.ts';

/** Imports the client library with the first item, so that other commands start without it. */
export const loadMqtt = () => import('mqtt');
type Library = Awaited<ReturnType<typeof loadMqtt>>;

export interface MqttOptions {
  /** `mqtt://` or `mqtts://`, with a host and an optional port. */
  url: string;
  login: { user: string; password: string } | null;
  /** Certificate authorities in addition to the public ones and the system's; null for none. */
  ca: string | null;
  clientId: string;
  /** Time for which the broker keeps the session after a connection; null: no session is resumed or kept. */
  sessionExpirySeconds: number | null;
}

export interface MqttMessage {
  topic: string;
  payload: string;
  contentType: string;
  /** Sent as the user property `id`. */
  id: string;
  isRetained: boolean;
}

/** An open connection. */
export interface MqttConnection {
  /** True if the broker resumed the session of an earlier connection. */
  isResumed: boolean;
  /** Properties of the broker. */
  properties: NonNullable<IConnackPacket['properties']>;
  /**
   * Publishes a message with QoS 1. Resolves with 0 when the broker has acknowledged it, also without subscribers;
   * otherwise with its reason code, or with `packetTooLarge`, and nothing sent, for a message above its maximum. Rejects
   * with the signal's reason, or when the connection ends, with the error that ended it.
   */
  publish(message: MqttMessage, signal: AbortSignal): Promise<number>;
  /** Number of messages sent and not acknowledged. */
  unacknowledged(): number;
  /** Resolves with the error that ended the connection. */
  closed(): Promise<Error>;
  close(): Promise<void>;
}

export const connectTimeoutMs = 10_000;

/** A broker that does not respond within one and a half of this time is disconnected. */
const keepAliveSeconds = 15;

/** Time for the broker to close its side after a DISCONNECT. */
const closeTimeoutMs = 1_000;

/** Reason code 0x95 (MQTT 5, 2.4). */
export const packetTooLarge = 0x95;

/**
 * Connects with MQTT 5. The library neither reconnects nor repeats messages: both are the task of the sink's queue.
 * Rejects with the signal's reason when it is aborted, otherwise with the error. No socket stays open after a failure.
 */
export async function openMqtt(
  options: MqttOptions,
  { signal }: { signal: AbortSignal },
): Promise<MqttConnection> {
  const { MqttClient, ErrorWithReasonCode } = await loadMqtt();
  const timeout = AbortSignal.timeout(connectTimeoutMs);
  const giveUp = AbortSignal.any([signal, timeout]);
  giveUp.throwIfAborted();
  const socket = openSocket(options);
  boundMqtt(socket);
  const client = new MqttClient(() => socket, clientOptions(options));
  const ended = endOf(client, socket, { ErrorWithReasonCode, clientId: options.clientId });
  const cancel = () => socket.destroy();
  giveUp.addEventListener('abort', cancel);
  try {
    const connected = new Promise<IConnackPacket>((resolve) => {
      client.once('connect', resolve);
    });
    const failed = ended.then((error) => Promise.reject(error));
    const connack = await Promise.race([connected, failed]);
    return connectionOf(client, socket, { connack, ended });
  } catch (error) {
    socket.destroy();
    giveUp.throwIfAborted();
    throw error;
  } finally {
    giveUp.removeEventListener('abort', cancel);
  }
}

function openSocket({ url, ca }: MqttOptions): Socket {
  const { protocol, hostname, port } = new URL(url);
  const host = hostname.replace(/^\[|\]$/g, '');
  const isTls = protocol === 'mqtts:';
  const address = { host, port: Number(port) || (isTls ? 8883 : 1883), noDelay: true };
  if (!isTls) return connectPlain(address);
  return connectTls({
    ...address,
    ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
    secureContext: contextTrusting(ca === null ? [] : [ca]),
    // Explicit, because an environment variable could otherwise disable the checks.
    rejectUnauthorized: true,
  });
}

function clientOptions({ login, clientId, sessionExpirySeconds }: MqttOptions): IClientOptions {
  return {
    protocolVersion: 5,
    clientId,
    clean: sessionExpirySeconds === null,
    keepalive: keepAliveSeconds,
    reconnectPeriod: 0,
    resubscribe: false,
    // `openMqtt` has its own timeout.
    connectTimeout: 2 * connectTimeoutMs,
    properties: {
      sessionExpiryInterval: sessionExpirySeconds ?? 0,
      maximumPacketSize: packetBytesMax,
    },
    ...(login !== null && { username: login.user, password: login.password }),
  };
}

/** Resolves with the first error of the connection when it has ended. */
function endOf(
  client: MqttClient,
  socket: Socket,
  {
    ErrorWithReasonCode,
    clientId,
  }: Pick<Library, 'ErrorWithReasonCode'> & Pick<MqttOptions, 'clientId'>,
): Promise<Error> {
  const { promise, resolve } = Promise.withResolvers<Error>();
  let first: Error | null = null;
  const note = (error: Error) => {
    first ??= error;
  };
  socket.on('error', note);
  // An invalid packet, or no response to pings. After an invalid packet, the library would wait for ever.
  client.on('error', (error) => {
    note(error);
    socket.destroy();
  });
  client.on('disconnect', ({ reasonCode = 0 }) => {
    note(new ErrorWithReasonCode('the broker disconnected', reasonCode));
    socket.destroy();
  });
  let closed = 'it closed the connection before the login: is this the port of an MQTT broker?';
  client.once('connect', () => {
    // Some brokers (mosquitto 2.0) send no reason code when another client takes the session over.
    closed = `it closed the connection; another client with the client id ${clientId} can be the cause`;
  });
  client.on('close', () => resolve(first ?? new UnusableAnswer(closed)));
  return promise;
}

function connectionOf(
  client: MqttClient,
  socket: Socket,
  { connack, ended }: { connack: IConnackPacket; ended: Promise<Error> },
): MqttConnection {
  const { properties = {} } = connack;
  const { maximumPacketSize = Number.POSITIVE_INFINITY, receiveMaximum = 65_535 } = properties;
  const failed = ended.then((error) => Promise.reject(error));
  // Observed by `publish`; without a message, nobody waits for it.
  failed.catch(() => undefined);
  const slots = createSlots(receiveMaximum);
  let acknowledgedCount = 0;
  /** Closes a connection on which nothing was acknowledged meanwhile, although the broker answers pings. */
  const giveUp = (countBefore: number) => {
    const reason = 'it acknowledged nothing in time';
    if (acknowledgedCount === countBefore) socket.destroy(new UnusableAnswer(reason));
  };
  return {
    isResumed: connack.sessionPresent,
    properties,
    publish: async (message, signal) => {
      if (packetBytes(message) > maximumPacketSize) return packetTooLarge;
      signal.throwIfAborted();
      const gone = aborted(signal);
      const countBefore = acknowledgedCount;
      const publish = async () => {
        await slots.take();
        try {
          signal.throwIfAborted();
          const code = await publishOnce(client, message);
          acknowledgedCount += 1;
          return code;
        } finally {
          // A message without an answer still counts at the broker.
          slots.release();
        }
      };
      try {
        return await Promise.race([publish(), gone, failed]);
      } catch (error) {
        giveUp(countBefore);
        throw error;
      }
    },
    unacknowledged: slots.taken,
    closed: () => ended,
    close: async () => {
      if (slots.taken() > 0) socket.destroy();
      else client.end();
      socket.setTimeout(closeTimeoutMs, () => socket.destroy());
      await ended;
    },
  };
}

function publishOnce(client: MqttClient, message: MqttMessage): Promise<number> {
  const { topic, payload, contentType, id, isRetained } = message;
  const properties = { contentType, userProperties: { id } };
  return new Promise((resolve, reject) => {
    client.publish(topic, payload, { qos: 1, retain: isRetained, properties }, (error) => {
      // The library reports no error for 0x10 (no matching subscribers).
      if (!error) resolve(0);
      else if (hasReasonCode(error)) resolve(error.code);
      else reject(error);
    });
  });
}

/** Returns true for an error with a reason code of MQTT 5. Other errors have codes such as `ECONNRESET`. */
export function hasReasonCode(error: unknown): error is ErrorWithReasonCode {
  if (!(error instanceof Error) || error instanceof DOMException) return false;
  return 'code' in error && typeof error.code === 'number';
}

/** Limits the unacknowledged messages to the broker's maximum (MQTT 5, 4.9). */
function createSlots(max: number) {
  let taken = 0;
  const waiting: (() => void)[] = [];
  return {
    taken: () => taken,
    take: async () => {
      if (taken < max) {
        taken += 1;
        return;
      }
      await new Promise<void>((resolve) => {
        waiting.push(resolve);
      });
    },
    release: () => {
      const next = waiting.shift();
      // A waiting message keeps the slot.
      if (next === undefined) taken -= 1;
      else next();
    },
  };
}

/** Returns the size of the PUBLISH packet (MQTT 5, 3.3). */
function packetBytes({ topic, payload, contentType, id }: MqttMessage): number {
  const text = (value: string) => 2 + Buffer.byteLength(value);
  const properties = 1 + text(contentType) + 1 + text('id') + text(id);
  const variable = text(topic) + 2 + lengthBytes(properties) + properties;
  const remaining = variable + Buffer.byteLength(payload);
  return 1 + lengthBytes(remaining) + remaining;
}

/** Bytes of a Variable Byte Integer (MQTT 5, 1.5.5): seven bits each. */
function lengthBytes(value: number): number {
  return value < 128 ? 1 : 1 + lengthBytes(Math.floor(value / 128));
}
