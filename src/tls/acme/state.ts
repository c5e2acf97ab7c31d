/** ACME on disk: account keys, the pending order, the certificate, and the state of the renewal. */
import { createPrivateKey, hash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { AppError, errorCodeOf, errorText, withAdvice } from '../../domain/app-error.ts';
import type { Logger } from '../../domain/ports.ts';
import { jsonOf } from '../../domain/text.ts';
import { readOwnerOnly, writeOwnerOnly } from '../../host/files.ts';
import { checkKeyPair, type LoadedCertificate } from '../certificate.ts';

/** Folder in the data directory; only its owner may read it and its files. */
export const acmeFolderName = 'acme';

/** Folders below the data directory with everything that another process needs to continue an order. */
export const acmeFolders = [acmeFolderName, join(acmeFolderName, 'challenges')];

/** Paths that protect keys: the folder, and its files with fixed names. */
export const acmeSecretFileNames = ['', 'certificate.json', 'order.json'].map((name) =>
  join(acmeFolderName, name),
);

const atUs = z.number().int();
const privateKeySchema = z.string().refine(isPrivateKey);

/** An account at one authority. Its key is saved before the authority receives it. */
const accountSchema = z.object({
  directoryUrl: z.string(),
  key: privateKeySchema,
  url: z.string().nullable(),
});

/** A placed order. With its key, the certificate can be downloaded after any interruption. */
const orderSchema = z.object({
  directoryUrl: z.string(),
  host: z.string(),
  url: z.string(),
  key: privateKeySchema,
  placedAtUs: atUs,
  /** True when its certificate was requested and counted. */
  isCounted: z.boolean(),
});
export type SavedOrder = z.infer<typeof orderSchema>;

/** Key and chain in one file, so that they always match. */
const certificateSchema = z.object({
  directoryUrl: z.string(),
  host: z.string(),
  key: z.string(),
  chain: z.string(),
});
export type SavedCertificate = z.infer<typeof certificateSchema>;

/** A saved certificate, checked. */
export type OwnCertificate = LoadedCertificate & { directoryUrl: string };

/** State that must survive restarts, to respect the limits of the authority. */
export const renewalStateSchema = z.object({
  directoryUrl: z.string(),
  host: z.string(),
  /** Failures since the last success. */
  failures: z.number().int().nonnegative(),
  lastAttemptAtUs: atUs.nullable(),
  lastSuccessAtUs: atUs.nullable(),
  /** `isProof`: the validation of the name failed, which can be tested at the staging directory. */
  lastFailure: z
    .object({
      atUs,
      message: z.string(),
      /** Missing in files of older versions, which have it in the message. */
      advice: z.string().optional(),
      isProof: z.boolean(),
    })
    .nullable(),
  /** After a failure, the time of the next attempt. */
  nextTryAtUs: atUs.nullable(),
  /** Times of the certificates requested in the last days. */
  issuedAtUs: z.array(atUs),
  /** Renewal information of one certificate (RFC 9773). */
  renewalInfo: z
    .object({
      certificateId: z.string(),
      /** Null if it is not available. */
      window: z.object({ startUs: atUs, endUs: atUs }).nullable(),
      askAgainAtUs: atUs,
    })
    .nullable(),
});
export type RenewalState = z.infer<typeof renewalStateSchema>;

/**
 * Content of the file, the latest state first. One state per authority and name, as two processes with different
 * settings on one data directory must not share their counts.
 */
export const renewalStatesSchema = z.object({ states: z.array(renewalStateSchema) });
type RenewalStates = z.infer<typeof renewalStatesSchema>;

export type AcmeFolder = ReturnType<typeof openAcmeFolder>;

/** Reads reject with `configuration`, writes with `unavailable`. */
export function openAcmeFolder(dataDir: string) {
  const pathOf = (name: string) => join(dataDir, acmeFolderName, name);
  const accountPath = (directoryUrl: string) =>
    pathOf(`account-${hash('sha256', directoryUrl).slice(0, 12)}.json`);
  const orderPath = pathOf('order.json');
  const certificatePath = pathOf('certificate.json');
  const statePath = pathOf('renewal.json');
  return {
    readAccount: (directoryUrl: string) => readSaved(accountPath(directoryUrl), accountSchema),
    writeAccount: (account: z.infer<typeof accountSchema>) =>
      writeSaved(accountPath(account.directoryUrl), account),
    readOrder: () => readSaved(orderPath, orderSchema),
    writeOrder: (order: SavedOrder) => writeSaved(orderPath, order),
    removeOrder: () => removeSaved(orderPath),
    readCertificate: async (): Promise<OwnCertificate | null> => {
      const saved = await readSaved(certificatePath, certificateSchema);
      return saved === null ? null : ownCertificate(saved, certificatePath);
    },
    writeCertificate: (certificate: SavedCertificate) => writeSaved(certificatePath, certificate),
    readState: () => readSaved(statePath, renewalStatesSchema),
    writeState: (states: RenewalStates) => writeSaved(statePath, states),
  };
}

/** Throws `configuration` when key and certificate do not match; `origin` names their source. */
export function ownCertificate(
  { directoryUrl, key, chain }: SavedCertificate,
  origin: string,
): OwnCertificate {
  const checked = checkKeyPair({ cert: chain, key }, { cert: origin, key: origin });
  return { ...checked, directoryUrl };
}

/** True for a certificate of this authority for this name. */
export function isFor(certificate: OwnCertificate, { directoryUrl, host }: Issue): boolean {
  return certificate.directoryUrl === directoryUrl && certificate.covers(host);
}

function isPrivateKey(pem: string): boolean {
  try {
    createPrivateKey(pem);
    return true;
  } catch {
    return false;
  }
}

/** Null without a file. Rejects with `configuration` if others may read it, or its content is invalid. */
async function readSaved<Value>(path: string, schema: z.ZodType<Value>): Promise<Value | null> {
  const text = readOwnerOnly(path);
  if (text === null) return null;
  const result = schema.safeParse(jsonOf(text));
  if (result.success) return result.data;
  throw new AppError('configuration', `${path} has invalid content.`, {
    advice: 'Move the file to another folder: earshot creates a new file.',
  });
}

/** Writes a text, or another value as JSON; on disk when it resolves. Rejects with `unavailable`. */
export async function writeSaved(path: string, value: unknown): Promise<void> {
  const text = typeof value === 'string' ? value : `${JSON.stringify(value, null, 2)}\n`;
  await writeOwnerOnly(path, text).catch((cause) => refuse(path, 'written', cause));
}

/** Removes a file or folder, if it exists. Rejects with `unavailable`. */
export async function removeSaved(path: string): Promise<void> {
  // Retries in case another process creates a file in the folder at the same time.
  const options = { recursive: true, force: true, maxRetries: 3 };
  await rm(path, options).catch((cause) => refuse(path, 'removed', cause));
}

function refuse(path: string, verb: string, cause: unknown): never {
  const code = errorCodeOf(cause);
  const isFull = code === 'ENOSPC' || code === 'EDQUOT';
  const why = isFull ? ': the disk is full' : '';
  const advice = isFull
    ? 'Free some space. The next attempt is automatic.'
    : 'Give the user that runs earshot write permission for the data directory and its content.';
  throw new AppError('unavailable', `${path} cannot be ${verb} (${code})${why}.`, {
    advice,
    cause,
  });
}

type Issue = Pick<RenewalState, 'directoryUrl' | 'host'>;

const statesMax = 10;

/** Returns the saved state of this authority and name, or a new one. */
export function stateFor({ directoryUrl, host }: Issue, saved: RenewalStates | null): RenewalState {
  const ours = saved?.states.find(isOf({ directoryUrl, host }));
  if (ours !== undefined) return ours;
  return {
    directoryUrl,
    host,
    failures: 0,
    lastAttemptAtUs: null,
    lastSuccessAtUs: null,
    lastFailure: null,
    nextTryAtUs: null,
    issuedAtUs: [],
    renewalInfo: null,
  };
}

/** Returns the saved states with one of them changed. */
export function withState(state: RenewalState, saved: RenewalStates | null): RenewalStates {
  const others = saved?.states.filter((one) => !isOf(state)(one)) ?? [];
  return { states: [state, ...others].slice(0, statesMax) };
}

function isOf({ directoryUrl, host }: Issue): (state: RenewalState) => boolean {
  return (state) => state.directoryUrl === directoryUrl && state.host === host;
}

export type StateKeeper = ReturnType<typeof createStateKeeper>;

/** Stores the renewal state of one authority and name on disk, and in memory while writes fail. */
export function createStateKeeper(
  folder: Pick<AcmeFolder, 'readState' | 'writeState'>,
  issue: Issue,
  log: Pick<Logger, 'error'>,
) {
  let unsaved: RenewalStates | null = null;
  let isLogged = false;
  const saved = () =>
    folder.readState().catch((error: unknown) => {
      if (!isLogged)
        log.error({ reason: errorText(error) }, 'failed to read renewal state; starting a new one');
      isLogged = true;
      return null;
    });
  return {
    /** Ignores an invalid file, which must not prevent a renewal. */
    read: async (): Promise<RenewalState> => stateFor(issue, unsaved ?? (await saved())),
    /** Never rejects: on a full disk, the state stays in memory, so that failures are still counted. */
    write: async (state: RenewalState): Promise<void> => {
      unsaved = withState(state, unsaved);
      try {
        await folder.writeState(withState(state, await saved()));
        unsaved = null;
      } catch (error) {
        log.error(
          { reason: errorText(error) },
          'failed to save renewal state; keeping it in memory',
        );
      }
    },
  };
}

const dayUs = 24 * 3_600_000_000;

/** Returns the state before a certificate is requested, which counts even if the request fails. */
export function afterIssue(state: RenewalState, nowUs: number): RenewalState {
  const recent = state.issuedAtUs.filter((issuedUs) => issuedUs > nowUs - 7 * dayUs);
  return { ...state, issuedAtUs: [...recent, nowUs] };
}

/** Returns the state after a certificate was saved. */
export function afterSuccess(state: RenewalState, nowUs: number): RenewalState {
  return {
    ...state,
    failures: 0,
    lastAttemptAtUs: nowUs,
    lastSuccessAtUs: nowUs,
    nextTryAtUs: null,
    renewalInfo: null,
  };
}

/** Returns message and advice of the last failure; null without one. */
export function lastFailureText({ lastFailure }: RenewalState): string | null {
  return lastFailure && withAdvice(lastFailure.message, lastFailure.advice);
}

/** Returns the state after a failure; message and advice of `error` are stored. */
export function afterFailure(
  state: RenewalState,
  failure: {
    nowUs: number;
    error: Pick<AppError, 'message' | 'advice'>;
    isProof: boolean;
    nextTryAtUs: number;
  },
): RenewalState {
  const { nowUs, isProof, nextTryAtUs } = failure;
  const { message, advice } = failure.error;
  return {
    ...state,
    failures: state.failures + 1,
    lastAttemptAtUs: nowUs,
    lastFailure: { atUs: nowUs, message, advice, isProof },
    nextTryAtUs,
  };
}
