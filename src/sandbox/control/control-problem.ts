/** How the control port says no: problem JSON (RFC 9457) that says what happened, why, and what to do. */
import type { Context, HonoRequest } from 'hono';
import type { ContentfulStatusCode } from 'hono/utils/http-status';
import type { z } from 'zod';

/** One fault of a request: where (a key, or empty for the whole) and what. */
export interface FaultyField {
  readonly field: string;
  readonly message: string;
}

/** Thrown by a handler to end a request with a problem. */
export class ControlProblem extends Error {
  override readonly name = 'ControlProblem';
  readonly status: ContentfulStatusCode;
  readonly title: string;
  readonly fields: readonly FaultyField[];

  /** `detail` says what happened, why, and what to do; it becomes the error's message. */
  constructor(
    status: ContentfulStatusCode,
    title: string,
    detail: string,
    fields: readonly FaultyField[] = [],
  ) {
    super(detail);
    this.status = status;
    this.title = title;
    this.fields = fields;
  }
}

/** Answers with `application/problem+json`; `errors` is there when single fields are at fault. */
export function answerProblem(context: Context, problem: ControlProblem, headers = {}): Response {
  const { status, title, message, fields } = problem;
  const errors = fields.length === 0 ? {} : { errors: fields };
  const body = { type: 'about:blank', title, status, detail: message, ...errors };
  return context.body(JSON.stringify(body), status, {
    'Content-Type': 'application/problem+json',
    ...headers,
  });
}

/** Reads a JSON body by a schema. Throws ControlProblem 400 naming each fault. */
export async function readBody<Schema extends z.ZodType>(
  request: HonoRequest,
  schema: Schema,
  example: string,
): Promise<z.output<Schema>> {
  const text = await request.text();
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ControlProblem(
      400,
      'The body is not JSON',
      `The request was refused because its body could not be read as JSON; send something like ${example}.`,
    );
  }
  return check(value, schema, `send something like ${example}`);
}

/** Reads the query by a schema. Throws ControlProblem 400 naming each fault. */
export function readQuery<Schema extends z.ZodType>(
  request: HonoRequest,
  schema: Schema,
  example: string,
): z.output<Schema> {
  return check(request.query(), schema, `ask for something like ${example}`);
}

function check<Schema extends z.ZodType>(value: unknown, schema: Schema, advice: string) {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const fields = result.error.issues.flatMap(toFields);
  const faults = fields.map(({ field, message }) => (field ? `${field}: ${message}` : message));
  throw new ControlProblem(
    400,
    'The request has faults',
    `Nothing was changed, because of ${faults.join('; ')}. Mend that, or ${advice}.`,
    fields,
  );
}

function toFields(issue: z.core.$ZodIssue): FaultyField[] {
  if (issue.code !== 'unrecognized_keys') {
    return [{ field: issue.path.join('.'), message: issue.message }];
  }
  return issue.keys.map((key) => ({
    field: [...issue.path, key].join('.'),
    message: 'unknown name',
  }));
}
