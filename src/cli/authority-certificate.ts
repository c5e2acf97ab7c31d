/** The certificate that an authority gives, kept up to date by a loop of renewals. */
import type { AcmeConfig } from '../config/tls-config.ts';
import { createTakeLock } from '../store/engine/locks.ts';
import { openAcmeWorld } from '../tls/acme/acme-world.ts';
import {
  alpnAnswers,
  createChallengeDoor,
  createSharedDoor,
  noDoor,
} from '../tls/acme/challenge-door.ts';
import { startRenewalLoop } from '../tls/acme/renewal-loop.ts';
import type { CertificateIo, Served, Source } from './certificate-source.ts';

export async function fromAuthority(
  settings: AcmeConfig,
  { config, log, io, tuning, onChange, warn }: Served,
): Promise<Source> {
  const stopper = new AbortController();
  const door = settings.challenge === 'http-01' ? doorOf(settings, io) : noDoor;
  const world = openAcmeWorld({
    settings,
    dataDir: config.dataDir,
    ...(tuning.stagingUrl === undefined ? {} : { stagingUrl: tuning.stagingUrl }),
    openDoor: (challenges) => door.open(challenges),
    log,
    tell: (step) => log.debug({ step }, 'certificate order'),
    ...io,
    signal: stopper.signal,
  });
  const current = await world.folder.readCertificate();
  if (current === null) {
    const authority = new URL(settings.directoryUrl).host;
    log.info({ authority, host: settings.host }, 'there is no certificate yet; getting one');
  } else warn(current);
  return {
    keyPair: current,
    ...(settings.challenge === 'tls-alpn-01'
      ? { handshakeOnly: alpnAnswers(world.challenges) }
      : {}),
    follow: (listener) => {
      const takeLock = createTakeLock(config.dataDir);
      const lookEveryMs = tuning.certificateWatchMs;
      const loop = startRenewalLoop(
        {
          world,
          current,
          takeLock,
          onCertificate: onChange(listener),
          log,
          ...(lookEveryMs === undefined ? {} : { lookEveryMs }),
        },
        stopper,
      );
      return { stop: () => loop.stop().then(() => door.close()) };
    },
  };
}

/** Of two receivers on one data directory, the one that has the port answers for both. */
function doorOf({ httpListen }: AcmeConfig, { fetch, newId }: CertificateIo) {
  if (fetch === undefined) return createChallengeDoor(httpListen);
  return createSharedDoor(httpListen, { fetch, newId });
}
