/** `/healthz` and `/readyz`: one word for what watches over processes, such as Kubernetes or a load balancer. */

/**
 * Why no notification can be taken. writer: the thread that writes has ended, or does not answer. store: it
 * cannot write. certificate: there is none, or none that is valid now.
 */
export const unreadyReasons = ['writer', 'store', 'certificate'] as const;
export type UnreadyReason = (typeof unreadyReasons)[number];

/** All that is in the way; nothing when notifications are taken. Never rejects. */
export type Readiness = () => Promise<readonly UnreadyReason[]>;

/** Paths that answer without the password: what they say is of no use to a stranger. */
export const healthPaths: readonly string[] = ['/healthz', '/readyz'];

/** That this answers says that the process lives and its event loop turns. */
export function healthAnswer(): Response {
  return new Response('ok');
}

/** 200 `ready`, or 503 with the reasons, one a line. */
export async function readyAnswer(readiness: Readiness): Promise<Response> {
  const reasons = await readiness();
  if (reasons.length === 0) return new Response('ready');
  return new Response(reasons.join('\n'), { status: 503 });
}
