/** nginx and Caddy as real programs in front of receivers, with configuration files that we ship or document. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import { createCertificateAuthority } from '../../src/sandbox/certificate-authority.ts';
import { freePort } from '../helpers/free-ports.ts';
import { sendRequest } from '../helpers/send-request.ts';
import { printedBy } from '../helpers/spawned-command.ts';

export const nginx = '/usr/sbin/nginx';
export const caddy = '/usr/bin/caddy';

/** Program and arguments of a proxy. */
interface Prepared {
  program: string;
  args: string[];
}

/** Receivers without TLS behind a proxy of this machine. */
export const behindProxy = {
  EARSHOT_TLS: 'off',
  EARSHOT_TLS_CERT: '',
  EARSHOT_TLS_KEY: '',
  EARSHOT_TRUSTED_PROXIES: '127.0.0.1',
};

/** Values that replace those of a shipped file. */
interface ProxyParts {
  folder: string;
  port: number;
  certFile: string;
  keyFile: string;
  /** Changes the addresses of the receivers. */
  toReceivers: (text: string) => string;
}

const shipped = (file: string) =>
  readFileSync(join(import.meta.dirname, '../../deploy', file), 'utf8');

/** Preparations of a file in `deploy`, with another host name, other ports and certificates. */
const preparations: Record<string, (file: string, parts: ProxyParts) => Prepared> = {
  nginx: (file, { folder, port, certFile, keyFile, toReceivers }) => {
    const servers = toReceivers(shipped(file))
      .replaceAll('/etc/letsencrypt/live/earshot.example.org/fullchain.pem', certFile)
      .replaceAll('/etc/letsencrypt/live/earshot.example.org/privkey.pem', keyFile)
      .replaceAll('earshot.example.org', 'localhost')
      .replaceAll('listen 443 ', `listen 127.0.0.1:${port} `)
      .replaceAll('listen [::]:443 ', `listen [::1]:${port} `);
    return prepareNginx(folder, servers);
  },
  caddy: (file, { folder, port, certFile, keyFile, toReceivers }) => {
    const text = toReceivers(shipped(file))
      .replace(
        '# tls /etc/earshot/fullchain.pem /etc/earshot/privkey.pem',
        `tls ${certFile} ${keyFile}`,
      )
      .replaceAll('earshot.example.org', `localhost:${port}`);
    return prepareCaddy(folder, text);
  },
};

/** Starts a proxy with a shipped configuration and a certificate; it ends with the test. */
export async function startShippedProxy(
  file: string,
  { folder, toReceivers }: Pick<ProxyParts, 'folder' | 'toReceivers'>,
): Promise<{ port: number; ca: string }> {
  const authority = await createCertificateAuthority({ now: Date.now });
  const pair = await authority.issue({ hosts: ['localhost'] });
  const [certFile, keyFile] = [join(folder, 'proxy.pem'), join(folder, 'proxy-key.pem')];
  writeFileSync(certFile, pair.certificatePem);
  writeFileSync(keyFile, pair.keyPem);
  const port = await freePort();
  const prepare = preparations[file.split('/')[0] ?? ''];
  if (prepare === undefined) throw new Error(`${file} belongs to no known proxy.`);
  const prepared = prepare(file, { folder, port, certFile, keyFile, toReceivers });
  await startProxy(prepared, folder, port);
  return { port, ca: authority.certificatePem };
}

/** Resolves when the proxy answers. */
export async function startProxy(
  { program, args }: Prepared,
  folder: string,
  port: number,
): Promise<void> {
  const { PATH } = process.env;
  const env = { PATH, HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder };
  const child = spawn(program, args, { cwd: folder, env, stdio: ['ignore', 'ignore', 'pipe'] });
  const exit = once(child, 'exit');
  onTestFinished(async () => {
    // Not SIGKILL: a proxy ends its workers only on request.
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
    await exit;
    clearTimeout(timer);
  });
  const log = printedBy(child.stderr);
  const probe = { host: 'localhost', port, path: '/', rejectUnauthorized: false, agent: false };
  const answers = () => sendRequest(probe).then(() => 'answers', log);
  await expect.poll(answers, { timeout: 10_000 }).toBe('answers');
}

/** Writes Debian's settings from nginx.conf around a file with servers; returns the program and its arguments. */
export function prepareNginx(folder: string, servers: string): Prepared {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const paths = kinds.map((kind) => `  ${kind}_temp_path ${join(folder, kind)};`).join('\n');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  const main = join(folder, 'nginx.conf');
  writeFileSync(join(folder, 'earshot.conf'), servers);
  writeFileSync(
    main,
    `${user}
daemon off;
pid ${join(folder, 'nginx.pid')};
error_log stderr;
events { worker_connections 1024; }
http {
  access_log off;
${paths}
  include ${join(folder, 'earshot.conf')};
}
`,
  );
  return { program: nginx, args: ['-p', folder, '-e', 'stderr', '-c', main] };
}

/** Writes a Caddyfile with options that limit Caddy to loopback; returns the program and its arguments. */
export function prepareCaddy(folder: string, text: string): Prepared {
  const file = join(folder, 'Caddyfile');
  const options = '{\n\tadmin off\n\tdefault_bind 127.0.0.1\n\tauto_https disable_redirects\n';
  const isWithOptions = text.includes('\n{\n');
  writeFileSync(
    file,
    isWithOptions ? text.replace('\n{\n', `\n${options}`) : `${options}}\n${text}`,
  );
  return { program: caddy, args: ['run', '--adapter', 'caddyfile', '--config', file] };
}
