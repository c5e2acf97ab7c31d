/** The key `sinks` of `earshot.config.ts`. */
import { z } from 'zod';
import { type FileKey, fileNameRule } from '../../core/config/subscriptions-file.ts';
import { type SinkInput, sinkFields, sinkSchema } from './sink-settings.ts';
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

const sinks: FileKey = {
  schema: z.record(
    z.string().regex(sinkNamePattern, fileNameRule),
    sinkSchema,
    "must be an object with a name for each sink, such as { archive: { command: ['node', 'act.js'] } }",
  ),
  fieldsAt: sinkFields,
};

export const fileKeys = { sinks };
