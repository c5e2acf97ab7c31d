/** Notices that the certificate files have changed, and hands over the new pair when it is whole. */
import { errorText } from '../domain/app-error.ts';
import {
  type CertificateFiles,
  type LoadedCertificate,
  loadCertificateFiles,
} from './certificate-files.ts';

/** How often the files are looked at. Looking works everywhere: with links, mounts and containers. */
export const watchIntervalMs = 10_000;

export interface CertificateWatch {
  /** Looks now instead of at the next interval. */
  check(): Promise<void>;
  stop(): void;
}

/**
 * Reads the files again and again. A pair that does not load or does not fit is reported once and
 * the one in use stays: files that are written one after the other are seen half-way.
 */
export function watchCertificateFiles(options: {
  files: CertificateFiles;
  current: LoadedCertificate;
  intervalMs?: number;
  onChange: (pair: LoadedCertificate) => void;
  onProblem: (error: unknown) => void;
}): CertificateWatch {
  const { files, intervalMs = watchIntervalMs, onChange, onProblem } = options;
  let { cert, key } = options.current;
  let reported = '';
  let looking: Promise<void> | undefined;

  async function look() {
    try {
      const loaded = await loadCertificateFiles(files);
      reported = '';
      if (loaded.cert === cert && loaded.key === key) return;
      onChange(loaded);
      ({ cert, key } = loaded);
    } catch (error) {
      const message = errorText(error);
      if (message !== reported) onProblem(error);
      reported = message;
    }
  }

  function check() {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  }

  const timer = setInterval(() => void check(), intervalMs);
  timer.unref();
  return { check, stop: () => clearInterval(timer) };
}
