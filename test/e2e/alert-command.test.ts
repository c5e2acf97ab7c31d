/** A program that alerts are told to does not outlive earshot: it is ended with all that it started. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { spawnCommand } from '../helpers/spawned-command.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

/** Does not end when it is asked to, nor does what it starts; both end by themselves after a minute. */
const stubborn = `
trap '' TERM
linger() { n=0; while [ $n -lt 300 ]; do n=$((n + 1)); sleep 0.2; done; }
linger &
echo "$$ $!" > "$1"
linger
`;

/** One that has ended but was not waited for is a zombie, and still has its number. */
function isAlive(pid: number): boolean {
  const file = `/proc/${pid}/stat`;
  return existsSync(file) && !/\) Z /.test(readFileSync(file, 'utf8'));
}

it.skipIf(!existsSync('/proc/self/stat'))(
  'is gone when the program has ended (needs /proc)',
  async () => {
    const folder = temporaryDirectory();
    const [script, file] = [join(folder, 'tell.sh'), join(folder, 'pids')];
    writeFileSync(script, stubborn);
    const env = { EARSHOT_ALERT_COMMAND: `sh ${script} ${file}` };
    const telling = spawnCommand(['alerts', '--test'], { env, cwd: folder });
    const pids = () => (existsSync(file) ? readFileSync(file, 'utf8') : '').match(/\d+/g) ?? [];
    await expect.poll(pids, { timeout: 15_000 }).toHaveLength(2);
    const started = pids().map(Number);
    expect(started.filter(isAlive)).toEqual(started);
    const askedMs = performance.now();
    telling.interrupt();
    const { code, err } = await telling.ended;
    expect(code, err).toBe(1);
    // Two seconds to end as it was asked to.
    expect(performance.now() - askedMs).toBeLessThan(8_000);
    await expect.poll(() => started.filter(isAlive)).toEqual([]);
  },
);
