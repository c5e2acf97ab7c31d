/** The certificate that an authority gives, kept up to date by a loop of renewals. */
import type { AcmeConfig } from '../config/tls-config.ts';
import { createTakeLock } from '../store/process-lock.ts';
import { alpnAnswers, createChallengeListener, noListener } from '../tls/acme/challenge.ts';
import { openAcmeContext } from '../tls/acme/order.ts';
import { startRenewalLoop } from '../tls/acme/renew.ts';
import type { Served, Source } from './certificate-source.ts';

export async function fromAuthority(
  settings: AcmeConfig,
  { config, log, io, tuning, onChange, warn }: Served,
): Promise<Source> {
  const stopper = new AbortController();
  const { fetch, newId } = io;
  const asker = fetch === undefined ? null : { fetch, newId };
  // Of two receivers on one data directory, the one that has the port answers for both.
  const challengeListener =
    settings.challenge === 'http-01'
      ? createChallengeListener(settings.httpListen, asker)
      : noListener;
  const context = openAcmeContext({
    settings,
    dataDir: config.dataDir,
    ...(tuning.stagingUrl === undefined ? {} : { stagingUrl: tuning.stagingUrl }),
    openListener: (challenges) => challengeListener.open(challenges),
    log,
    report: (step) => log.debug({ step }, 'certificate order'),
    ...io,
    signal: stopper.signal,
  });
  const current = await context.folder.readCertificate();
  if (current === null) {
    const authority = new URL(settings.directoryUrl).host;
    log.info({ authority, host: settings.host }, 'there is no certificate yet; getting one');
  } else warn(current);
  return {
    keyPair: current,
    ...(settings.challenge === 'tls-alpn-01'
      ? { handshakeOnly: alpnAnswers(context.challenges) }
      : {}),
    follow: (listener) => {
      const takeLock = createTakeLock(config.dataDir);
      const checkEveryMs = tuning.certificateWatchMs;
      const loop = startRenewalLoop(
        {
          context,
          current,
          takeLock,
          onCertificate: onChange(listener),
          log,
          ...(checkEveryMs === undefined ? {} : { checkEveryMs }),
        },
        stopper,
      );
      return { stop: () => loop.stop().then(() => challengeListener.close()) };
    },
  };
}
