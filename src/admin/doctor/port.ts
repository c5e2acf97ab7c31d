/** The doctor's check of the port: whether anything takes connections there, as seen from here. */
import { connect } from 'node:net';
import type { Finding } from '../../domain/finding.ts';
import { faultOf, timeoutCode } from '../endpoint/probe-fault.ts';

const timeoutDefaultMs = 10_000;

/** Opens one TCP connection to the host and port of a URL, and closes it. */
export async function checkPort(options: {
  publicUrl: string;
  timeoutMs?: number;
}): Promise<Finding[]> {
  const check = 'port';
  const { publicUrl, timeoutMs = timeoutDefaultMs } = options;
  const url = new URL(publicUrl);
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  const port = url.port || '443';
  const failure = await connectionFailure(host, Number(port), timeoutMs);
  if (failure === null) {
    const message = `Port ${port} takes connections from this machine; only a look from outside shows whether a firewall lets the Internet in.`;
    return [{ check, state: 'pass', message }];
  }
  const progress = { stage: 'connection', host, port, timeoutMs, tls: null } as const;
  const { message, advice } = faultOf(failure, progress);
  const inside =
    'Some routers do not lead a machine back to its own public address: then try from outside.';
  return [{ check, state: 'fail', message, advice: `${advice} ${inside}` }];
}

/** Null when the connection came about. */
function connectionFailure(host: string, port: number, timeoutMs: number): Promise<Error | null> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const timer = setTimeout(() => {
      socket.destroy(Object.assign(new Error('the time is up'), { code: timeoutCode }));
    }, timeoutMs);
    let failure: Error | null = null;
    socket.once('connect', () => socket.destroy());
    socket.once('error', (error) => {
      failure = error;
    });
    socket.once('close', () => {
      clearTimeout(timer);
      resolve(failure);
    });
  });
}
