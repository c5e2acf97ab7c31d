/** Fails when the test report given names a skipped test although everything it needs is there. */
import { existsSync, readFileSync } from 'node:fs';

/** @type {{ testResults: { assertionResults: { status: string, fullName: string }[] }[] }} */
const report = JSON.parse(readFileSync(process.argv[2] ?? '', 'utf8'));
const tests = report.testResults.flatMap((file) => file.assertionResults);
const skipped = tests.filter((test) => test.status !== 'passed' && test.status !== 'failed');
const passed = tests.filter((test) => test.status === 'passed').length;
process.stdout.write(
  `${passed} passed, ${tests.length - passed - skipped.length} failed, ${skipped.length} skipped\n`,
);
for (const test of skipped) process.stdout.write(`skipped: ${test.fullName}\n`);
const complete = existsSync(new URL('../../shared/fixtures', import.meta.url));
if (complete && skipped.length > 0) process.exitCode = 1;
