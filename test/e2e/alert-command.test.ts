/** The alert command does not outlive earshot: it is terminated with every process that it started. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** Ignores SIGTERM, and so does its child; both end on their own after a minute. */
const stubborn = `
trap '' TERM
linger() { n=0; while [ $n -lt 300 ]; do n=$((n + 1)); sleep 0.2; done; }
linger &
echo "$$ $!" > "$1"
linger
`;

/** Returns true for a live process; a terminated one that was not waited for is a zombie with its pid. */
function isAlive(pid: number): boolean {
  const file = `/proc/${pid}/stat`;
  return existsSync(file) && !/\) Z /.test(readFileSync(file, 'utf8'));
}

it.skipIf(!existsSync('/proc/self/stat'))(
  'has ended when the program ends (needs /proc)',
  async () => {
    const folder = temporaryDirectory();
    const [script, file] = [join(folder, 'notify.sh'), join(folder, 'pids')];
    writeFileSync(script, stubborn);
    const env = { EARSHOT_ALERT_COMMAND: `sh ${script} ${file}` };
    const notifying = spawnCommand(['alerts', '--test'], { env, cwd: folder });
    const pids = () => (existsSync(file) ? readFileSync(file, 'utf8') : '').match(/\d+/g) ?? [];
    await expect.poll(pids, { timeout: 15_000 }).toHaveLength(2);
    const started = pids().map(Number);
    expect(started.filter(isAlive)).toEqual(started);
    const askedMs = performance.now();
    notifying.interrupt();
    const { code, err } = await notifying.ended;
    expect(code, err).toBe(1);
    // Two seconds for the command to end after SIGTERM.
    expect(performance.now() - askedMs).toBeLessThan(8_000);
    await expect.poll(() => started.filter(isAlive)).toEqual([]);
  },
);
