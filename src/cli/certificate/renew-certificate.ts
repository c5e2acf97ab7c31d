/** `earshot certificate renew`: one try now, told in words. */
import { readAcmeConfig } from '../../config/tls-config.ts';
import { type Renewal, renew } from '../../tls/acme/renew.ts';
import type { Io } from '../io.ts';
import { lockWaitMs, withAcmeContext } from './command-world.ts';

/** Rejects as `renew` does, and with `cancelled` when the user ends it. */
export async function renewCertificate(io: Io, { force }: { force?: true }): Promise<void> {
  const config = readAcmeConfig(io);
  const renewal = await withAcmeContext(config, io, (context, takeLock) =>
    renew(context, {
      when: force === true ? 'anyway' : 'asked',
      takeLock,
      lockWaitMs,
      onIssued: () => undefined,
    }),
  );
  io.stderr.write(`${sentenceOf(renewal)}\n`);
}

function sentenceOf(renewal: Renewal): string {
  const day = (date: Date) => date.toISOString().slice(0, 10);
  if (renewal.outcome === 'waiting') {
    return `Another program has just tried. The next try is after ${new Date(renewal.untilUs / 1000).toISOString()}.`;
  }
  const { notAfter } = renewal.certificate;
  if (renewal.outcome === 'renewed') {
    return `There is a new certificate, good until ${day(notAfter)}. A receiver that runs takes it up within ten seconds.`;
  }
  const due = new Date(renewal.due.atUs / 1000);
  return `The certificate is good until ${day(notAfter)}, and is renewed by itself on ${day(due)}. To get another one all the same: --force.`;
}
