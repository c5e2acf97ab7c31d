/** Processes that order certificates from an authority on loopback: their settings, files and clock. */

import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:tls';
import { onTestFinished } from 'vitest';
import type { Config } from '../../../src/core/config/config.ts';
import { type AcmeContext, type RenewWhen, renew } from '../../../src/features/certificate/acme.ts';
import { readCertificate, readState } from '../../../src/features/certificate/renewal.ts';
import type { AcmeConfig } from '../../../src/features/certificate/settings.ts';
import { serve } from '../../../src/receiver/serve.ts';
import { createAcquireLock } from '../../../src/store/engine/locks.ts';
import { testIo } from '../../helpers/fake-io.ts';
import { recordingLog } from '../../helpers/recording-log.ts';
import { credentials } from '../../helpers/spawned-receiver.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { loopback, serveConfig, withCertificateWatch } from '../../receiver/serve-config.ts';

export const minuteUs = 60_000_000;
export const dayUs = 24 * 60 * minuteUs;
export const host = 'earshot.example.org';

interface Authority {
  directoryUrl: string;
  caPem: string;
}

export interface ProgramOptions extends Partial<AcmeConfig> {
  dataDir?: string;
  listen?: AcmeContext['listen'];
  clock?: { us: number };
}

function settingsFor(authority: Authority, changed: Partial<AcmeConfig>): AcmeConfig {
  return {
    kind: 'acme',
    ...{ directoryUrl: authority.directoryUrl, extraCaPem: authority.caPem, host },
    ...{ challenge: 'http-01', email: undefined, eab: undefined },
    ...{ httpListen: loopback, ...changed },
  };
}

/** Opens a process; a second one with the same `dataDir` is another process, or the next start. */
export function openProgram(authority: Authority, options: ProgramOptions = {}) {
  const { dataDir = temporaryDirectory(), listen = loopback, ...more } = options;
  const { clock = { us: Date.now() * 1000 }, ...changed } = more;
  const settings = settingsFor(authority, changed);
  const stopper = new AbortController();
  const context: AcmeContext = {
    ...{ settings, dataDir, listen, fetch, acquireLock: createAcquireLock(dataDir) },
    published: async () => undefined,
    ...{ nowUs: () => clock.us, random: () => 0, signal: stopper.signal },
  };
  return {
    ...{ context, clock, dataDir, stop: () => stopper.abort() },
    check: (when: RenewWhen = 'due') => renew(context, when),
    state: () => readState(dataDir, settings),
    certificate: () => readCertificate(dataDir),
  };
}

/** Starts a receiver in this process that checks its certificate every 20 ms. */
export async function startReceiver(
  authority: Authority,
  options: ProgramOptions & { sharedLog?: Config['sharedLog'] } = {},
) {
  const { dataDir = temporaryDirectory(), listen = loopback, ...more } = options;
  const { clock = { us: Date.now() * 1000 }, sharedLog = null, ...changed } = more;
  const settings = settingsFor(authority, changed);
  const { log, lines } = recordingLog();
  const config = serveConfig({
    ...{ listen, publicUrl: `https://${settings.host}`, dataDir, sharedLog },
    credentials: { source: 'variables', pairs: [credentials] },
    tls: settings,
  });
  const features = withCertificateWatch(20);
  const io = testIo({ features, nowUs: () => clock.us, random: () => 0 });
  const receiver = await serve(config, log, io);
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= receiver.close();
    return closing;
  };
  onTestFinished(close);
  const port = Number(new URL(receiver.url ?? '').port);
  return { port, dataDir, clock, lines, close, receiver, serial: () => servedSerial(port) };
}

export const serialOf = (certificate: { cert: string } | null) =>
  certificate && new X509Certificate(certificate.cert).serialNumber;

/** Returns the serial number of the served certificate; null while handshakes fail. */
export async function servedSerial(port: number, protocol = 'http/1.1'): Promise<string | null> {
  const target = { port, host: '127.0.0.1', servername: host, ALPNProtocols: [protocol] };
  const socket = connect({ ...target, rejectUnauthorized: false });
  try {
    await once(socket, 'secureConnect');
    return socket.getPeerCertificate().serialNumber;
  } catch {
    return null;
  } finally {
    socket.destroy();
  }
}
