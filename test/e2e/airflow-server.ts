/** The REST API of Airflow 3, as far as a recipe needs it, written from its published interface. */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { type Answer, type SeenRequest, startServer } from '../core/http/answering-server.ts';

/** `TriggerDAGRunPostBody`: other members are refused, and `logical_date` is required. */
const triggerBody = z.strictObject({
  dag_run_id: z.string(),
  logical_date: z.null(),
  conf: z.object({ documents: z.array(z.record(z.string(), z.unknown())) }),
});
/** Length of the column of the database. */
const runIdCharactersMax = 250;

const login = { username: 'earshot', password: 'a password' };
const refusal = (status: number, detail: unknown): Answer => ({ status, body: { detail } });

/** Starts a server with the DAG `products`, and the DAG `private`, on which the user has no permission. */
export async function startAirflow() {
  const runs = new Map<string, z.infer<typeof triggerBody>['conf']['documents']>();
  const tokens = new Set<string>();
  const counts = { logins: 0, conflicts: 0 };
  /** Replaces answers, as a proxy does. `isNew` is true if the request started a run. */
  let proxy: (isNew: boolean, path: string) => Answer | null = () => null;

  const logIn = (body: unknown): Answer => {
    if (JSON.stringify(body) !== JSON.stringify(login)) return refusal(401, 'Invalid credentials');
    counts.logins += 1;
    const token = randomUUID();
    tokens.add(token);
    return { status: 201, body: { access_token: token } };
  };
  const trigger = (request: SeenRequest, body: unknown): Answer => {
    const [, dag] = /^\/api\/v2\/dags\/([^/]+)\/dagRuns$/.exec(request.path) ?? [];
    if (dag === undefined) return refusal(404, 'Not Found');
    const [, token = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (!tokens.has(token)) return refusal(401, 'Token Expired');
    if (dag === 'private') return refusal(403, 'Forbidden');
    if (dag !== 'products') return refusal(404, `The Dag with ID: \`${dag}\` was not found`);
    const { data, error } = triggerBody.safeParse(body);
    if (data === undefined) return refusal(422, error.issues);
    const { dag_run_id, conf } = data;
    if (dag_run_id.length > runIdCharactersMax)
      return refusal(422, { reason: 'Value rejected by database' });
    if (runs.has(dag_run_id)) {
      counts.conflicts += 1;
      return refusal(409, { reason: 'Unique constraint violation' });
    }
    runs.set(dag_run_id, conf.documents);
    return { body: { dag_run_id, dag_id: dag, state: 'queued', conf } };
  };
  const { url } = await startServer((request) => {
    const body: unknown = JSON.parse(request.body);
    const before = runs.size;
    const answer = request.path === '/auth/token' ? logIn(body) : trigger(request, body);
    return proxy(runs.size > before, request.path) ?? answer;
  });
  return {
    ...{ url, runs, counts, login: Object.values(login).join('\n') },
    expireTokens: () => tokens.clear(),
    setProxy: (next: typeof proxy) => {
      proxy = next;
    },
  };
}
