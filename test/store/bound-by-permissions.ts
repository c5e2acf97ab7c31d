/** Runs a child program under ordinary permission checks. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

/** Drops root's power to ignore permission bits. The child is a file in this folder. */
export function runBoundByPermissions(child: string, ...parameters: string[]) {
  const command = [process.execPath, join(import.meta.dirname, child), ...parameters];
  const drop = ['--bounding-set', '-dac_override', '--inh-caps', '-dac_override'];
  const isRoot = process.getuid?.() === 0;
  const [program = '', ...args] = isRoot ? ['setpriv', ...drop, ...command] : command;
  return spawnSync(program, args, { encoding: 'utf8', timeout: 20_000 });
}
