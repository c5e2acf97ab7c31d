/** What an order is for, and what it needs around it. */
import type { AcmeFolder } from './acme-folder.ts';
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
  nowUs: () => number;
  /** Told of each step, for somebody who waits. */
  tell: (step: string) => void;
  signal: AbortSignal;
}
