/** The key `sinks` of `earshot.config.ts`. */
import { z } from 'zod';
import { type FileKey, fileNameRule } from '../../core/config/subscriptions-file.ts';
import { type SinkInput, sinkFields, sinkSchema } from './sink-settings.ts';
import { clientIdOf } from './targets/mqtt.ts';
import { sinkNamePattern } from './terms.ts';

declare module '../../core/config/subscriptions-file.ts' {
  interface ConfigFile {
    sinks?: Readonly<Record<string, SinkInput>> | undefined;
  }
  interface EarshotConfig {
    /** Targets that notifications are delivered to, by name. */
    sinks?: Readonly<Record<string, z.input<typeof sinkSchema>>> | undefined;
  }
}

export const variables = {};

export const sections = {};

/** Two clients with one id disconnect each other (MQTT 5, 3.1.4). */
function refuseSharedClients(
  sinks: Readonly<Record<string, SinkInput>>,
  context: z.RefinementCtx,
): void {
  const clients = new Map<string, string>();
  for (const [name, { mqtt }] of Object.entries(sinks)) {
    if (mqtt === undefined) continue;
    const client = `${mqtt.url} ${clientIdOf(mqtt, name)}`;
    const other = clients.get(client);
    if (other === undefined) clients.set(client, name);
    else {
      const message = `has the same client id as the sink ${other}; set another one`;
      context.addIssue({ code: 'custom', path: [name, 'mqtt', 'clientId'], message });
    }
  }
}

const sinks: FileKey = {
  schema: z
    .record(
      z.string().regex(sinkNamePattern, fileNameRule),
      sinkSchema,
      "must be an object with a name for each sink, such as { archive: { command: ['node', 'act.js'] } }",
    )
    .superRefine(refuseSharedClients),
  fieldsAt: sinkFields,
};

export const fileKeys = { sinks };
