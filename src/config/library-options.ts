/** What a program may say that uses earshot as a library, checked before anything is opened. */
import { z } from 'zod';
import { AppError } from '../domain/app-error.ts';
import type { Intake, Logger } from '../domain/ports.ts';
import type { CredentialPairs } from './endpoint-credentials.ts';
import { addressRanges } from './value-schemas.ts';

export interface CheckedReceiverOptions {
  store: Intake;
  credentials: CredentialPairs;
  trustedProxies: string[];
  log: Logger;
}

const nothing = () => undefined;
const silentLog: Logger = { debug: nothing, info: nothing, warn: nothing, error: nothing };

const receiverOptions = z.strictObject({
  store: withMethods<Intake>(['accept', 'checkWritable'], 'must be what openStore resolves with'),
  credentials: z
    .array(
      z.strictObject({
        username: z.string().regex(/^[^:]+$/, 'must hold something, and no colon (RFC 7617)'),
        password: z.string().min(1, 'must hold something'),
      }),
    )
    .min(1, 'must hold at least one pair; without one nobody could be let in'),
  trustedProxies: z
    .array(addressRanges)
    .default([])
    .transform((ranges) => ranges.flat()),
  log: withMethods<Logger>(
    ['debug', 'info', 'warn', 'error'],
    'must have debug, info, warn and error, as pino and console have',
  ).default(silentLog),
  onOutcome: z
    .custom((value) => value === undefined || typeof value === 'function', 'must be a function')
    .optional(),
});

const storeOptions = z.strictObject({ dataDir: z.string().min(1, 'must name a folder') });

/** Throws `configuration` with every problem at once, and never the value of a secret. */
export function checkReceiverOptions(options: unknown): CheckedReceiverOptions {
  const { onOutcome, ...checked } = parse(receiverOptions, options, 'createReceiver');
  return checked;
}

/** Throws `configuration`. */
export function checkStoreOptions(options: unknown): { dataDir: string } {
  return parse(storeOptions, options, 'openStore');
}

function parse<Schema extends z.ZodType>(schema: Schema, options: unknown, name: string) {
  const result = schema.safeParse(options);
  if (result.success) return result.data;
  const details = result.error.issues.map(
    ({ path, message }) => `${path.length === 0 ? 'options' : path.join('.')}: ${message}`,
  );
  throw new AppError(
    'configuration',
    `${name} cannot use its options (docs/library.md): ${details.join('; ')}.`,
    { details },
  );
}

function withMethods<Port extends object>(methods: readonly (keyof Port)[], message: string) {
  const has = (value: unknown) =>
    typeof value === 'object' &&
    value !== null &&
    methods.every((name) => typeof Reflect.get(value, name) === 'function');
  return z.custom<Port>(has, message);
}
