/** Text and data of our errors, and errors as findings. */
import { describe, expect, it } from 'vitest';
import { deserializeError, serializeError } from '../../../src/core/host/rpc.ts';
import { AppError } from '../../../src/core/terms/app-error.ts';
import { failedFinding } from '../../../src/core/terms/evaluation.ts';

const advice = 'Free some space.';
const details = ['a: no', 'b: no'];
const facts = { limit: 'tokensPerDay', left: 0 };
const full = new AppError('unavailable', 'The disk is full.', { advice, details, facts });

it('the data of an error survives a transfer between threads', () => {
  const received = deserializeError(structuredClone(serializeError(full)));
  const { code, message } = full;
  expect(received).toMatchObject({ code, message, advice, details, facts });
  expect(received.cause).toBe(full.stack);
});

describe('an error as a finding', () => {
  it.each([
    ['its own advice', { advice: 'Fix it.' }, 'Fix it.', []],
    ['the next step of the check when the error has none', {}, 'Look.', []],
    ['its details as evidence', { details: ['a: no', 'b: no'] }, 'Look.', ['a: no', 'b: no']],
  ])('has %s', (_, options, nextStep, evidence) => {
    const error = new AppError('invalid', 'It was refused.', options);
    const finding = { check: 'login', level: 'critical', code: 'invalid' };
    const found = failedFinding('login', error, 'Look.');
    expect(found).toEqual({ ...finding, text: 'It was refused.', nextStep, evidence });
  });

  it.each([[new RangeError('secret')], [new AppError('internal', 'secret')], ['secret']])(
    'contains nothing private of an error: %s',
    (error) => {
      const finding = failedFinding('token', error, 'Look.');
      expect(finding).toMatchObject({ level: 'critical', nextStep: 'Please report it.' });
      expect(JSON.stringify(finding)).not.toContain('secret');
    },
  );
});
