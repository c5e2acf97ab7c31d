import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProxyParts } from './behind-proxy.ts';
import { describeBehind } from './behind-suite.ts';

const program = '/usr/sbin/nginx';
const shipped = join(import.meta.dirname, '../../deploy/nginx/earshot.conf');

/** The shipped file with another host name, other ports and other certificate paths. */
function filledIn({ proxyPort, receiverPort, certFile, keyFile }: ProxyParts): string {
  return readFileSync(shipped, 'utf8')
    .replaceAll('/etc/letsencrypt/live/earshot.example.org/fullchain.pem', certFile)
    .replaceAll('/etc/letsencrypt/live/earshot.example.org/privkey.pem', keyFile)
    .replaceAll('earshot.example.org', 'localhost')
    .replaceAll('listen 443 ', `listen 127.0.0.1:${proxyPort} `)
    .replaceAll('listen [::]:443 ', `listen [::1]:${proxyPort} `)
    .replaceAll('127.0.0.1:8081', `127.0.0.1:${receiverPort}`);
}

/** Debian's settings from nginx.conf, in a temporary folder. */
function around(folder: string): string {
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const paths = kinds.map((kind) => `  ${kind}_temp_path ${join(folder, kind)};`).join('\n');
  const user = process.getuid?.() === 0 ? 'user root;' : '';
  return `${user}
daemon off;
pid ${join(folder, 'nginx.pid')};
error_log stderr;
events {}
http {
  access_log off;
${paths}
  include ${join(folder, 'earshot.conf')};
}
`;
}

describeBehind('nginx', program, (parts) => {
  const { folder } = parts;
  const main = join(folder, 'nginx.conf');
  writeFileSync(join(folder, 'earshot.conf'), filledIn(parts));
  writeFileSync(main, around(folder));
  return { program, args: ['-p', folder, '-e', 'stderr', '-c', main] };
});
