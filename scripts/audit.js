/**
 * The command of `npm run audit`: asks the package registry which packages that run have known weaknesses. Fails for
 * those that are high or critical; a registry that gives no answer is told, and no failure.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {{ severity: string, via: (string | { title: string, url: string })[] }} Weak
 * @typedef {{ vulnerabilities?: Record<string, Weak>, message?: string }} Report
 */

const cwd = fileURLToPath(new URL('../', import.meta.url));
const asked = spawnSync('npm', ['audit', '--omit=dev', '--json'], { cwd, encoding: 'utf8' });
const { vulnerabilities, message } = reportOf(asked.stdout);
if (vulnerabilities === undefined) {
  const reason = message ?? asked.error?.message ?? 'it is not as npm writes it';
  process.stdout.write(
    `Weaknesses of packages were not looked up, as there is no answer: ${reason}\n`,
  );
} else {
  const found = Object.entries(vulnerabilities);
  for (const [name, { severity, via }] of found) {
    const why = via.map((one) => (typeof one === 'string' ? one : `${one.title} (${one.url})`));
    process.stdout.write(`${severity}: ${name}: ${why.join('; ')}\n`);
  }
  const grave = found.filter(([, { severity }]) => ['high', 'critical'].includes(severity)).length;
  process.stdout.write(`${found.length} packages with known weaknesses, ${grave} of them grave.\n`);
  if (grave > 0) process.exitCode = 1;
}

/**
 * @param {string | null} text
 * @returns {Report}
 */
function reportOf(text) {
  try {
    return JSON.parse(text ?? '');
  } catch {
    return {};
  }
}
