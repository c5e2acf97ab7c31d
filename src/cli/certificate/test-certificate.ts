/** `earshot certificate test`: a rehearsal, told in words. */
import { readAcmeConfig } from '../../config/tls-config.ts';
import { AppError } from '../../domain/app-error.ts';
import { printable } from '../../domain/printable.ts';
import type { AcmeWorld } from '../../tls/acme/acme-world.ts';
import { visitAuthority } from '../../tls/acme/enter-authority.ts';
import { explainFailure } from '../../tls/acme/explain-failure.ts';
import { type Rehearsal, rehearse } from '../../tls/acme/rehearse.ts';
import { takeTurn } from '../../tls/acme/renew.ts';
import type { Io } from '../io.ts';
import { lockWaitMs, withAcmeWorld } from './command-world.ts';

/** Rejects with what explains the failure; `configuration` before the user agrees to the terms. */
export async function testCertificate(io: Io): Promise<void> {
  const config = readAcmeConfig(io, { agreement: 'asked' });
  const { directoryUrl, host, challenge } = config.acme;
  const shown = await withAcmeWorld(config, io, async (world, takeLock) => {
    const terms = await readTerms(world);
    io.stderr.write(`Terms of service: ${terms ?? 'the authority names none'}\n`);
    if (!config.agreed) {
      throw new AppError('configuration', 'Nothing was tried yet.', {
        advice:
          'Read the terms; when you agree to them, set EARSHOT_ACME_AGREE=yes and run this again.',
      });
    }
    const release = await takeTurn(world, { takeLock, lockWaitMs });
    try {
      return await rehearse(world);
    } catch (error) {
      throw explainFailure(error, config.acme);
    } finally {
      release();
    }
  });
  io.stdout.write(`${sentenceOf(shown, { host, challenge, directoryUrl })}\n`);
}

async function readTerms(world: AcmeWorld): Promise<string | null> {
  try {
    const authority = await visitAuthority(world);
    const { meta } = await authority.readDirectory();
    return meta?.termsOfService === undefined ? null : printable(meta.termsOfService);
  } catch (error) {
    throw explainFailure(error, world.settings);
  }
}

function sentenceOf(
  shown: Rehearsal,
  { host, challenge, directoryUrl }: { host: string; challenge: string; directoryUrl: string },
): string {
  const authority = new URL(directoryUrl).host;
  return shown === 'issued'
    ? `A whole order for ${host} by ${challenge} succeeded at the staging directory of ${authority}. The real one should, too.`
    : `${authority} has seen by ${challenge} that ${host} is ours. No certificate was made.`;
}
