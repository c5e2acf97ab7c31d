/** Creates a temporary directory for a test, removed when the test has finished. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

export function temporaryDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'earshot-test-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}
