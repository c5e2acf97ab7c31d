/**
 * Writes docs/reference/http.md from the OpenAPI document and compares. To update the page:
 * `npx vitest run test/docs/http-reference.test.ts --update`.
 */
import { expect, it } from 'vitest';
import { openConsole } from '../core/api/console-context.ts';

interface Parameter {
  name: string;
  description?: string;
  schema: { type?: string; enum?: string[]; default?: unknown; items?: { type?: string } };
}

/** The parts of a JSON schema that the responses use. */
interface Schema {
  type?: string | string[];
  description?: string;
  enum?: (string | null)[];
  const?: unknown;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
}

interface Operation {
  summary: string;
  description: string;
  parameters: Parameter[];
  responses: Record<string, { description: string; content?: Record<string, { schema: Schema }> }>;
}

interface PathRow {
  method: string;
  path: string;
  summary: string;
}

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

function table(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(cell).join(' | ')} |`;
  return [line(heading), `|${'---|'.repeat(heading.length)}`, ...rows.map(line)].join('\n');
}

function typeText({ schema }: Parameter): string {
  const values = schema.enum?.map((value) => `\`${value}\``).join(', ');
  return values ?? (schema.type === 'array' ? `list of ${schema.items?.type}` : schema.type) ?? '';
}

/** Returns the non-null alternative, and whether null is allowed. */
function withoutNull(schema: Schema): { schema: Schema; isNullable: boolean } {
  const others = schema.anyOf?.filter(({ type }) => type !== 'null') ?? [];
  const [first] = others;
  if (schema.anyOf === undefined || first === undefined) return { schema, isNullable: false };
  const description = schema.description ?? first.description;
  const own = description === undefined ? {} : { description };
  return { schema: { ...first, ...own }, isNullable: others.length < schema.anyOf.length };
}

function fieldType(schema: Schema): string {
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${value}\``).join(', ');
  if (schema.type !== 'array') return [schema.type ?? 'any'].flat().join(' or ');
  return `list of ${fieldType(withoutNull(schema.items ?? {}).schema)}`;
}

/** Rows for each field at any depth: path, type, description. */
function fieldRows(given: Schema, path = ''): string[][] {
  const { schema, isNullable } = withoutNull(given);
  const items = schema.type === 'array' ? withoutNull(schema.items ?? {}).schema : schema;
  const suffix = schema.type === 'array' ? '[]' : '';
  const type = `${fieldType(schema)}${isNullable ? ' or null' : ''}`;
  const own = path === '' ? [] : [[`\`${path}\``, type, schema.description ?? '']];
  const below = Object.entries(items.properties ?? {}).flatMap(([name, child]) =>
    fieldRows(child, path === '' ? name : `${path}${suffix}.${name}`),
  );
  return [...own, ...below];
}

function section(path: string, { summary, description, parameters, responses }: Operation): string {
  const rows = parameters.map((parameter) => [
    `\`${parameter.name}\``,
    typeText(parameter),
    parameter.schema.default === undefined ? '' : `\`${parameter.schema.default}\``,
    parameter.description ?? '',
  ]);
  // JSON, or the data of a stream's events.
  const [answer] = Object.values(responses[200]?.content ?? {});
  const fields = fieldRows(answer?.schema ?? {});
  expect(fields.length).toBeGreaterThan(0);
  return [
    `### GET ${path}\n\n${summary}. ${description}\n`,
    ...(rows.length > 0
      ? [`${table(['parameter', 'type', 'default', 'description'], rows)}\n`]
      : []),
    `${table(['field', 'type', 'description'], fields)}\n`,
  ].join('\n');
}

const publicListener = `## Public listener

\`EARSHOT_LISTEN\`. Paths: \`/notifications\` and \`/notifications/<subscription name>\`. A name matches \`[a-z0-9][a-z0-9-]{0,62}\`.
Every request needs Basic Auth with the endpoint credentials. The catalogue retries a failed push three times.

| status | meaning | stored |
|---|---|---|
| 200 | POST: \`{"status":"stored"}\`, or \`{"status":"duplicate"}\` for a known notification. GET, HEAD: the receiver can store notifications | yes |
| 400 | the body is not a notification, or the receiver cannot decode the body; the answer names the fault | in the quarantine; valid notifications of an array also in the log |
| 401 | the credentials are missing or wrong | no |
| 404 | the path is unknown | no |
| 405 | the method is not allowed; \`Allow\` lists the methods | no |
| 408 | the request did not arrive completely in time | no |
| 413 | the body is larger than 1 MiB, compressed or decompressed | no |
| 415 | the body has a Content-Encoding | in the quarantine |
| 429 | more than 100 logins from one address failed within a minute | no |
| 431 | the headers are too large | no |
| 500 | internal error; the log line of the receiver with the request id has the reason | no |
| 503 | the receiver cannot store now, or too many requests wait; \`Retry-After\` has the delay in seconds | no |
`;

it('docs/reference/http.md describes every path', async () => {
  const { get } = await openConsole();
  const { paths } = (await get('/api')).json as { paths: PathRow[] };
  const { json: document } = await get('/api/openapi.json');
  const operations = Object.entries(document.paths as Record<string, { get: Operation }>);
  const [[, first] = []] = operations;
  const statuses = Object.entries(first?.get.responses ?? {}).filter(
    ([status]) => status !== '200',
  );
  const page = `# HTTP

<!-- Written by test/docs/http-reference.test.ts from the OpenAPI document. -->

${publicListener}
## Private listener

\`EARSHOT_CONSOLE_LISTEN\`, plain HTTP. If \`EARSHOT_CONSOLE_PASSWORD\` is set, requests need Basic Auth with the user name \`earshot\`.
The OpenAPI document is at \`/api/openapi.json\`. Later versions can add fields to answers. Explanations and examples:
[Queries](../queries.md).

${table(
  ['method', 'path', 'answer'],
  paths.map(({ method, path, summary }) => [method, `\`${path}\``, summary]),
)}

Errors are problem JSON (RFC 9457) with a \`requestId\`. The log line of the receiver has the same \`requestId\`.

${table(
  ['status', 'meaning'],
  statuses.map(([status, { description }]) => [status, description]),
)}

${operations.map(([path, { get: operation }]) => section(path, operation)).join('\n')}`;
  await expect(page).toMatchFileSnapshot('../../docs/reference/http.md');
});
