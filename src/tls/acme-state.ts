/** Files of a certificate from an authority (ACME): account and attempts, and the pair. When the pair is renewed. */
import { generateKeyPairSync, X509Certificate } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { AppError, errorCodeOf, withAdvice } from '../domain/app-error.ts';
import { shortDateUs } from '../domain/dates.ts';
import { type Finding, failedFinding } from '../domain/finding.ts';
import { jsonOf } from '../domain/text.ts';
import { readOwnerOnly, writeOwnerOnly } from '../host/files.ts';
import { checkKeyPair, type LoadedCertificate } from './certificate.ts';

/** Folder in the data directory. */
export const acmeFolderName = 'acme';
const statePath = join(acmeFolderName, 'state.json');
const pairPath = join(acmeFolderName, 'certificate.json');
/** Response to the current challenge; removed after each order. */
export const challengePath = join(acmeFolderName, 'challenge.json');

/** Files below the data directory that a backup contains: they have the account key and the pair. */
export const acmeKeptFiles: readonly string[] = [statePath, pairPath];

/** The certificate that the settings request. */
export interface Issue {
  directoryUrl: string;
  host: string;
}

const atUs = z.int();

const stateSchema = z.object({
  directoryUrl: z.string(),
  host: z.string(),
  /** PEM; identifies the account at the authority. */
  accountKey: z.string(),
  /** Failures since the last success. */
  failures: z.int().nonnegative(),
  lastAttemptAtUs: atUs.nullable(),
  lastSuccessAtUs: atUs.nullable(),
  /** No automatic attempt before this time. */
  nextAttemptAtUs: atUs.nullable(),
  /** `link`: the page where a person can resume the account. */
  lastFailure: z
    .object({ message: z.string(), advice: z.string(), link: z.string().nullable() })
    .nullable(),
  /** Renewal advice of the authority (RFC 9773) for one certificate; `renewAtUs` is null if there is none. */
  window: z
    .object({ certificateId: z.string(), renewAtUs: atUs.nullable(), checkedAtUs: atUs })
    .nullable(),
});
export type AcmeState = z.infer<typeof stateSchema>;

/** Key and chain in one file, so that they always match. */
const pairSchema = z.object({
  directoryUrl: z.string(),
  host: z.string(),
  key: z.string(),
  chain: z.string(),
});
export type SavedPair = z.infer<typeof pairSchema>;

/** A saved certificate, checked. */
export type OwnCertificate = ReturnType<typeof checkedPair>;

/** Reads the state of this authority and name; a new one if there is none. Throws `configuration` for an invalid file. */
export function readState(dataDir: string, { directoryUrl, host }: Issue): AcmeState {
  const saved = readSaved(join(dataDir, statePath), stateSchema);
  if (saved?.directoryUrl === directoryUrl && saved.host === host) return saved;
  const isOurs = saved?.directoryUrl === directoryUrl;
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

/** Throws `configuration` for an invalid file. */
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
  throw new AppError('configuration', `${path} has invalid content.`, {
    advice: 'Move the file to another folder: earshot creates a new file.',
  });
}

/** Replaces a file; on disk when it resolves. Rejects with `unavailable`. */
export async function writeSaved(path: string, value: unknown): Promise<void> {
  await writeOwnerOnly(path, `${JSON.stringify(value, null, 2)}\n`).catch((cause: unknown) => {
    const code = errorCodeOf(cause);
    const isFull = code === 'ENOSPC' || code === 'EDQUOT';
    const advice = isFull
      ? 'The disk is full. Free some space. The next attempt is automatic.'
      : 'Give the user that runs earshot write permission for the data directory and its content.';
    throw new AppError('unavailable', `${path} cannot be written (${code}).`, { advice, cause });
  });
}

const minuteUs = 60_000_000;
const hourUs = 60 * minuteUs;
const dayUs = 24 * hourUs;

type Validity = Pick<LoadedCertificate, 'notBefore' | 'notAfter'>;

/** A short lifetime is renewed with half of it left, to have time for retries. */
const shortLifetimeUs = 10 * dayUs;

/**
 * Returns the time of the renewal: when a third of the lifetime is left (half of a short one), or the time that the
 * authority advises, if that is earlier.
 */
export function renewalDue({ notBefore, notAfter }: Validity, advisedAtUs: number | null) {
  const endUs = notAfter.getTime() * 1000;
  const lifetimeUs = endUs - notBefore.getTime() * 1000;
  const shareLeft = lifetimeUs <= shortLifetimeUs ? 1 / 2 : 1 / 3;
  const atUs = Math.round(endUs - lifetimeUs * shareLeft);
  if (advisedAtUs === null || advisedAtUs >= atUs) return { atUs, because: 'lifetime' as const };
  return { atUs: advisedAtUs, because: 'authority' as const };
}

