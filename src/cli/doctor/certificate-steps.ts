/** The doctor's steps about where the certificate comes from. */
import type { AcmeConfig } from '../../config/tls-config.ts';
import type { Finding } from '../../domain/finding.ts';
import { createChallengeListener } from '../../tls/acme/challenge.ts';
import { checkAuthority, checkChallenge, checkRenewal } from '../../tls/acme/checks.ts';
import { type AcmeContext, openAcmeContext } from '../../tls/acme/order.ts';
import { checkCertificateFiles } from '../../tls/certificate.ts';
import type { Io } from '../io.ts';
import type { DoctorSettings } from './doctor-settings.ts';
import type { Step } from './run-steps.ts';

/** The names of the steps are the same for every kind of certificate, so that others can need them. */
export function certificateSteps(settings: DoctorSettings, io: Io): Step[] {
  const { serve, publicUrl } = settings;
  const needs = serve === undefined ? ['configuration'] : [];
  if (serve?.tls.kind === 'acme') return acmeSteps(serve.tls, settings, io);
  const host = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  return [
    {
      name: 'certificate files',
      needs,
      run: async () =>
        serve?.tls.kind === 'files'
          ? checkCertificateFiles({ files: serve.tls, host, nowUs: io.nowUs })
          : [behindProxy],
    },
  ];
}

const behindProxy: Finding = {
  check: 'certificate files',
  state: 'skipped',
  message: 'EARSHOT_TLS=off: the proxy in front has the certificate.',
};

function acmeSteps(acme: AcmeConfig, { dataDir, probeWithExtra }: DoctorSettings, io: Io): Step[] {
  // With roots of one's own it is a trial, whose authority may ask another port than 80.
  const port = probeWithExtra === null ? 80 : acme.httpListen.port;
  const opened = <Value>(work: (context: AcmeContext) => Promise<Value>) =>
    withContext({ acme, dataDir, io }, work);
  return [
    { name: 'renewal', needs: ['data directory'], run: () => opened(checkRenewal) },
    { name: 'authority', needs: [], run: () => opened(checkAuthority) },
    {
      name: 'challenge',
      needs: ['data directory', 'name'],
      run: () =>
        opened((context) => checkChallenge(context, { port, fetch: io.fetch, newId: io.newId })),
    },
  ];
}

async function withContext<Value>(
  { acme, dataDir, io }: { acme: AcmeConfig; dataDir: string; io: Io },
  work: (context: AcmeContext) => Promise<Value>,
): Promise<Value> {
  const listener = createChallengeListener(acme.httpListen, io);
  const { nowUs, random, signal } = io;
  const context = openAcmeContext({
    settings: acme,
    dataDir,
    openListener: (challenges) => listener.open(challenges),
    log: { error: () => undefined },
    nowUs,
    random,
    signal,
  });
  try {
    return await work(context);
  } finally {
    await listener.close();
  }
}
