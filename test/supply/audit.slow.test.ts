/** `npm run audit` with a scripted registry. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const script = join(import.meta.dirname, '../../scripts/audit.js');

/** Output and exit code of the script, when the registry has these advisories, or this status. */
async function audit({ advisories = {}, status = 200 }: { advisories?: object; status?: number }) {
  const server = createServer((request, response) => {
    const asksForAdvisories = request.url?.endsWith('/advisories/bulk') ?? false;
    response.writeHead(asksForAdvisories ? status : 404, { 'content-type': 'application/json' });
    response.end(JSON.stringify(asksForAdvisories ? advisories : {}));
  });
  server.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  return auditAt((server.address() as AddressInfo).port);
}

async function auditAt(port: number) {
  const registry = `http://127.0.0.1:${port}/`;
  // npm caches advisories by their number.
  const cache = temporaryDirectory();
  const own = { npm_config_registry: registry, npm_config_cache: cache };
  const env = { ...process.env, ...own, npm_config_fetch_retries: '0' };
  const child = spawn(process.execPath, [script], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let out = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    out += text;
  });
  const [code] = await once(child, 'close');
  return { code, out };
}

function advisory(severity: string) {
  const url = `https://example.org/${severity}`;
  return { id: 1, url, title: `A ${severity} fault`, severity, vulnerable_versions: '<999' };
}

describe('npm run audit', () => {
  it('passes when no advisory affects a package that runs', async () => {
    expect(await audit({})).toEqual({
      code: 0,
      out: '0 packages with known vulnerabilities, 0 high or critical.\n',
    });
  });

  it.each(['high', 'critical'])('fails for a %s vulnerability, and names it', async (severity) => {
    const { code, out } = await audit({ advisories: { zod: [advisory(severity)] } });
    expect(code).toBe(1);
    expect(out).toContain(
      `${severity}: zod: A ${severity} fault (https://example.org/${severity})`,
    );
    expect(out).toMatch(/[1-9]\d* high or critical/);
  });

  it('reports a lesser one, and passes', async () => {
    const { code, out } = await audit({ advisories: { zod: [advisory('moderate')] } });
    expect(code).toBe(0);
    expect(out).toContain('moderate: zod: A moderate fault');
  });

  it('ignores packages used only for tests', async () => {
    const { code, out } = await audit({ advisories: { vitest: [advisory('critical')] } });
    expect(code).toBe(0);
    expect(out).not.toContain('vitest');
  });

  it.each([405, 503])(
    'reports that nothing was checked when the registry answers %i',
    async (status) => {
      const { code, out } = await audit({ status });
      expect(code).toBe(0);
      expect(out).toMatch(/^Vulnerabilities not checked; no answer from the registry: .*\d/);
    },
  );

  it('reports the same without a registry', async () => {
    const server = createTcpServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const { code, out } = await auditAt(port);
    expect(code).toBe(0);
    expect(out).toContain('Vulnerabilities not checked; no answer from the registry');
  });
});
