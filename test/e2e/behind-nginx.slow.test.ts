import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nginx, type ProxyParts, prepareNginx } from './behind-proxy.ts';
import { describeBehind } from './behind-suite.ts';

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

describeBehind('nginx', nginx, (parts) => prepareNginx(parts.folder, filledIn(parts)));
