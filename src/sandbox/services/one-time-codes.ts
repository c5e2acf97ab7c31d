/** Time-based one-time codes (RFC 6238, six digits, 30 s), each good once. */
import { Secret, TOTP } from 'otpauth';
import type { SandboxClock } from '../sandbox-clock.ts';

export interface OneTimeCodes {
  /** True when the code belongs to now, or to the 30 s before or after, and was not used before. */
  take(secretBase32: string, code: string | null): boolean;
}

const periodMs = 30_000;
const stepsAround = 1;

/** Creates the check; time is the sandbox's. */
export function createOneTimeCodes(clock: Pick<SandboxClock, 'now'>): OneTimeCodes {
  let used: readonly string[] = [];
  return {
    take: (secretBase32, code) => {
      if (code === null) return false;
      const timestamp = clock.now();
      const totp = new TOTP({ secret: Secret.fromBase32(secretBase32) });
      const delta = totp.validate({ token: code, timestamp, window: stepsAround });
      if (delta === null) return false;
      const step = Math.floor(timestamp / periodMs) + delta;
      const use = `${secretBase32} ${step}`;
      if (used.includes(use)) return false;
      // No more steps than the window holds can be asked for again; the clock never goes back.
      used = [...used, use].slice(-2 * stepsAround - 1);
      return true;
    },
  };
}
