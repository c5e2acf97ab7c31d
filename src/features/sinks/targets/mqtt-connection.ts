/** Connections to MQTT brokers: MQTT 5, messages with QoS 1. */
import type { Socket } from 'node:net';
import type { ErrorWithReasonCode, IConnackPacket, MqttClient } from 'mqtt';
import { UnusableAnswer } from '../../../core/http/bounded-fetch.ts';
import { contextTrusting } from '../../../core/http/tls-settings.ts';
import { aborted } from '../target.ts';
import type { MqttSettings } from './mqtt.ts';

/** Imports the client library with the first item, so that other commands start without it. */
export const loadMqtt = () => import('mqtt');

/** Returns true for an error with a reason code of MQTT 5. Other errors have codes such as `ECONNRESET`. */
export function hasReasonCode(error: unknown): error is ErrorWithReasonCode {
  if (!(error instanceof Error) || error instanceof DOMException) return false;
  return 'code' in error && typeof error.code === 'number';
}

export interface MqttMessage {
  topic: string;
  payload: string;
  contentType: string;
  /** Sent as the user property `id`. */
  id: string;
  retain: boolean;
}

export interface MqttConnection {
  properties: NonNullable<IConnackPacket['properties']>;
  publish: ReturnType<typeof createPublish>;
  /** Settles when the connection has ended. */
  closed: () => Promise<Error>;
  close: () => Promise<void>;
}

const connectTimeoutMs = 10_000;

/** Maximum size of a packet of the broker, which sends only acknowledgements. */
const packetBytesMax = 2 ** 20;

/** A broker that does not respond within one and a half of this time is disconnected. */
const keepAliveSeconds = 15;

/** Time for the broker to close its side after a DISCONNECT. */
const closeTimeoutMs = 1_000;

/**
 * Connects with MQTT 5. The library neither reconnects nor repeats messages: both are the task of the sink's queue.
 * Rejects with the signal's reason when it is aborted, otherwise with the error. No socket stays open after a failure.
 */
export async function openMqtt(
  { url, login, ca, clientId }: MqttSettings,
  signal: AbortSignal,
  suffix = '',
): Promise<MqttConnection> {
  const { connect, ErrorWithReasonCode } = await loadMqtt();
  const giveUp = AbortSignal.any([signal, AbortSignal.timeout(connectTimeoutMs)]);
  giveUp.throwIfAborted();
  // Explicit, because an environment variable could otherwise disable the checks.
  const secure = {
    secureContext: contextTrusting(ca === null ? [] : [ca]),
    rejectUnauthorized: true,
  };
  const client = connect(url, {
    protocolVersion: 5,
    // By default, the library uses a random one.
    ...(clientId !== undefined && { clientId: `${clientId}${suffix}` }),
    keepalive: keepAliveSeconds,
    reconnectPeriod: 0,
    // `giveUp` ends it.
    connectTimeout: 2 * connectTimeoutMs,
    properties: { maximumPacketSize: packetBytesMax },
    ...secure,
    ...(login !== null && { username: login.user, password: login.password }),
  });
  const socket = client.stream as Socket;
  socket.setNoDelay(true);
  const end = (error: Error) => void socket.destroy(error);
  const ended = endOf(client, socket, (code) => {
    end(new ErrorWithReasonCode('the broker disconnected', code));
  });
  const failed = ended.then((error) => Promise.reject(error));
  // Observed by each message; without one, nobody waits for it.
  failed.catch(() => undefined);
  const cancel = () => void socket.destroy();
  giveUp.addEventListener('abort', cancel);
  try {
    const connected = new Promise<IConnackPacket>((resolve) => {
      client.once('connect', resolve);
    });
    const { properties = {} } = await Promise.race([connected, failed]);
    return {
      properties,
      publish: createPublish(client, properties, { failed, end }),
      closed: () => ended,
      close: async () => {
        client.end();
        socket.setTimeout(closeTimeoutMs, cancel);
        await ended;
      },
    };
  } catch (error) {
    socket.destroy();
    giveUp.throwIfAborted();
    throw error;
  } finally {
    giveUp.removeEventListener('abort', cancel);
  }
}

/** Resolves with the first error of the connection when it has ended. */
function endOf(
  client: MqttClient,
  socket: Socket,
  onDisconnect: (reasonCode: number) => void,
): Promise<Error> {
  let first: Error | null = null;
  // An invalid packet, or no response to pings. After an invalid packet, the library would wait for ever.
  for (const source of [client, socket]) {
    source.on('error', (error: Error) => {
      first ??= error;
      socket.destroy();
    });
  }
  client.on('disconnect', ({ reasonCode = 0 }) => onDisconnect(reasonCode));
  let closed = 'it closed the connection before the login: is this the port of an MQTT broker?';
  client.once('connect', () => {
    // Some brokers (mosquitto 2.0) send no reason code when another client takes the session over.
    closed = 'it closed the connection; another client with the same client id can be the cause';
  });
  return new Promise((resolve) => {
    client.on('close', () => resolve(first ?? new UnusableAnswer(closed)));
  });
}

/** Maximum size of a PUBLISH packet without topic and payload: an id, a content type, and lengths. */
const packetOverheadBytes = 128;

/**
 * Creates the function that publishes a message with QoS 1. It resolves with 0 when the broker has acknowledged it, also
 * without subscribers, otherwise with the reason code. Rejects when the connection ends, with the error that ended it,
 * or with the signal's reason: then a connection is closed on which nothing was acknowledged meanwhile, although the
 * broker may answer pings.
 */
function createPublish(
  client: MqttClient,
  properties: NonNullable<IConnackPacket['properties']>,
  { failed, end }: { failed: Promise<never>; end: (error: Error) => void },
) {
  const { maximumPacketSize = Number.POSITIVE_INFINITY, receiveMaximum = 65_535 } = properties;
  const inFlight = new Set<Promise<number>>();
  let acknowledged = 0;
  const publish = async (message: MqttMessage, signal: AbortSignal): Promise<number> => {
    const bytes = Buffer.byteLength(message.payload) + Buffer.byteLength(message.topic);
    if (bytes + packetOverheadBytes > maximumPacketSize) return 0x95;
    // The library ignores the broker's maximum (MQTT 5, 4.9).
    while (inFlight.size >= receiveMaximum) await Promise.race(inFlight);
    signal.throwIfAborted();
    const sent = publishOnce(client, message);
    inFlight.add(sent);
    return sent.finally(() => {
      inFlight.delete(sent);
      acknowledged += 1;
    });
  };
  return async (message: MqttMessage, signal: AbortSignal): Promise<number> => {
    const before = acknowledged;
    try {
      return await Promise.race([publish(message, signal), failed, aborted(signal)]);
    } catch (error) {
      if (acknowledged === before) end(new UnusableAnswer('it acknowledged nothing in time'));
      throw error;
    }
  };
}

async function publishOnce(client: MqttClient, message: MqttMessage): Promise<number> {
  const { topic, payload, contentType, id, retain } = message;
  const properties = { contentType, userProperties: { id } };
  try {
    // The library reports no error for 0x10 (no matching subscribers).
    await client.publishAsync(topic, payload, { qos: 1, retain, properties });
    return 0;
  } catch (error) {
    if (hasReasonCode(error)) return error.code;
    throw error;
  }
}
