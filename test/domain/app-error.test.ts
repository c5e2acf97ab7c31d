/** The text and the data of our errors, and errors as findings. */
import { describe, expect, it } from 'vitest';
import { AppError, errorText } from '../../src/domain/app-error.ts';
import { failedFinding } from '../../src/domain/finding.ts';
import { deserializeError, serializeError } from '../../src/store/engine/rpc.ts';

const advice = 'Free some space.';
const details = ['a: no', 'b: no'];
const facts = { limit: 'tokensPerDay', left: 0 };
const full = new AppError('unavailable', 'The disk is full.', { advice, details, facts });

describe('the text of an error', () => {
  it.each([
    ['of ours is the message and the advice', full, 'The disk is full. Free some space.'],
    ['of ours without advice is the message', new AppError('invalid', 'No.'), 'No.'],
    ['of others is the message', new RangeError('too far'), 'too far'],
    ['that is none is that', 'gone', 'gone'],
  ])('%s', (_, error, text) => {
    expect(errorText(error)).toBe(text);
  });
});

describe('the data of an error', () => {
  it('is kept by a copy, but for what the copy changes', () => {
    const copy = full.with({ code: 'conflict', message: 'Nothing was written.' });
    expect(copy).toMatchObject({ code: 'conflict', message: 'Nothing was written.' });
    expect(copy).toMatchObject({ advice, details, facts });
    expect(full.with({ advice: 'Wait.' })).toMatchObject({ code: 'unavailable', advice: 'Wait.' });
  });

  it('crosses a thread', () => {
    const received = deserializeError(structuredClone(serializeError(full)));
    const { code, message } = full;
    expect(received).toMatchObject({ code, message, advice, details, facts });
    expect(received.cause).toBe(full.stack);
  });
});

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
