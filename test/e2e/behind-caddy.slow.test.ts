import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProxyParts } from './behind-proxy.ts';
import { describeBehind } from './behind-suite.ts';

const program = '/usr/bin/caddy';
const shipped = join(import.meta.dirname, '../../deploy/caddy/Caddyfile');

/** The snippet with another name, other ports and the line for certificate files taken in. */
function filledIn({ proxyPort, receiverPort, certFile, keyFile }: ProxyParts): string {
  return readFileSync(shipped, 'utf8')
    .replace(
      '# tls /etc/earshot/fullchain.pem /etc/earshot/privkey.pem',
      `tls ${certFile} ${keyFile}`,
    )
    .replaceAll('earshot.example.org', `localhost:${proxyPort}`)
    .replaceAll('127.0.0.1:8081', `127.0.0.1:${receiverPort}`);
}

/** Options of the program that keep it on loopback, away from ports that others may use. */
const ofTheTest = `{
	admin off
	default_bind 127.0.0.1
	auto_https disable_redirects
`;

describeBehind('Caddy', program, (parts) => {
  const file = join(parts.folder, 'Caddyfile');
  writeFileSync(file, filledIn(parts).replace('\n{\n', `\n${ofTheTest}`));
  return { program, args: ['run', '--adapter', 'caddyfile', '--config', file] };
});
