/** `earshot status`: one screen for people, JSON for programs, with and without a running receiver. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Answer } from '../../core/http/answering-server.ts';
import { type FakeIoOptions, nowUs, version } from '../../helpers/fake-io.ts';
import { filledContext, hourUs, numbered, withStore } from '../../helpers/filled-store.ts';
import { temporaryDirectory } from '../../helpers/temporary-directory.ts';
import { registration } from '../alerts/watch-context.ts';
import { markReceiver } from './marked-receiver.ts';
import { activeAlert } from './status-facts.ts';

const password = 'a:long-secret';

const ready = { body: 'ready' };

/** A data directory with one subscription and two notifications; with an answer, a receiver runs. */
async function openContext(answer?: Answer) {
  const context = await filledContext(numbered(1, 2));
  await withStore(context.dataDir, async ({ administration, completeness }) => {
    const times = { activityAtUs: nowUs - hourUs, notifiedAtUs: nowUs - hourUs };
    await administration.commit({ save: registration({ name: 'sea-ice', ...times }) });
    const mark = { subscription: 'sea-ice', username: 'catalogue', lastAtUs: nowUs - hourUs };
    await administration.markDeliveries([mark]);
    await completeness.recordUptime({ fromUs: nowUs - 12 * hourUs, toUs: nowUs });
  });
  const env = {
    EARSHOT_DATA_DIR: context.dataDir,
    EARSHOT_TLS: 'off',
    EARSHOT_ENDPOINT_USERNAME: 'catalogue',
    EARSHOT_ENDPOINT_PASSWORD: password,
    // No index in this context.
    EARSHOT_INDEX: 'off',
  };
  if (answer !== undefined) await markReceiver(context.dataDir, answer);
  const workingDir = temporaryDirectory();
  const status = (argv: readonly string[] = [], { env: more = {}, ...rest }: FakeIoOptions = {}) =>
    context.earshot(['status', ...argv], { workingDir, ...rest, env: { ...env, ...more } });
  return { ...context, env, workingDir, status };
}

/** The line of a part with its continuation lines. */
function part(out: string, name: string): string {
  const lines = out.split('\n');
  const from = lines.findIndex((line) => line.slice(3).startsWith(`${name} `));
  const length = lines.slice(from + 1).findIndex((line) => !line.startsWith(' '.repeat(18)));
  return lines.slice(from, from + 1 + length).join('\n');
}

describe('earshot status', () => {
  it('starts with the missing receiver, then other problems and the next step', async () => {
    const { status, dataDir } = await openContext();
    const alert = activeAlert('lost-pushes', 'sea-ice', 'critical');
    await withStore(dataDir, ({ alerts }) =>
      alerts.settleFindings({ checked: [], findings: [alert], channels: [], atUs: nowUs }),
    );
    const { code, out, err } = await status();
    expect({ code, err }).toEqual({ code: 0, err: '' });
    expect(out).toMatch(
      /^The receiver is not running: .+\n\n!! receiver +The receiver is not running/,
    );
    expect(part(out, 'receiver')).toMatch(/\n {18}Next: Start the receiver with `earshot start`/);
    expect(part(out, 'coverage')).toMatch(
      /^!! coverage.*The text of lost-pushes\.\n +Next: What to do about/,
    );
  });

  it('has the facts and the levels with --json', async () => {
    const { status } = await openContext(ready);
    const { code, out } = await status(['--json', '--check']);
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      ...{ at: '2026-05-02T12:00:00.000000Z', version, ok: true, failures: [], alerts: [] },
      receiver: { startedAt: '2026-05-02T00:00:00.000000Z', refusing: null, queue: null },
      log: { firstPosition: 1, lastPosition: 2, lastReceivedAt: '2026-05-02T11:00:00.000000Z' },
      subscriptions: [
        { name: 'sea-ice', state: 'running', pausesAt: '2026-07-01T11:00:00.000000Z' },
      ],
      behindProxy: true,
      certificate: null,
    });
  });
});

describe('earshot status reports the cause of a problem:', () => {
  it('missing settings, below the state of the data directory', async () => {
    const { status } = await openContext();
    const env = { EARSHOT_ENDPOINT_USERNAME: '', EARSHOT_ENDPOINT_PASSWORD: '', EARSHOT_TLS: '' };
    const { code, out, err } = await status([], { env });
    expect(code).toBe(2);
    expect(part(out, 'subscriptions')).toContain('sea-ice (running, last notification 60 min ago)');
    const { log, failures } = JSON.parse((await status(['--json'], { env })).out);
    expect(log.lastPosition).toBe(2);
    expect(failures.map((one: { part: string }) => one.part)).toEqual(['certificate']);
    expect(err).toContain('No endpoint credentials are configured');
    expect(err).toContain('HTTPS needs EARSHOT_TLS_CERT and EARSHOT_TLS_KEY');
  });

  it('a missing data directory', async () => {
    const { status } = await openContext();
    const folder = temporaryDirectory();
    // Also when other settings are missing, as in a folder that is not the receiver's.
    for (const lacking of [{}, { EARSHOT_ENDPOINT_USERNAME: '', EARSHOT_TLS: '' }]) {
      const { code, out, err } = await status(['--data-dir', folder], { env: lacking });
      expect({ code, out }).toEqual({ code: 2, out: '' });
      expect(err).toMatch(new RegExp(`^earshot: There is no database in ${folder}\\. `));
      expect(err).not.toContain('credentials');
    }
  });

  it('a receiver that cannot store', async () => {
    const { status } = await openContext({ status: 503, body: 'store' });
    expect(part((await status()).out, 'receiver')).toMatch(
      /^!! receiver .*Notifications are refused: The receiver cannot store/,
    );
  });

  it('an unreadable earshot.config.ts, next to all other parts', async () => {
    const { status, workingDir } = await openContext(ready);
    writeFileSync(
      join(workingDir, 'earshot.config.ts'),
      'export default { subscriptions: {}, sinks: { act: {} } };\n',
    );
    const { code, out } = await status(['--check']);
    expect(code).toBe(3);
    expect(part(out, 'sinks')).toMatch(/^! {2}sinks .*earshot\.config\.ts is invalid/);
    expect(part(out, 'receiver')).toContain('accepting notifications');
  });
});
