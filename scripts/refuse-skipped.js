/**
 * Sums the given test reports. Fails if a test was skipped in each report that has it, although the shared fixtures are
 * available.
 */
import { existsSync, readFileSync } from 'node:fs';

/** @typedef {{ testResults: { name: string, assertionResults: { status: string, fullName: string }[] }[] }} Report */
const reports = process.argv.slice(2).map((file) => readFileSync(file, 'utf8'));
const files = reports.flatMap((text) => /** @type {Report} */ (JSON.parse(text)).testResults);
const tests = files.flatMap(({ name, assertionResults }) =>
  assertionResults.map(({ fullName, status }) => ({ test: `${name}: ${fullName}`, status })),
);
const named = (/** @type {string} */ status) =>
  new Set(tests.filter((one) => one.status === status).map(({ test }) => test));
const [passed, failed] = [named('passed'), named('failed')];
const all = new Set(tests.map(({ test }) => test));
const skipped = new Set([...all].filter((test) => !passed.has(test) && !failed.has(test)));
process.stdout.write(`${passed.size} passed, ${failed.size} failed, ${skipped.size} skipped\n`);
for (const test of skipped) process.stdout.write(`skipped: ${test}\n`);
const complete = existsSync(new URL('../../shared/fixtures', import.meta.url));
if (complete && skipped.size > 0) process.exitCode = 1;
