/** Everything that getting a certificate touches, opened once for a program. */
import type { Logger } from '../../domain/ports.ts';
import { type AcmeFolder, openAcmeFolder } from './acme-folder.ts';
import { stagingOf } from './authority.ts';
import type { CertificateOrder } from './certificate-order.ts';
import { type ChallengeFolder, openChallengeFolder } from './challenge-folder.ts';
import { createStateKeeper, type StateKeeper } from './state-keeper.ts';

export interface AcmeSettings {
  directoryUrl: string;
  host: string;
  challenge: CertificateOrder['challenge'];
  email: string | undefined;
  /** PEM of roots that the authority's own HTTPS is checked against besides the usual ones. */
  extraCaPem: string | undefined;
  eab: { keyId: string; hmacKey: string } | undefined;
}

export interface AcmeWorld {
  settings: AcmeSettings;
  /** Where the same order can be tried without counting; null where nobody knows. */
  stagingUrl: string | null;
  folder: AcmeFolder;
  states: StateKeeper;
  challenges: ChallengeFolder;
  /** Rejects with `configuration` when challenges could not be answered. */
  openDoor: () => Promise<void>;
  nowUs: () => number;
  random: () => number;
  /** Told of each step of an order, for somebody who waits. */
  tell: (step: string) => void;
  signal: AbortSignal;
}

export function openAcmeWorld(options: {
  settings: AcmeSettings;
  dataDir: string;
  /** Only tests know better. */
  stagingUrl?: string | null;
  openDoor: (challenges: ChallengeFolder) => Promise<void>;
  log: Pick<Logger, 'error'>;
  tell?: (step: string) => void;
  nowUs: () => number;
  random: () => number;
  signal: AbortSignal;
}): AcmeWorld {
  const { settings, dataDir, log, nowUs, random, signal } = options;
  const folder = openAcmeFolder(dataDir);
  const challenges = openChallengeFolder(dataDir);
  const { stagingUrl = stagingOf(settings.directoryUrl) } = options;
  return {
    settings,
    stagingUrl,
    folder,
    states: createStateKeeper(folder, settings, log),
    challenges,
    openDoor: () => options.openDoor(challenges),
    nowUs,
    random,
    tell: options.tell ?? (() => undefined),
    signal,
  };
}
