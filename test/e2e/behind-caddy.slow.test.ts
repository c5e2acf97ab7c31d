import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { caddy, type ProxyParts, prepareCaddy } from './behind-proxy.ts';
import { describeBehind } from './behind-suite.ts';

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

describeBehind('Caddy', caddy, (parts) => prepareCaddy(parts.folder, filledIn(parts)));
