/**
 * `npm run audit`: queries the package registry for known vulnerabilities of runtime packages. Fails for high and
 * critical ones. Reports a registry that does not answer, without failing.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * @typedef {{ severity: string, via: (string | { title: string, url: string })[] }} Vulnerability
 * @typedef {{ vulnerabilities?: Record<string, Vulnerability>, message?: string }} Report
 */

const cwd = fileURLToPath(new URL('../', import.meta.url));
const audit = spawnSync('npm', ['audit', '--omit=dev', '--json'], { cwd, encoding: 'utf8' });
const { vulnerabilities, message } = reportOf(audit.stdout);
if (vulnerabilities === undefined) {
  const reason = message ?? audit.error?.message ?? 'unexpected output of npm audit';
  process.stdout.write(`Vulnerabilities not checked; no answer from the registry: ${reason}\n`);
} else {
  const found = Object.entries(vulnerabilities);
  for (const [name, { severity, via }] of found) {
    const why = via.map((one) => (typeof one === 'string' ? one : `${one.title} (${one.url})`));
    process.stdout.write(`${severity}: ${name}: ${why.join('; ')}\n`);
  }
  const severe = found.filter(([, { severity }]) => ['high', 'critical'].includes(severity)).length;
  process.stdout.write(
    `${found.length} packages with known vulnerabilities, ${severe} high or critical.\n`,
  );
  if (severe > 0) process.exitCode = 1;
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
