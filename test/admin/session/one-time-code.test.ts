/** One-time codes: from six digits or a secret, each window's code once. */
import { describe, expect, it } from 'vitest';
import { isCode, oneTimeCode } from '../../../src/admin/session/one-time-code.ts';
import { AppError, errorText } from '../../../src/domain/app-error.ts';
import { wholeTextOf } from '../../config/environment.ts';
import { startAccount, startMs } from './account.ts';

/** The secret of RFC 6238, appendix B: "12345678901234567890". */
const rfcSecret = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';

/** A world whose clock moves only by waiting. */
function worldAt(seconds: number, lastWindow: number | null = null) {
  const waits: number[] = [];
  let us = seconds * 1_000_000;
  const wait = async (ms: number) => {
    waits.push(ms);
    us += ms * 1000;
  };
  return { waits, options: { nowUs: () => us, lastWindow, wait } };
}

describe('a code', () => {
  it.each([
    [59, '287082'],
    [1_111_111_109, '081804'],
    [1_111_111_111, '050471'],
    [1_234_567_890, '005924'],
    [2_000_000_000, '279037'],
    [20_000_000_000, '353130'],
  ])('at second %i is the one of RFC 6238', async (seconds, code) => {
    const { options } = worldAt(seconds);
    const made = await oneTimeCode(rfcSecret, options);
    expect(made).toEqual({ code, window: Math.floor(seconds / 30) });
  });

  it('of six digits is taken as it is, in no window', async () => {
    const { options, waits } = worldAt(59, 1);
    expect(await oneTimeCode('007123', options)).toEqual({ code: '007123', window: null });
    expect(waits).toEqual([]);
    expect([isCode('007123'), isCode('00712'), isCode('ABCDEF'), isCode('0071234')]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it('may be made from a secret in small letters and with padding', async () => {
    const { options } = worldAt(59);
    expect((await oneTimeCode(rfcSecret.toLowerCase(), options)).code).toBe('287082');
    expect((await oneTimeCode('JBSWY3DPEE======', options)).code).toMatch(/^\d{6}$/);
  });

  it('that was used is followed by that of the next window, after its beginning', async () => {
    const { options, waits } = worldAt(29.5, 0);
    expect(await oneTimeCode(rfcSecret, options)).toEqual({ code: '287082', window: 1 });
    expect(waits).toEqual([500]);
  });

  it('is waited for no longer than half a minute', async () => {
    const { options, waits } = worldAt(30, 1);
    expect((await oneTimeCode(rfcSecret, options)).window).toBe(2);
    expect(waits).toEqual([30_000]);
  });

  it('is that of the next window also when the timer fires early, and of later ones when late', async () => {
    const early = { nowUs: () => 29_500_000, lastWindow: 0, wait: async () => {} };
    expect((await oneTimeCode(rfcSecret, early)).window).toBe(1);
    let us = 29_500_000;
    const wait = async () => {
      us = 95_000_000;
    };
    const late = { nowUs: () => us, lastWindow: 0, wait };
    expect((await oneTimeCode(rfcSecret, late)).window).toBe(3);
  });

  it('is not waited for when the last one was used under a clock ahead of this one', async () => {
    const { options, waits } = worldAt(59, 1_000);
    expect((await oneTimeCode(rfcSecret, options)).window).toBe(1);
    expect(waits).toEqual([]);
  });

  it('cannot be made from what is no secret, and the error does not show that', async () => {
    const error = await oneTimeCode('wrong-1890', worldAt(59).options).catch((error) => error);
    expect(error).toBeInstanceOf(AppError);
    expect(error.code).toBe('configuration');
    expect(errorText(error)).toContain('EARSHOT_ACCOUNT_TOTP');
    expect(wholeTextOf(error)).not.toContain('1890');
  });
});

describe('an account with two-factor login', () => {
  const secret = 'JBSWY3DPEHPK3PXP';

  /** An account whose token sources wait by moving the sandbox's clock. */
  async function startTwoFactor() {
    const account = await startAccount({ totpSecret: secret });
    const waits: number[] = [];
    const wait = async (ms: number) => {
      waits.push(ms);
      account.advance(ms / 1000);
    };
    return { account, waits, tokens: () => account.tokens({ totp: secret }, { wait }) };
  }

  it('is entered with codes made from the secret', async () => {
    const { account, tokens, waits } = await startTwoFactor();
    expect(await account.accepts(await tokens().get())).toBe(true);
    expect(waits).toEqual([]);
  });

  it('is entered twice in a row, the second time in the next window', async () => {
    const { account, tokens, waits } = await startTwoFactor();
    const source = tokens();
    await source.refused(await source.get());
    expect(await account.accepts(await source.get())).toBe(true);
    expect(account.grants().logins).toBe(2);
    expect(waits).toEqual([30_000]);
  });

  it('is entered by another program in the next window too, as the file tells it', async () => {
    const { account, tokens, waits } = await startTwoFactor();
    const [first, second] = [tokens(), tokens()];
    const token = await first.get();
    await second.get();
    await second.refused(token);
    await second.get();
    expect(account.grants().logins).toBe(2);
    expect(waits).toEqual([30_000]);
  });

  it('does not send a code again after a login that failed', async () => {
    const { account, tokens, waits } = await startTwoFactor();
    const source = tokens();
    account.sandbox.service.change({ identityUnavailable: true });
    await source.get().catch(() => {});
    account.sandbox.service.change({ identityUnavailable: false });
    await source.get();
    expect(waits).toEqual([30_000]);
    expect(account.sandbox.clock.now()).toBe(startMs + 30_000);
  });
});
