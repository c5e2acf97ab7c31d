/** Errors as findings: our own words as message and advice, those of others not at all. */
import { describe, expect, it } from 'vitest';
import { AppError } from '../../src/domain/app-error.ts';
import { failedFinding } from '../../src/domain/finding.ts';

describe('an error as a finding', () => {
  it.each([
    ['its own advice', { advice: 'Mend it.' }, 'It was refused.', 'Mend it.'],
    ['the advice of the check where it has none', {}, 'It was refused.', 'Look.'],
    [
      'its details in the message',
      { details: ['a: no', 'b: no'] },
      'It was refused. a: no b: no',
      'Look.',
    ],
  ])('has %s', (_, options, message, advice) => {
    const error = new AppError('invalid', 'It was refused.', options);
    const finding = { check: 'token', state: 'fail', message, advice };
    expect(failedFinding('token', error, 'Look.')).toEqual(finding);
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
