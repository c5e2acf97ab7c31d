/** One-time codes for accounts with two-factor login (TOTP, RFC 6238). */
import { Secret, TOTP } from 'otpauth';
import { AppError } from '../../domain/app-error.ts';

/** A code is made for a window of time, and is good once. */
const windowMs = 30_000;

export interface OneTimeCode {
  code: string;
  /** The number of its window, counted from 1970; null for a code that was given as it is. */
  window: number | null;
}

/** Six digits are a code, anything else is the secret that codes are made from. */
export function isCode(totp: string): boolean {
  return /^\d{6}$/.test(totp);
}

/**
 * The code to log in with. When that of this window was used already (`lastWindow`), waits for the
 * next window, never longer than 30 s. Rejects with `configuration` when the secret is not base32.
 */
export async function oneTimeCode(
  totp: string,
  {
    nowUs,
    lastWindow,
    wait,
  }: {
    nowUs: () => number;
    lastWindow: number | null;
    wait: (ms: number) => Promise<unknown>;
  },
): Promise<OneTimeCode> {
  if (isCode(totp)) return { code: totp, window: null };
  const generator = generatorFor(totp);
  const current = windowAt(nowUs());
  // A last window that lies ahead was written under another clock, and would take long to come.
  if (lastWindow !== current) return codeOf(generator, current);
  await wait(Math.ceil((current + 1) * windowMs - nowUs() / 1000));
  // A timer may fire a little early.
  return codeOf(generator, Math.max(windowAt(nowUs()), current + 1));
}

function windowAt(us: number): number {
  return Math.floor(us / 1000 / windowMs);
}

function codeOf(generator: TOTP, window: number): OneTimeCode {
  return { code: generator.generate({ timestamp: window * windowMs }), window };
}

function generatorFor(totp: string): TOTP {
  try {
    const secret = Secret.fromBase32(totp);
    return new TOTP({ secret, algorithm: 'SHA1', digits: 6, period: windowMs / 1000 });
  } catch {
    // Without the cause, which names a character of the secret.
    throw new AppError(
      'configuration',
      'EARSHOT_ACCOUNT_TOTP is neither six digits nor a shared secret in base32.',
      { advice: 'Copy the secret from the page that sets up the authenticator app.' },
    );
  }
}
