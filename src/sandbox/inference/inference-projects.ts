/** The projects of the inference service: a key belongs to one, and each has its models (spec, What the service does). */
import { z } from 'zod';

const projectSchema = z.strictObject({
  name: z.string().min(1),
  /** A header has to carry it. */
  key: z.string().regex(/^[\x21-\x7e]+$/, 'expected visible ASCII without blanks'),
  /** `<vendor>/<model_name>`. */
  models: z.array(z.string().regex(/^[^/\s]+\/\S+$/, 'expected <vendor>/<model_name>')),
});

export type InferenceProject = z.output<typeof projectSchema>;

/** The project that users are told of. */
export const demoProject = {
  name: 'demo',
  key: 'sandbox-key',
  models: ['openai/gpt-oss-120b', 'meta-llama/Llama-3.3-70B-Instruct'],
} as const;

/** Somebody else's, for the key of another project. */
export const otherProject = {
  name: 'other',
  key: 'other-sandbox-key',
  models: ['mistralai/Mistral-Small-3.2-24B-Instruct-2506'],
} as const;

/** Projects, each with a name and a key of its own; without any, the two above. */
export const inferenceProjectsSchema = z
  .array(projectSchema)
  .refine((projects) => isUnlike(projects.map(({ key }) => key)), 'two projects have one key')
  .refine((projects) => isUnlike(projects.map(({ name }) => name)), 'two projects have one name')
  .default([demoProject, otherProject].map((one) => ({ ...one, models: [...one.models] })));

/** The project of the key in a request; undefined where it has none, or one that nobody has. */
export function projectOf(
  authorization: string | undefined,
  projects: readonly InferenceProject[],
): InferenceProject | undefined {
  const [, key] = /^Bearer +(\S+)$/i.exec(authorization ?? '') ?? [];
  return projects.find((project) => project.key === key);
}

function isUnlike(texts: readonly string[]): boolean {
  return new Set(texts).size === texts.length;
}
