/** The doctor's look at where alerts are told: reached, and told nothing. */
import { describe, expect, it } from 'vitest';
import { checkAlerts } from '../../src/watch/notify.ts';
import { freePort } from '../helpers/free-ports.ts';
import { startHook } from '../sinks/hook-server.ts';

const options = {
  alertUrl: null,
  alertCommand: null,
  findProgram: (program: string) => (program === 'tell' ? null : 'it is no file'),
  signal: new AbortController().signal,
};

describe('the check of alerts', () => {
  it('warns where nobody is told', async () => {
    expect(await checkAlerts(options)).toMatchObject([
      { state: 'warn', advice: expect.stringMatching(/EARSHOT_ALERT_URL.*EARSHOT_ALERT_COMMAND/) },
    ]);
  });

  it('looks at each channel, posts nothing, and keeps the address to itself', async () => {
    const hook = await startHook();
    const alertUrl = `${hook.url}/secret-part`;
    const both = await checkAlerts({ ...options, alertUrl, alertCommand: ['tell', '--urgent'] });
    expect(both).toMatchObject([{ state: 'pass' }, { state: 'pass' }]);
    expect(hook.received).toEqual([]);
    expect(JSON.stringify(both)).not.toContain('secret-part');
  });

  it('says what cannot be reached, or run', async () => {
    const alertUrl = `http://127.0.0.1:${await freePort()}/secret-part`;
    const both = await checkAlerts({ ...options, alertUrl, alertCommand: ['./gone'] });
    expect(both).toMatchObject([
      { state: 'fail', message: expect.stringContaining('ECONNREFUSED') },
      { state: 'fail', message: './gone cannot be run: it is no file.' },
    ]);
    expect(JSON.stringify(both)).not.toContain('secret-part');
  });

  it('ends at once when it is to end', async () => {
    const signal = AbortSignal.abort();
    const [finding] = await checkAlerts({ ...options, alertUrl: 'http://127.0.0.1:9/', signal });
    expect(finding).toMatchObject({ state: 'fail', message: expect.stringContaining('was ended') });
  });
});
