/**
 * Proof that a request without credentials is a probe of `earshot doctor`, which checks that such requests are
 * refused. Without the proof, each probe would be logged as a failed login. Only a program that has the endpoint
 * credentials can create one. It grants no access: the answer is the same 401.
 */
import { createHmac, timingSafeEqual } from 'node:crypto';

export const probeProofHeader = 'earshot-probe';

/** A user name and password of the endpoint. */
export interface CredentialPair {
  username: string;
  password: string;
}

/** Maximum age of a proof, and maximum difference between the clocks of two machines. */
const validUs = 300_000_000;
/** Maximum number of remembered proofs. Further proofs are refused. */
const rememberedMax = 1_000;
const form = /^(\d{1,17})\.([0-9a-zA-Z-]{16,64})\.([0-9a-f]{64})$/;

/** Returns the header's value. `nonce` must not be used twice. */
export function probeProof(pair: CredentialPair, nowUs: number, nonce: string): string {
  const stamp = `${Math.round(nowUs)}.${nonce}`;
  return `${stamp}.${macOf(pair, stamp).toString('hex')}`;
}

/** Returns a check that accepts each proof once, if it was made with one of the pairs at about this time. */
export function createProbeProofCheck(
  nowUs: () => number,
): (value: string | undefined, pairs: readonly CredentialPair[]) => boolean {
  /** Creation time of each used proof. */
  const used = new Map<string, number>();
  return (value, pairs) => {
    const [, time, nonce, mac] = form.exec(value ?? '') ?? [];
    if (time === undefined || nonce === undefined || mac === undefined) return false;
    const isRecent = (us: number) => Math.abs(nowUs() - us) <= validUs;
    const stamp = `${time}.${nonce}`;
    if (!isRecent(Number(time)) || used.has(stamp)) return false;
    const given = Buffer.from(mac, 'hex');
    if (!pairs.some((pair) => timingSafeEqual(macOf(pair, stamp), given))) return false;
    for (const [other, us] of used) if (!isRecent(us)) used.delete(other);
    if (used.size >= rememberedMax) return false;
    used.set(stamp, Number(time));
    return true;
  };
}

function macOf({ username, password }: CredentialPair, stamp: string): Buffer {
  return createHmac('sha256', password).update(`earshot probe ${username} ${stamp}`).digest();
}
