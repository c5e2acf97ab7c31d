/** Closing the sandbox ends its process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished, vi } from 'vitest';
import type { SandboxOptions } from '../../src/sandbox/sandbox-options.ts';
import { startTrustedEndpoint } from './set-up.ts';

const credentials = { username: 'catalogue', password: 'secret' };

/**
 * Runs a sandbox in a separate process, which closes it when its input ends. Only the sandbox
 * could keep that process alive, so its exit proves that no handle is left.
 */
function runInProcess(options: Partial<SandboxOptions>) {
  const script = `
    import { once } from 'node:events';
    const { startSandbox } = await import(process.env.SANDBOX_MODULE);
    const options = JSON.parse(process.env.SANDBOX_OPTIONS);
    const sandbox = await startSandbox({ ...options, now: Date.now });
    process.stdin.resume();
    await once(process.stdin, 'end');
    await sandbox.close();
    console.log(JSON.stringify(await sandbox.finished));`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', script], {
    env: {
      SANDBOX_MODULE: new URL('../../src/sandbox/sandbox.ts', import.meta.url).href,
      SANDBOX_OPTIONS: JSON.stringify(options),
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  return child;
}

it.each([
  ['hangs', 'hang'],
  ['fails', 503],
  ['answers', 200],
] as const)(
  'a sandbox closed in the middle, with an endpoint that %s, leaves no handle',
  async (_, answer) => {
    const { url, requests, trustedCaPems } = await startTrustedEndpoint(() => answer);
    const child = runInProcess({
      ...credentials,
      endpoint: url.href,
      trustedCaPems,
      ratePerSecond: 1_000,
      faults: { outOfOrder: 0.2, duplicate: 0.5 },
    });
    await vi.waitFor(() => expect(requests.length).toBeGreaterThanOrEqual(8), 10_000);
    const startedMs = performance.now();
    child.stdin.end();
    const [printed] = await Promise.all([text(child.stdout), once(child, 'exit')]);
    expect(performance.now() - startedMs).toBeLessThan(8_000);
    expect(child.exitCode).toBe(0);
    expect(JSON.parse(printed).published).toBeGreaterThanOrEqual(8);
  },
);
