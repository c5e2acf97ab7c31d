/** Errors as findings: our own words in two halves, those of others not at all. */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../src/domain/app-error.ts';
import { failedFinding, splitAdvice } from '../../src/domain/failed-finding.ts';

describe('an error as a finding', () => {
  it.each([
    ['It broke. Mend it. Then try again.', 'It broke.', 'Mend it. Then try again.'],
    ['It broke.', 'It broke.', ''],
    ['It broke', 'It broke', ''],
    ['a.pem of 1.2.3.4 is odd. Look at it.', 'a.pem of 1.2.3.4 is odd.', 'Look at it.'],
  ])('is split behind its first sentence: %s', (text, message, advice) => {
    expect(splitAdvice(text)).toEqual({ message, advice });
  });

  it('has its details in the message, and the advice of the check where it has none', () => {
    const error = new AppError('invalid', 'It was refused.', { details: ['a: no', 'b: no'] });
    expect(failedFinding('token', error, 'Look.')).toEqual({
      check: 'token',
      state: 'fail',
      message: 'It was refused. a: no b: no',
      advice: 'Look.',
    });
  });

  it.each([[new RangeError('secret')], [new AppError('internal', 'secret')], ['secret']])(
    'holds nothing of an error that is not for others: %s',
    (error) => {
      const finding = failedFinding('token', error, 'Look.');
      expect(finding).toMatchObject({ state: 'fail', advice: 'Please report it.' });
      expect(JSON.stringify(finding)).not.toContain('secret');
    },
  );
});
