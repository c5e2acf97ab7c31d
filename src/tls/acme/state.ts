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

/** In the data directory; owner-only, as are the files in it. */
export const acmeFolderName = 'acme';

/** What holds keys: the folder, which keeps others out of all that is in it, and files of fixed names. */
export const acmeSecretFileNames = ['', 'certificate.json', 'order.json'].map((name) =>
  join(acmeFolderName, name),
);

const atUs = z.number().int();
const privateKeySchema = z.string().refine(isPrivateKey);

/** An account at one authority. Its key is on disk before the authority receives it. */
const accountSchema = z.object({
  directoryUrl: z.string(),
  key: privateKeySchema,
  url: z.string().nullable(),
});

/** An order that was placed. With its key, the certificate can be fetched after any interruption. */
const orderSchema = z.object({
  directoryUrl: z.string(),
  host: z.string(),
  url: z.string(),
  key: privateKeySchema,
  placedAtUs: atUs,
  /** Its certificate was requested, and is in the count. */
  isCounted: z.boolean(),
});
export type SavedOrder = z.infer<typeof orderSchema>;

/** Key and chain in one file, so that they are always those of one order. */
const certificateSchema = z.object({
  directoryUrl: z.string(),
  host: z.string(),
  key: z.string(),
  chain: z.string(),
});
export type SavedCertificate = z.infer<typeof certificateSchema>;

/** A saved certificate, checked. */
export type OwnCertificate = LoadedCertificate & { directoryUrl: string };

/** What must survive restarts to respect an authority's limits: failures, issues, its advice. */
export const renewalStateSchema = z.object({
  directoryUrl: z.string(),
  host: z.string(),
  /** Failures since the last success. */
  failures: z.number().int().nonnegative(),
  lastAttemptAtUs: atUs.nullable(),
  lastSuccessAtUs: atUs.nullable(),
  /** `isProof`: the name was not proved, which can be rehearsed at the staging directory. */
  lastFailure: z
    .object({
      atUs,
      message: z.string(),
      /** Absent in files of older versions, which have it in the message. */
      advice: z.string().optional(),
      isProof: z.boolean(),
    })
    .nullable(),
  /** After a failure: no attempt before this time. */
  nextTryAtUs: atUs.nullable(),
  /** When certificates were requested in the last days, their names being proved. */
  issuedAtUs: z.array(atUs),
  /** The authority's advice on one certificate (RFC 9773). */
  renewalInfo: z
    .object({
      certificateId: z.string(),
      /** Null while it could not be had. */
      window: z.object({ startUs: atUs, endUs: atUs }).nullable(),
      askAgainAtUs: atUs,
    })
    .nullable(),
});
export type RenewalState = z.infer<typeof renewalStateSchema>;

/**
 * The file's content, the state written last first. One per authority and name: two programs with different
 * settings on one data directory must not share their counts.
 */
export const renewalStatesSchema = z.object({ states: z.array(renewalStateSchema) });
type RenewalStates = z.infer<typeof renewalStatesSchema>;

export type AcmeFolder = ReturnType<typeof openAcmeFolder>;

/** Each reading call rejects with `configuration`, each writing one with `unavailable`. */
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

/** Throws `configuration` when key and certificate do not fit; `origin` is where they come from. */
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

/** Null without a file. Rejects with `configuration` for one that others may read or with other content. */
async function readSaved<Value>(path: string, schema: z.ZodType<Value>): Promise<Value | null> {
  const text = readOwnerOnly(path);
  if (text === null) return null;
  const result = schema.safeParse(jsonOf(text));
  if (result.success) return result.data;
  throw new AppError('configuration', `${path} is not as earshot wrote it.`, {
    advice: 'Move it away: what is missing is made anew.',
  });
}

/** Writes JSON, or a text as it is; on disk when it resolves. Rejects with `unavailable`. */
export async function writeSaved(path: string, value: unknown): Promise<void> {
  const text = typeof value === 'string' ? value : `${JSON.stringify(value, null, 2)}\n`;
  await writeOwnerOnly(path, text).catch((cause) => refuse(path, 'written', cause));
}

/** Removes a file or folder, if it is there. Rejects with `unavailable`. */
export async function removeSaved(path: string): Promise<void> {
  // Another program may be creating a file in the folder at this moment: Node retries.
  const options = { recursive: true, force: true, maxRetries: 3 };
  await rm(path, options).catch((cause) => refuse(path, 'removed', cause));
}

function refuse(path: string, verb: string, cause: unknown): never {
  const code = errorCodeOf(cause);
  const isFull = code === 'ENOSPC' || code === 'EDQUOT';
  const why = isFull ? ': the disk is full' : '';
  const advice = isFull
    ? 'Free some space; it is tried again by itself.'
    : 'Give the user of the receiver write permission to the data directory and what is in it.';
  throw new AppError('unavailable', `${path} cannot be ${verb} (${code})${why}.`, {
    advice,
    cause,
  });
}

type Issue = Pick<RenewalState, 'directoryUrl' | 'host'>;

const statesMax = 10;

/** The state of this authority and name; one from before the first attempt where none was saved. */
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

/** What is to be saved: a changed state, and the others as they were. */
export function withState(state: RenewalState, saved: RenewalStates | null): RenewalStates {
  const others = saved?.states.filter((one) => !isOf(state)(one)) ?? [];
  return { states: [state, ...others].slice(0, statesMax) };
}

function isOf({ directoryUrl, host }: Issue): (state: RenewalState) => boolean {
  return (state) => state.directoryUrl === directoryUrl && state.host === host;
}

export type StateKeeper = ReturnType<typeof createStateKeeper>;

/** Keeps the renewal state of one authority and name on disk, and in memory while the disk refuses it. */
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
        log.error({ reason: errorText(error) }, 'the state of the renewal begins anew');
      isLogged = true;
      return null;
    });
  return {
    /** A file that cannot be used counts as none: it must not prevent a renewal. */
    read: async (): Promise<RenewalState> => stateFor(issue, unsaved ?? (await saved())),
    /** Never rejects: a full disk must not make us forget that we have just failed. */
    write: async (state: RenewalState): Promise<void> => {
      unsaved = withState(state, unsaved);
      try {
        await folder.writeState(withState(state, await saved()));
        unsaved = null;
      } catch (error) {
        log.error({ reason: errorText(error) }, 'the state of the renewal is kept in memory alone');
      }
    },
  };
}

const dayUs = 24 * 3_600_000_000;

/** The state when a certificate is about to be issued: it counts, whatever becomes of it. */
export function afterIssue(state: RenewalState, nowUs: number): RenewalState {
  const recent = state.issuedAtUs.filter((issuedUs) => issuedUs > nowUs - 7 * dayUs);
  return { ...state, issuedAtUs: [...recent, nowUs] };
}

/** The state when a certificate is saved. */
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

/** The text of the last failure, to be shown; null without one. */
export function lastFailureText({ lastFailure }: RenewalState): string | null {
  return lastFailure && withAdvice(lastFailure.message, lastFailure.advice);
}

/** The state after a failure, whose words are shown to the user. */
export function afterFailure(
  state: RenewalState,
  failure: {
    nowUs: number;
    words: Pick<AppError, 'message' | 'advice'>;
    isProof: boolean;
    nextTryAtUs: number;
  },
): RenewalState {
  const { nowUs, words, isProof, nextTryAtUs } = failure;
  const { message, advice } = words;
  return {
    ...state,
    failures: state.failures + 1,
    lastAttemptAtUs: nowUs,
    lastFailure: { atUs: nowUs, message, advice, isProof },
    nextTryAtUs,
  };
}
