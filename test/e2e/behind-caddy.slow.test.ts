import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ProxyParts } from './behind-proxy.ts';
import { describeBehind } from './behind-suite.ts';

const program = '/usr/bin/caddy';
const shipped = join(import.meta.dirname, '../../deploy/caddy/Caddyfile');

/** The shipped file with another host name, other ports, and its line for certificate files enabled. */
function filledIn({ proxyPort, receiverPort, certFile, keyFile }: ProxyParts): string {
  return readFileSync(shipped, 'utf8')
    .replace(
      '# tls /etc/earshot/fullchain.pem /etc/earshot/privkey.pem',
      `tls ${certFile} ${keyFile}`,
    )
    .replaceAll('earshot.example.org', `localhost:${proxyPort}`)
    .replaceAll('127.0.0.1:8081', `127.0.0.1:${receiverPort}`);
}

/** Caddy options that limit it to loopback and avoid commonly used ports. */
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