/** Share of the lifetime that is left. */
export function shareLeft({ notBefore, notAfter }: Validity, nowUs: number): number {
  const endUs = notAfter.getTime() * 1000;
  return (endUs - nowUs) / (endUs - notBefore.getTime() * 1000);
}

/** At most this delay is doubled to, unless the authority requests a longer one. */
const retryUsMax = 6 * hourUs;
const retryAfterUsMax = 7 * dayUs;

/** Returns the delay after `failures` in a row: from a minute to six hours, or the longer one that was requested. */
export function retryDelayUs(
  failures: number,
  retryAfterMs: number | null,
  { needsPerson, random }: { needsPerson: boolean; random: () => number },
): number {
  const doubledUs = Math.min(minuteUs * 2 ** (failures - 1), retryUsMax);
  const requestedUs = Math.min((retryAfterMs ?? 0) * 1000, retryAfterUsMax);
  const delayUs = Math.max(doubledUs, requestedUs, needsPerson ? retryUsMax : 0);
  return Math.round(delayUs * (1 + random() / 4));
}

/**
 * Returns the delay before a new certificate may be renewed automatically. One that is already due means a wrong clock
 * or a fault of the authority, and the next one would be due, too. Let's Encrypt allows five in a week.
 */
export function freshUs({ notBefore, notAfter }: Validity): number {
  const lifetimeUs = (notAfter.getTime() - notBefore.getTime()) * 1000;
  return Math.round(Math.min(2 * dayUs, lifetimeUs / 4));
}

/**
 * Returns the id of a certificate in renewal information (RFC 9773, 4.1): the key identifier of its issuer and its
 * serial number. Null without a key identifier.
 */
function certificateIdOf(chainPem: string): string | null {
  const { raw, serialNumber } = new X509Certificate(chainPem);
  // The extension: its identifier, and three nested headers of two bytes each.
  const extension = Buffer.from('0603551d23', 'hex');
  const at = raw.indexOf(extension);
  const value = raw.subarray(at + extension.length);
  const [, , , , tag, length = 0] = value;
  if (at === -1 || tag !== 0x80 || length > 64) return null;
  const serial = Buffer.from(serialNumber, 'hex');
  // DER adds a zero byte before a number whose first bit is set.
  const octets = (serial[0] ?? 0) > 0x7f ? Buffer.concat([Buffer.alloc(1), serial]) : serial;
  const keyId = value.subarray(6, 6 + length).toString('base64url');
  return `${keyId}.${octets.toString('base64url')}`;
}

/**
 * Returns certificate, attempts and next renewal, from the files alone; `certificate` and `due` are null without a
 * certificate for these settings. `latestOwn` is one that a process with other settings may have replaced in the file.
 */
export function renewalStatus(
  dataDir: string,
  issue: Issue,
  latestOwn: OwnCertificate | null = null,
) {
  const saved = readCertificate(dataDir);
  const isOurs = saved?.directoryUrl === issue.directoryUrl && saved.covers(issue.host);
  const certificate = isOurs ? saved : latestOwn;
  const state = readState(dataDir, issue);
  const certificateId = certificate && certificateIdOf(certificate.cert);
  const isAdvised = state.window?.certificateId === certificateId;
  const due =
    certificate && renewalDue(certificate, isAdvised ? (state.window?.renewAtUs ?? null) : null);
  return { saved, certificate, certificateId, state, due };
}

/** Returns message and advice of the last failure; null after a success. */
export function lastFailureText({ lastFailure }: AcmeState): string | null {
  return lastFailure && withAdvice(lastFailure.message, lastFailure.advice);
}

/** Checks, for `earshot doctor`, that there is a certificate, and that the last attempt succeeded. */
export function checkRenewal(dataDir: string, issue: Issue, nowUs: number): Finding[] {
  const check = 'renewal';
  try {
    const { certificate, due, state } = renewalStatus(dataDir, issue);
    const isUrgent = certificate === null || shareLeft(certificate, nowUs) < 1 / 5;
    const { lastFailure } = state;
    if (lastFailure !== null) {
      const message = `The last attempt failed. ${lastFailure.message}`;
      return [{ check, state: isUrgent ? 'fail' : 'warn', message, advice: lastFailure.advice }];
    }
    if (due === null) {
      const message = `There is no certificate of this authority for ${issue.host} yet.`;
      const advice = 'To order a certificate, start the receiver: `earshot start`.';
      return [{ check, state: 'warn', message, advice }];
    }
    return [{ check, state: 'pass', message: `Next renewal: ${shortDateUs(due.atUs)} UTC.` }];
  } catch (error) {
    return [failedFinding(check, error, 'Check the folder acme in the data directory.')];
  }
}
