/** Fails if a given test report contains a skipped test although the shared fixtures are available. */
import { existsSync, readFileSync } from 'node:fs';

/** @typedef {{ testResults: { assertionResults: { status: string, fullName: string }[] }[] }} Report */
const reports = process.argv.slice(2).map((file) => readFileSync(file, 'utf8'));
const results = reports.flatMap((text) => /** @type {Report} */ (JSON.parse(text)).testResults);
const tests = results.flatMap((file) => file.assertionResults);
const skipped = tests.filter((test) => test.status !== 'passed' && test.status !== 'failed');
const passed = tests.filter((test) => test.status === 'passed').length;
process.stdout.write(
  `${passed} passed, ${tests.length - passed - skipped.length} failed, ${skipped.length} skipped\n`,
);
for (const test of skipped) process.stdout.write(`skipped: ${test.fullName}\n`);
const complete = existsSync(new URL('../../shared/fixtures', import.meta.url));
if (complete && skipped.length > 0) process.exitCode = 1;
