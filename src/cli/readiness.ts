/** Whether notifications can be taken now, and what is in the way: what `/readyz` says. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Readiness, UnreadyReason } from '../console/health-routes.ts';
import type { Store } from '../store/store.ts';
import type { ServedCertificate } from './certificate-source.ts';

/** A disk that is this slow for one small commit keeps senders waiting for too long. */
const writeTimeoutMs = 3_000;

export function createReadiness(parts: {
  store: Pick<Store, 'checkWritable' | 'isWriterRunning'>;
  certificate: Pick<ServedCertificate, 'served'>;
  nowUs: () => number;
  timeoutMs?: number;
}): Readiness {
  const { store, certificate, nowUs, timeoutMs = writeTimeoutMs } = parts;
  return async () => {
    const found = [await writeFault(store, timeoutMs), certificateFault(certificate, nowUs())];
    return found.filter((reason) => reason !== null);
  };
}

async function writeFault(
  store: Pick<Store, 'checkWritable' | 'isWriterRunning'>,
  timeoutMs: number,
): Promise<UnreadyReason | null> {
  const done = new AbortController();
  const late = delay(timeoutMs, 'writer' as const, { signal: done.signal }).catch(() => null);
  const fault = store.checkWritable().then(
    () => null,
    () => (store.isWriterRunning() ? 'store' : 'writer'),
  );
  const first = await Promise.race([fault, late]);
  done.abort();
  return first;
}

/** Behind a proxy there is none to look at. */
function certificateFault(
  { served }: Pick<ServedCertificate, 'served'>,
  nowUs: number,
): UnreadyReason | null {
  const certificate = served();
  if (certificate === undefined) return null;
  if (certificate === null) return 'certificate';
  const { notBefore, notAfter } = certificate;
  const isValid = notBefore.getTime() * 1_000 <= nowUs && nowUs < notAfter.getTime() * 1_000;
  return isValid ? null : 'certificate';
}
