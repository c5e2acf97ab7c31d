/** A throw-away certificate, and the settings with which every command finds a sandbox and its receiver. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createCertificateAuthority } from '../sandbox/certificate-authority.ts';
import { demoProject } from '../sandbox/inference/inference-settings.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';

export interface TrialCertificate {
  /** The root, which the sandbox is to trust. */
  authorityPem: string;
  files: { cert: string; key: string; ca: string };
  /** Writes the files. The authority's own key is not kept. */
  write(): Promise<void>;
}

/** A certificate for this machine, from an authority of its own, with files in the folder. */
export async function createTrialCertificate(
  folder: string,
  now: () => number,
): Promise<TrialCertificate> {
  const authority = await createCertificateAuthority({ now });
  const certificate = await authority.issue({ hosts: ['localhost', '127.0.0.1'] });
  const file = (name: string) => join(folder, name);
  const files = { cert: file('certificate.pem'), key: file('key.pem'), ca: file('authority.pem') };
  return {
    authorityPem: authority.certificatePem,
    files,
    write: async () => {
      await writeFile(files.cert, certificate.certificatePem);
      await writeFile(files.key, certificate.keyPem, { mode: 0o600 });
      await writeFile(files.ca, authority.certificatePem);
    },
  };
}

/** The variables for receiver and commands. */
export function trialSettings(trial: {
  dataDir: string;
  files: TrialCertificate['files'];
  sandbox: Pick<Sandbox, 'catalogueUrl' | 'tokenUrl' | 'inferenceUrl'>;
  account: { username: string; password: string };
  publicUrl: string;
  /** `host:port`. */
  listen: string;
  consoleListen: string;
}): Record<string, string> {
  const { dataDir, files, sandbox, account, publicUrl, listen, consoleListen } = trial;
  return {
    EARSHOT_PUBLIC_URL: publicUrl,
    EARSHOT_LISTEN: listen,
    EARSHOT_CONSOLE_LISTEN: consoleListen,
    EARSHOT_DATA_DIR: dataDir,
    EARSHOT_TLS: 'files',
    EARSHOT_TLS_CERT: files.cert,
    EARSHOT_TLS_KEY: files.key,
    EARSHOT_PROBE_CA: files.ca,
    EARSHOT_CATALOGUE_URL: sandbox.catalogueUrl,
    EARSHOT_TOKEN_URL: sandbox.tokenUrl,
    EARSHOT_ACCOUNT_USERNAME: account.username,
    EARSHOT_ACCOUNT_PASSWORD: account.password,
    EARSHOT_INFERENCE_URL: sandbox.inferenceUrl,
    EARSHOT_INFERENCE_API_KEY: demoProject.key,
    EARSHOT_INFERENCE_MODEL: demoProject.models[0] ?? '',
  };
}
