/** Runs a child program where permission bits count. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** Root passes permission bits by unless it gives up that power. The child is a file beside this one. */
export function runBoundByPermissions(child: string, ...parameters: string[]) {
  const command = [process.execPath, join(import.meta.dirname, child), ...parameters];
  const drop = ['--bounding-set', '-dac_override', '--inh-caps', '-dac_override'];
  const isRoot = process.getuid?.() === 0;
  const [program = '', ...args] = isRoot ? ['setpriv', ...drop, ...command] : command;
  return spawnSync(program, args, { encoding: 'utf8', timeout: 20_000 });
}
