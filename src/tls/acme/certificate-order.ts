/** What an order is for, and what it needs around it. */
import type { AcmeFolder, OwnCertificate } from './acme-folder.ts';
import type { Authority } from './authority.ts';
import type { ChallengeFolder } from './challenge-folder.ts';

export interface CertificateOrder {
  directoryUrl: string;
  /** The one name in the certificate. */
  host: string;
  challenge: 'http-01' | 'tls-alpn-01';
  /** The id of the certificate that this one follows, where the authority wants to know. */
  replaces?: string | null;
}

export interface OrderWorld {
  authority: Authority;
  folder: Pick<AcmeFolder, 'readOrder' | 'writeOrder' | 'removeOrder'>;
  challenges: ChallengeFolder;
  /** Rejects with `configuration` when challenges could not be answered. */
  openDoor: () => Promise<void>;
  /** Called once for each order, before its certificate is made. */
  noteIssue: () => Promise<void>;
  nowUs: () => number;
  /** Told of each step, for somebody who waits. */
  tell: (step: string) => void;
  signal: AbortSignal;
}

/** True for a certificate of this authority for this name. */
export function isFor(
  certificate: OwnCertificate,
  { directoryUrl, host }: Pick<CertificateOrder, 'directoryUrl' | 'host'>,
): boolean {
  return certificate.directoryUrl === directoryUrl && certificate.covers(host);
}
