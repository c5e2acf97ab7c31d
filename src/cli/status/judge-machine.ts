/** Judges certificate and disk, by the watchdog's own judges. */
import { sizeText } from '../../domain/size-text.ts';
import { judgeCertificate, judgeDisk } from '../../watch/judge/judge-machine.ts';
import { lengthText } from '../../watch/plain-figures.ts';
import { critical, type Judge, unused, well, worstOf } from './judgement.ts';

export const judgeCertificateLeft: Judge = async ({ behindProxy, certificate, alerts, atUs }) => {
  if (behindProxy) return unused('the proxy in front has it');
  if (certificate?.notAfterUs == null) {
    const failure =
      certificate?.lastFailure == null ? '' : ` It failed: ${certificate.lastFailure}`;
    return critical(
      `There is no certificate yet, so the catalogue cannot reach this endpoint.${failure}`,
      'A receiver that runs goes on trying; `earshot certificate show` tells why it failed last.',
    );
  }
  const { findings } = await judgeCertificate(
    { certificate: async () => certificate },
    { lasting: alerts, nowUs: atUs },
  );
  const failure = certificate.lastFailure === null ? '' : '; the last renewal failed';
  const left = lengthText(certificate.notAfterUs - atUs);
  return worstOf(findings) ?? well(`valid for another ${left}${failure}`);
};

export const judgeDiskRoom: Judge = async ({ disk, alerts, atUs }) => {
  if (disk === null) return unused('its system does not say how much is free');
  const { findings } = await judgeDisk(
    { disk: async () => disk },
    { lasting: alerts, nowUs: atUs },
  );
  const { freeBytes, totalBytes } = disk;
  return worstOf(findings) ?? well(`${sizeText(freeBytes)} of ${sizeText(totalBytes)} free`);
};
