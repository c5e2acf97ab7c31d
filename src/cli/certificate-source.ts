/** What the parts of the served certificate hand to each other. */
import type { ServeConfig } from '../config/read-config.ts';
import type { Logger } from '../domain/ports.ts';
import type { HandshakeOnly, KeyPair, Listener } from '../http/listener.ts';
import type { LoadedCertificate } from '../tls/certificate.ts';
import type { Io } from './io.ts';

export interface ServedCertificate {
  /** As a listener takes it: undefined for plain HTTP, null for HTTPS that has no certificate yet. */
  keyPair: KeyPair | null | undefined;
  handshakeOnly?: HandshakeOnly;
  /** What is served now: null while there is none, undefined for plain HTTP. */
  served(): Pick<LoadedCertificate, 'notBefore' | 'notAfter'> | null | undefined;
  /** Keeps the listener's certificate up to date from now on. */
  follow(listener: Pick<Listener, 'setKeyPair'>): { stop(): void | Promise<void> };
}

/** What tests make shorter, or know better. */
export interface CertificateTuning {
  certificateWatchMs?: number;
  /** Where orders are rehearsed after a failure. */
  stagingUrl?: string | null;
}

/** Without `fetch`, a challenge port that another program has is never thought to be a receiver's. */
export type CertificateIo = Pick<Io, 'nowUs' | 'random' | 'newId'> & Partial<Pick<Io, 'fetch'>>;

/** Where the certificate comes from, with the one that is there at the start. */
export type Source = Omit<ServedCertificate, 'served'> & { keyPair: LoadedCertificate | null };

export interface Served {
  config: ServeConfig;
  log: Logger;
  io: CertificateIo;
  tuning: CertificateTuning;
  onChange: (listener: Pick<Listener, 'setKeyPair'>) => (changed: LoadedCertificate) => void;
  /** Says in the log what is wrong with a certificate. */
  warn: (found: LoadedCertificate) => void;
}
