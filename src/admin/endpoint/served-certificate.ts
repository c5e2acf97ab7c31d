/** What a TLS handshake shows of an endpoint's certificate, whether it is trusted or not. */
import { isIP } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import type { SeenTls } from './probe-fault.ts';

/** Null on a connection without certificate. */
export function seenTls(socket: TLSSocket): SeenTls | null {
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) return null;
  return {
    protocol: socket.getProtocol() ?? 'unknown',
    issuer: certificate.issuer.replaceAll('\n', ', '),
    notBefore: certificate.validFromDate,
    notAfter: certificate.validToDate,
  };
}

/**
 * Shakes hands once more to see a certificate that was refused: Node does not hand that one out. Nothing
 * is verified here, so nothing is sent and nothing decided: it is for words alone. Null when it fails.
 */
export function lookAtCertificate(options: {
  host: string;
  port: number;
  timeoutMs: number;
}): Promise<SeenTls | null> {
  const { host, port, timeoutMs } = options;
  return new Promise((resolve) => {
    const socket = connect({
      host,
      port,
      rejectUnauthorized: false,
      ...(isIP(host) === 0 ? { servername: host } : {}),
    });
    const timer = setTimeout(() => socket.destroy(), timeoutMs);
    let seen: SeenTls | null = null;
    socket.once('secureConnect', () => {
      seen = seenTls(socket);
      socket.destroy();
    });
    // Why it fails has been told by the connection that verified.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(seen);
    });
  });
}
