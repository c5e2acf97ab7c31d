/** One authenticated GET over HTTPS on loopback, for readiness and for the probe. */
import { type Agent, request } from 'node:https';

/** Where to ask, whom to trust, and as whom. */
export interface StatusRequest {
  readonly port: number;
  readonly path: string;
  readonly authorityPem: string;
  readonly username: string;
  readonly password: string;
  /** Omitted: a connection of its own. */
  readonly agent?: Agent;
}

const timeoutMs = 5_000;

/** The status of the answer once its body has been read, or undefined when none came. Never rejects. */
export function getStatus(target: StatusRequest): Promise<number | undefined> {
  return new Promise((resolve) => {
    const outgoing = request({
      host: '127.0.0.1',
      servername: 'localhost',
      port: target.port,
      path: target.path,
      ca: target.authorityPem,
      auth: `${target.username}:${target.password}`,
      agent: target.agent ?? false,
      timeout: timeoutMs,
    });
    outgoing.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode));
      response.on('error', () => resolve(undefined));
    });
    outgoing.on('timeout', () => outgoing.destroy());
    outgoing.on('error', () => resolve(undefined));
    outgoing.on('close', () => resolve(undefined));
    outgoing.end();
  });
}
