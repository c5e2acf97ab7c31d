/** Proxy between a command and the sandbox's services that calls the test at a chosen request. */
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

/**
 * Moment of a cut: before a request reaches the services; after they have processed it, before the answer; or after
 * the answer was passed on.
 */
export type CutMoment = 'before' | 'after' | 'answered';

export interface CuttingProxy {
  url: string;
  /** Returns the number of requests since the last `cutAt`. */
  count(): number;
  /**
   * Calls the callback at this request, counted from 1, of those whose URL contains `part` (default: all). From the cut
   * on, nothing is forwarded or answered.
   */
  cutAt(number: number, moment: CutMoment, cut: () => void, part?: string): void;
  /** Forwards all requests again. */
  letPass(): void;
}

/** Starts a proxy on loopback in front of an address like `http://127.0.0.1:1234`. */
export async function startCuttingProxy(target: string): Promise<CuttingProxy> {
  let count = 0;
  let plan: { number: number; moment: CutMoment; cut: () => void; part: string } | null = null;
  const handle = async (incoming: IncomingMessage, outgoing: ServerResponse) => {
    if (plan !== null && count >= plan.number) return;
    if (incoming.url?.includes(plan?.part ?? '')) count += 1;
    const isCut = plan?.number === count ? plan : null;
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(Buffer.from(chunk));
    const body = Buffer.concat(chunks);
    if (isCut?.moment === 'before') return isCut.cut();
    const answer = await forward(target, incoming, body);
    if (isCut?.moment === 'after') return isCut.cut();
    outgoing.writeHead(answer.status, answer.headers).end(answer.body, isCut?.cut);
  };
  const server = createServer((incoming, outgoing) => {
    handle(incoming, outgoing).catch(() => outgoing.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    count: () => count,
    cutAt: (number, moment, cut, part = '') => {
      count = 0;
      plan = { number, moment, cut, part };
    },
    letPass: () => {
      count = 0;
      plan = null;
    },
  };
}

function forward(target: string, incoming: IncomingMessage, body: Buffer) {
  const { method = 'GET', url = '/', headers } = incoming;
  return new Promise<{ status: number; headers: NodeJS.Dict<string | string[]>; body: Buffer }>(
    (resolve, reject) => {
      const sent = request(`${target}${url}`, { method, headers }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () => {
          const { statusCode: status = 0 } = response;
          resolve({ status, headers: response.headers, body: Buffer.concat(chunks) });
        });
      });
      sent.on('error', reject);
      sent.end(body);
    },
  );
}
