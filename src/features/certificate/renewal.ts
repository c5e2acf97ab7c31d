/** The certificate of an authority (ACME): its files in the data directory, the time of its renewal, and of the next attempt. */
import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { readOwnerOnly, writeOwnerOnly } from '../../core/host/files.ts';
import { AppError } from '../../core/terms/app-error.ts';
import { dayUs, hourUs, minuteUs } from '../../core/terms/dates.ts';
import { faultError } from '../../core/terms/faults.ts';
import { jsonOf } from '../../core/terms/text.ts';
import { checkKeyPair, type LoadedCertificate } from './certificate.ts';

/** Files in the data directory. */
const statePath = 'acme/state.json';
const pairPath = 'acme/certificate.json';
/** Response to the current challenge; removed after each order. */
export const challengePath = 'acme/challenge.json';

/** The certificate that the settings request. */
export interface Issue {
  directoryUrl: string;
  host: string;
}

const momentUs = z.int().nullable();

const stateSchema = z.object({
  directoryUrl: z.string(),
  host: z.string(),
  /** PEM; identifies the account at the authority. */
  accountKey: z.string(),
  /** Failures since the last success. */
  failures: z.int().nonnegative(),
  lastAttemptAtUs: momentUs,
  lastSuccessAtUs: momentUs,
  /** No automatic attempt before this time. */
  nextAttemptAtUs: momentUs,
  /** With advice. */
  lastFailure: z.object({ text: z.string() }).nullable(),
  /** Renewal advice of the authority (RFC 9773) for the current certificate; `renewAtUs` is null if there is none. */
  window: z.object({ renewAtUs: momentUs, checkedAtUs: z.int() }).nullable(),
});
export type AcmeState = z.infer<typeof stateSchema>;

/** Key and chain in one file, so that they always match. */
const pairSchema = z.object({ directoryUrl: z.string(), key: z.string(), chain: z.string() });
export type SavedPair = z.infer<typeof pairSchema>;

/** A saved certificate, checked. */
export type OwnCertificate = ReturnType<typeof checkedPair>;

/** Reads the state of this authority and name; a new one if there is none. Throws `configuration` for an invalid file. */
export function readState(dataDir: string, { directoryUrl, host }: Issue): AcmeState {
  const saved = readSaved(join(dataDir, statePath), stateSchema);
  const isOurs = saved?.directoryUrl === directoryUrl;
  if (isOurs && saved.host === host) return saved;
  return {
    ...{ directoryUrl, host, accountKey: isOurs ? saved.accountKey : createKey() },
    ...{ failures: 0, lastAttemptAtUs: null, lastSuccessAtUs: null, nextAttemptAtUs: null },
    ...{ lastFailure: null, window: null },
  };
}

/** Creates a private key (PEM, P-256). */
export function createKey(): string {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

export function writeState(dataDir: string, state: AcmeState): Promise<void> {
  return writeSaved(join(dataDir, statePath), state);
}

export function writePair(dataDir: string, pair: SavedPair): Promise<void> {
  return writeSaved(join(dataDir, pairPath), pair);
}

/** Reads the pair of any authority and name. Throws `configuration` for an invalid file. */
export function readCertificate(dataDir: string): OwnCertificate | null {
  const path = join(dataDir, pairPath);
  const pair = readSaved(path, pairSchema);
  return pair && checkedPair(pair, path);
}

/** Throws `configuration` when key and certificate do not match; `origin` names their source. */
export function checkedPair({ directoryUrl, key, chain }: SavedPair, origin: string) {
  return { ...checkKeyPair({ cert: chain, key }, { cert: origin, key: origin }), directoryUrl };
}

function readSaved<Value>(path: string, schema: z.ZodType<Value>): Value | null {
  const text = readOwnerOnly(path);
  if (text === null) return null;
  const result = schema.safeParse(jsonOf(text));
  if (result.success) return result.data;
  const advice = 'Move the file to another folder: earshot creates a new file.';
  throw new AppError('configuration', `${path} has invalid content.`, { advice });
}

/** Replaces a file; on disk when it resolves. Rejects with `unavailable`. */
export async function writeSaved(path: string, value: unknown): Promise<void> {
  await writeOwnerOnly(path, `${JSON.stringify(value, null, 2)}\n`).catch((cause: unknown) => {
    throw faultError('unavailable', `${path} cannot be written`, cause);
  });
}

/** A short lifetime is renewed with half of it left, to have time for retries. */
const shortLifetimeUs = 10 * dayUs;

/**
 * Returns the time of the renewal: when a third of the lifetime is left (half of a short one), or the time that the
 * authority advises, if that is earlier.
 */
export function renewalDueUs(
  { notBeforeUs, notAfterUs }: Pick<LoadedCertificate, 'notBeforeUs' | 'notAfterUs'>,
  advisedAtUs: number | null,
): number {
  const lifetimeUs = notAfterUs - notBeforeUs;
  const leftUs = lifetimeUs / (lifetimeUs <= shortLifetimeUs ? 2 : 3);
  return Math.round(Math.min(notAfterUs - leftUs, advisedAtUs ?? Number.POSITIVE_INFINITY));
}

/** The delay is doubled up to this maximum, unless the authority requests a longer one. */
const retryUsMax = 6 * hourUs;
const requestedUsMax = 7 * dayUs;

/** Returns the delay after `failures` in a row: from a minute to six hours, or the longer one that was requested. */
export function retryDelayUs(failures: number, requestedUs: number, random: () => number): number {
  const doubledUs = Math.min(minuteUs * 2 ** (failures - 1), retryUsMax);
  const delayUs = Math.max(doubledUs, Math.min(requestedUs, requestedUsMax));
  return Math.round(delayUs * (1 + random() / 4));
}

/**
 * Returns certificate, attempts and next renewal, from the files alone. `saved` may be of other settings; `certificate`
 * and `renewsAtUs` are null without a certificate for these settings.
 */
export function renewalStatus(dataDir: string, { directoryUrl, host }: Issue) {
  const saved = readCertificate(dataDir);
  const certificate = saved?.directoryUrl === directoryUrl && saved.covers(host) ? saved : null;
  const state = readState(dataDir, { directoryUrl, host });
  const renewsAtUs = certificate && renewalDueUs(certificate, state.window?.renewAtUs ?? null);
  return { saved, certificate, state, renewsAtUs };
}
