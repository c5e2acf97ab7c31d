/** What ACME leaves in the data directory: account keys, the order in hand, the certificate. */
import { createPrivateKey, hash } from 'node:crypto';
import { join } from 'node:path';
import { z } from 'zod';
import { checkKeyPair, type LoadedCertificate } from '../certificate-files.ts';
import { type RenewalStates, renewalStatesSchema } from './renewal-state.ts';
import { readSaved, removeFile, writeSaved } from './saved-file.ts';

/** In the data directory; owner-only, as are the files in it. */
export const acmeFolderName = 'acme';

/** What holds keys: the folder, which keeps others out of all that is in it, and files of fixed names. */
export const acmeSecretFileNames = ['', 'certificate.json', 'order.json'].map((name) =>
  join(acmeFolderName, name),
);

const privateKeySchema = z.string().refine(isPrivateKey);

/** An account at one authority. Its key is on disk before the authority hears of it. */
const accountSchema = z.object({
  directoryUrl: z.string(),
  key: privateKeySchema,
  url: z.string().nullable(),
});
export type SavedAccount = z.infer<typeof accountSchema>;

/** An order that was placed. With its key, the certificate can be fetched after any interruption. */
const orderSchema = z.object({
  directoryUrl: z.string(),
  host: z.string(),
  url: z.string(),
  key: privateKeySchema,
  placedAtUs: z.number().int(),
  /** That its certificate was asked for, and has been counted. */
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

export interface AcmeFolder {
  readAccount(directoryUrl: string): Promise<SavedAccount | null>;
  writeAccount(account: SavedAccount): Promise<void>;
  readOrder(): Promise<SavedOrder | null>;
  writeOrder(order: SavedOrder): Promise<void>;
  removeOrder(): Promise<void>;
  readCertificate(): Promise<OwnCertificate | null>;
  writeCertificate(certificate: SavedCertificate): Promise<void>;
  readState(): Promise<RenewalStates | null>;
  writeState(states: RenewalStates): Promise<void>;
}

/** Each reading call rejects with `configuration`, each writing one with `unavailable`. */
export function openAcmeFolder(dataDir: string): AcmeFolder {
  const pathOf = (name: string) => join(dataDir, acmeFolderName, name);
  const accountPath = (directoryUrl: string) =>
    pathOf(`account-${hash('sha256', directoryUrl).slice(0, 12)}.json`);
  const orderPath = pathOf('order.json');
  const certificatePath = pathOf('certificate.json');
  const statePath = pathOf('renewal.json');
  return {
    readAccount: (directoryUrl) => readSaved(accountPath(directoryUrl), accountSchema),
    writeAccount: (account) => writeSaved(accountPath(account.directoryUrl), account),
    readOrder: () => readSaved(orderPath, orderSchema),
    writeOrder: (order) => writeSaved(orderPath, order),
    removeOrder: () => removeFile(orderPath),
    readCertificate: async () => {
      const saved = await readSaved(certificatePath, certificateSchema);
      return saved === null ? null : ownCertificate(saved, certificatePath);
    },
    writeCertificate: (certificate) => writeSaved(certificatePath, certificate),
    readState: () => readSaved(statePath, renewalStatesSchema),
    writeState: (states) => writeSaved(statePath, states),
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

function isPrivateKey(pem: string): boolean {
  try {
    createPrivateKey(pem);
    return true;
  } catch {
    return false;
  }
}
