/** Random interruptions of orders: the valid certificate is never lost, and finally there is a new one. */
import { describe, expect, it } from 'vitest';
import { createRandom } from '../../../src/sandbox/clock.ts';
import { freePort } from '../../helpers/free-ports.ts';
import { type Fault, type Step, startStubAuthority } from '../../helpers/stub-authority.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { times } from '../../helpers/thorough.ts';
import { dayUs, minuteUs, openProgram } from './acme-context.ts';

const steps: Step[] = [
  ...(['directory', 'nonce', 'newAccount', 'newOrder', 'authorization', 'challenge'] as const),
  ...(['finalize', 'order', 'certificate', 'renewalInfo'] as const),
];
const problem = (type: string) => ({ type: `urn:ietf:params:acme:error:${type}`, detail: 'x' });

/** `killed` ends the process during the request, before or after the authority has processed it. */
const faults: Record<string, Fault> = {
  lost: () => 'reset',
  broken: (answer) => ({ ...answer, status: 503, body: 'out of order' }),
  limited: (answer) => ({
    ...{ status: 429, headers: { ...answer.headers, 'retry-after': '120' } },
    body: problem('rateLimited'),
  }),
  refused: (answer) => ({ ...answer, status: 403, body: problem('unauthorized') }),
  malformed: (answer) => ({ ...answer, body: { status: 'unknown' } }),
  killed: () => 'silence',
};

describe('orders with random interruptions', () => {
  it.each(Array.from({ length: times(4, 40) }, (_, i) => i + 1))(
    'end well (seed %i)',
    async (seed) => {
      const random = createRandom(seed);
      const clock = { us: Date.UTC(2026, 4, 1, 12) * 1000 };
      const authority = await startStubAuthority({
        ...{ nowMs: () => clock.us / 1000, unproved: true },
        renewalInfo: () => ({ start: 'never', end: 'never' }),
      });
      const httpListen = { host: '127.0.0.1', port: await freePort() };
      const dataDir = temporaryDirectory();
      const open = () => openProgram(authority, { clock, httpListen, dataDir });
      let program = open();
      let account: string | null = null;
      let [orders, hadCertificate] = [0, false];
      const check = async () => {
        await program.check().catch((error: unknown) => error);
        const state = program.state();
        account ??= authority.count('newAccount') > 0 ? state.accountKey : null;
        if (account !== null) expect(state.accountKey).toBe(account);
        const certificate = program.certificate();
        if (hadCertificate) expect(certificate).not.toBeNull();
        hadCertificate ||= certificate !== null;
        return certificate;
      };
      for (let round = 0; round < 30; round += 1) {
        const step = steps[random.integer(0, steps.length - 1)] ?? 'order';
        const kind = Object.keys(faults)[random.integer(0, Object.keys(faults).length - 1)] ?? '';
        authority.break(step, faults[kind] as Fault, random.integer(1, 2));
        const running = check();
        if (kind === 'killed') {
          await expect.poll(() => authority.silenced() || isSettled(running)).toBeTruthy();
          program.stop();
          await running;
          program = open();
        } else await running;
        authority.repair(step);
        clock.us += random.integer(0, 1) === 0 ? minuteUs : random.integer(1, 20) * dayUs;
        // Retries respect their delay: at most one order for each call.
        expect(authority.count('newOrder') - orders).toBeLessThanOrEqual(1);
        orders = authority.count('newOrder');
      }
      for (let round = 0; round < 20; round += 1) {
        clock.us += dayUs;
        await check();
      }
      expect(program.certificate()?.notAfterUs).toBeGreaterThan(clock.us + 25 * dayUs);
      expect(program.state()).toMatchObject({ failures: 0, lastFailure: null });
    },
    120_000,
  );
});

async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol('pending');
  return (await Promise.race([promise, Promise.resolve(pending)])) !== pending;
}
