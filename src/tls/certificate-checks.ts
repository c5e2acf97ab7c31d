/** The doctor's check of the certificate files that the receiver is to serve. */
import { X509Certificate } from 'node:crypto';
import { type Finding, failedFinding } from '../domain/finding.ts';
import { type CertificateFiles, loadCertificateFiles } from './certificate-files.ts';

/** `host` is the name in the public URL; undefined where there is none to compare with. */
export async function checkCertificateFiles(options: {
  files: CertificateFiles;
  host: string | undefined;
  nowUs: () => number;
}): Promise<Finding[]> {
  const check = 'certificate files';
  const { files, host, nowUs } = options;
  try {
    const { cert, notAfter, covers } = await loadCertificateFiles(files);
    const fail = (message: string, advice: string): Finding[] => [
      { check, state: 'fail', message, advice },
    ];
    if (notAfter.getTime() * 1000 <= nowUs()) {
      const message = `The certificate in ${files.cert} has expired.`;
      return fail(message, 'Renew it; the receiver takes the new files up by itself.');
    }
    if (vouchesForItself(new X509Certificate(cert))) {
      const message = `The certificate in ${files.cert} is self-signed, and the catalogue refuses such.`;
      return fail(message, 'Get one of a public authority.');
    }
    if (host !== undefined && !covers(host)) {
      const message = `The certificate in ${files.cert} is not for ${host}.`;
      return fail(message, 'Order one for the name in EARSHOT_PUBLIC_URL.');
    }
    const day = notAfter.toISOString().slice(0, 10);
    const message = `They fit together; the certificate ends on ${day}.`;
    return [{ check, state: 'pass', message }];
  } catch (error) {
    const advice = 'Name the files of the certificate in EARSHOT_TLS_CERT and EARSHOT_TLS_KEY.';
    return [failedFinding(check, error, advice)];
  }
}

/** By its signature: what its extensions allow it to sign does not matter here. */
function vouchesForItself(certificate: X509Certificate): boolean {
  return certificate.subject === certificate.issuer && certificate.verify(certificate.publicKey);
}
