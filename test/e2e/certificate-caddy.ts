/** Caddy as a certificate authority: an ACME server other than Pebble, which validates on ports 80 and 443. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { freePorts } from '../helpers/free-ports.ts';
import { sendRequest } from '../helpers/send-request.ts';
import { temporaryDirectory } from '../helpers/temporary-directory.ts';

const program = '/usr/bin/caddy';

/** True if Debian's package `caddy` is installed; required in CI. */
export const hasCaddy = existsSync(program);

export interface CaddyAuthority {
  directoryUrl: string;
  /** PEM file of the root certificate, which also verifies its own HTTPS. */
  rootFile: string;
}

/** Caddy's own HTTPS uses another port, so that 80 and 443 are free for the receiver. */
function configuration(httpPort: number, httpsPort: number): string {
  return `{
	admin off
	skip_install_trust
	default_bind 127.0.0.1
	auto_https disable_redirects
	http_port ${httpPort}
	https_port ${httpsPort}
}

localhost:${httpsPort} {
	tls internal
	acme_server
}
`;
}

export async function startCaddyAuthority(): Promise<CaddyAuthority> {
  const folder = temporaryDirectory();
  const [httpPort = 0, httpsPort = 0] = await freePorts(2);
  const file = join(folder, 'Caddyfile');
  writeFileSync(file, configuration(httpPort, httpsPort));
  const { PATH } = process.env;
  const env = { PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const argv = ['run', '--adapter', 'caddyfile', '--config', file];
  const child = spawn(program, argv, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  onTestFinished(() => ended(child));
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    log += text;
  });
  const directoryUrl = `https://localhost:${httpsPort}/acme/local/directory`;
  const rootFile = join(folder, 'caddy/pki/authorities/local/root.crt');
  const answers = () => statusOf(directoryUrl, rootFile).catch(() => log);
  await expect.poll(answers, { timeout: 15_000 }).toBe(200);
  return { directoryUrl, rootFile };
}

async function statusOf(url: string, rootFile: string): Promise<number> {
  return (await sendRequest({ url, ca: readFileSync(rootFile), agent: false })).status;
}

function ended(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });
}

/** Returns true if this process can listen on a port of loopback that nobody else uses. */
export function canListen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer().once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
