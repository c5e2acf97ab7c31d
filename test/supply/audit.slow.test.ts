/** `npm run audit` with a scripted registry. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const script = join(import.meta.dirname, '../../scripts/audit.js');

interface Registry {
  /** Advisories by package. */
  advisories?: Record<string, object[]>;
  status?: number;
}

/** Returns output and exit code of the script, with a registry that answers so. */
async function audit({ advisories = {}, status = 200 }: Registry) {
  const server = createServer((request, response) => {
    const asksForAdvisories = request.url?.endsWith('/advisories/bulk') ?? false;
    response.writeHead(asksForAdvisories ? status : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(asksForAdvisories ? advisories : {}));
  });
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  // npm caches advisories by their number.
  const own = {
    npm_config_registry: `http://127.0.0.1:${port}/`,
    npm_config_cache: temporaryDirectory(),
  };
  const env = { ...process.env, ...own, npm_config_fetch_retries: '0' };
  const child = spawn(process.execPath, [script], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return { code, out };
}

function advisory(severity: string) {
  const url = `https://example.org/${severity}`;
  return { id: 1, url, title: `A ${severity} fault`, severity, vulnerable_versions: '<999' };
}

it.each<[title: string, registry: Registry, code: number, out: RegExp]>([
  ['no advisory', {}, 0, /^0 packages with known vulnerabilities, 0 high or critical\.$/m],
  [
    'a high vulnerability',
    { advisories: { zod: [advisory('high')] } },
    1,
    /high: zod: A high fault \(https:\/\/example\.org\/high\)/,
  ],
  ['a critical one', { advisories: { zod: [advisory('critical')] } }, 1, /critical: zod: /],
  ['a lesser one', { advisories: { zod: [advisory('moderate')] } }, 0, /moderate: zod: /],
  ['one of a package for tests', { advisories: { vitest: [advisory('critical')] } }, 0, /^0 pack/],
  ['a registry that fails', { status: 503 }, 0, /^Vulnerabilities not checked; .* registry: .*\d/],
])('npm run audit with %s', async (_title, registry, code, out) => {
  expect(await audit(registry)).toEqual({ code, out: expect.stringMatching(out) });
});
