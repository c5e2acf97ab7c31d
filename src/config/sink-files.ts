/** The files that a sink names: secrets that not everybody may read, and certificates of authorities. */
import { readFileSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { holdsCertificates } from './holds-certificates.ts';

/** A place in `earshot.config.ts` that names a file. */
export interface FilePlace {
  /** Such as `sinks.archive.secretFile`. */
  where: string;
  /** What a path is seen from. */
  folder: string;
  /** What is wrong is added; it holds nothing of the file. */
  problems: string[];
}

/** The scheme's own bounds for a secret (Standard Webhooks 1.0, "Signature scheme"). */
const secretBytesMin = 24;
const secretBytesMax = 64;

/** What the file holds, without the line feed at its end; null where none is named or it cannot be used. */
export function readSecretFile(
  file: string | undefined,
  place: FilePlace,
  form: 'any' | 'webhook' = 'any',
): string | null {
  const secret = read(file, place, (path) => {
    // A group may: that is how systemd hands over what only root can read.
    if ((statSync(path).mode & 0o007) === 0) return null;
    return `every user of this machine may read ${path}. Run: chmod o= ${path}`;
  })?.replace(/\r?\n$/, '');
  if (secret === undefined) return null;
  if (secret === '') place.problems.push(`${place.where}: the file is empty.`);
  else if (form === 'webhook' && !isWebhookSecret(secret)) {
    place.problems.push(
      `${place.where}: the file must hold whsec_ and ${secretBytesMin} to ${secretBytesMax} random bytes in base64. Make one: echo "whsec_$(openssl rand -base64 32)"`,
    );
  } else return secret;
  return null;
}

/** The certificates in the file, as PEM; null where none is named or it cannot be used. */
export function readCaFile(file: string | undefined, place: FilePlace): string | null {
  const pem = read(file, place, () => null);
  if (pem === null || holdsCertificates(pem)) return pem;
  place.problems.push(`${place.where}: the file does not hold PEM certificates.`);
  return null;
}

function read(
  file: string | undefined,
  { where, folder, problems }: FilePlace,
  faultOf: (path: string) => string | null,
): string | null {
  if (file === undefined) return null;
  const path = resolve(folder, file);
  try {
    const isFolder = statSync(path).isDirectory();
    const fault = isFolder ? `${path} is a folder, not a file.` : faultOf(path);
    if (fault === null) return readFileSync(path, 'utf8');
    problems.push(`${where}: ${fault}`);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    problems.push(`${where}: ${path} cannot be read (${code}).`);
  }
  return null;
}

function isWebhookSecret(secret: string): boolean {
  const base64 = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1];
  if (base64 === undefined || base64.length % 4 !== 0) return false;
  const { byteLength } = Buffer.from(base64, 'base64');
  return byteLength >= secretBytesMin && byteLength <= secretBytesMax;
}
