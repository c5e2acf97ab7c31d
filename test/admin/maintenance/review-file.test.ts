/** With an `earshot.config.ts`, that file is the desired state: maintenance tells what it changes. */
import { describe, expect, it } from 'vitest';
import { dayUs, otherFilter, startUs, wanted } from '../plan/plan-samples.ts';
import { reviewed, verdict } from './reviewed.ts';

const pausedByService = { listed: { status: 'paused' }, nowUs: startUs + 61 * dayUs };
const deletedByService = { listed: null, nowUs: startUs + 400 * dayUs };

describe('a file', () => {
  it('that says what is registered changes nothing', () => {
    expect(verdict({ inFile: wanted() })).toBe('-');
    expect(verdict({ ...pausedByService, inFile: wanted() })).toBe('resume');
    expect(verdict({ ...deletedByService, inFile: wanted() })).toBe('recreate');
  });

  it('that names it no longer keeps it from being maintained, which is told', () => {
    expect(verdict({ inFile: null })).toBe('- unwanted');
    expect(verdict({ ...pausedByService, inFile: null })).toBe('- unwanted');
    expect(verdict({ ...deletedByService, inFile: null })).toBe('- unwanted');
    expect(reviewed({ inFile: null }).notes[0]?.advice).toContain('--prune');
  });

  it.each([
    ['another filter', wanted({ filter: otherFilter })],
    ['other events', wanted({ events: ['deleted'] })],
    ['another status', wanted({ status: 'paused' })],
  ])('that says %s by now is told, not applied', (_, inFile) => {
    expect(verdict({ inFile })).toBe('- file-changed');
    expect(reviewed({ inFile }).notes[0]?.advice).toContain('earshot register');
  });

  it('that wants it paused by now keeps it from being resumed or made anew', () => {
    const inFile = wanted({ status: 'paused' });
    expect(verdict({ ...pausedByService, inFile })).toBe('- file-changed');
    expect(verdict({ ...deletedByService, inFile })).toBe('- file-changed');
  });

  it('that wants it paused, as it is registered, lets it be made anew as paused', () => {
    const inFile = wanted({ status: 'paused' });
    const registration = { status: 'paused' } as const;
    expect(verdict({ ...deletedByService, registration, inFile })).toBe('recreate');
  });

  it('gives no reason where nothing is done', () => {
    expect(reviewed({ ...pausedByService, inFile: null }).because).toBe('');
  });
});

describe('without a file', () => {
  it('what was registered is maintained', () => {
    expect(verdict({ ...pausedByService, inFile: undefined })).toBe('resume');
    expect(verdict({ ...deletedByService, inFile: undefined })).toBe('recreate');
  });
});
