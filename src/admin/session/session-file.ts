/** The account's session on disk: shared by all commands, readable by its owner alone. */
import { join } from 'node:path';
import { z } from 'zod';
import { readOwnerOnly, writeOwnerOnly } from '../../domain/owner-only-file.ts';

export const sessionFileName = 'account-session.json';

/** True for one visible word, which a header can hold as it is. */
export function isTokenText(text: unknown): text is string {
  return typeof text === 'string' && /^[\x21-\x7e]{1,20000}$/.test(text);
}

const heldTokenSchema = z.object({
  value: z.string().refine(isTokenText),
  obtainedAtUs: z.number().int(),
  endsAtUs: z.number().int(),
});

const sessionSchema = z.object({
  renewedAtUs: z.number().int(),
  /** Null when there was none, or the catalogue has refused it. */
  accessToken: heldTokenSchema.nullable(),
  refreshToken: heldTokenSchema.nullable(),
  /** The window of the one-time code that was used last (one-time-code.ts). */
  codeWindow: z.number().int().nullable(),
});

export type HeldToken = z.infer<typeof heldTokenSchema>;
export type Session = z.infer<typeof sessionSchema>;

/** Whose session it is: those of another account, client or provider are of no use. */
export interface SessionOwner {
  tokenUrl: string;
  clientId: string;
  username: string;
}

export interface SessionFile {
  /** Null when there is none that can be used: none at all, another's, damaged, open to others. */
  read(): Promise<Session | null>;
  /** Replaces it in one step; on disk when it resolves. Rejects with the system's error. */
  write(session: Session): Promise<void>;
}

export function createSessionFile(
  dataDir: string,
  { tokenUrl, clientId, username }: SessionOwner,
): SessionFile {
  const path = join(dataDir, sessionFileName);
  const owner = { tokenUrl, clientId, username };
  const fileSchema = z.object({
    owner: z.object({
      tokenUrl: z.literal(tokenUrl),
      clientId: z.literal(clientId),
      username: z.literal(username),
    }),
    session: sessionSchema,
  });
  return {
    read: async () => {
      try {
        return fileSchema.parse(JSON.parse(readOwnerOnly(path) ?? '')).session;
      } catch {
        // A new login replaces whatever is there.
        return null;
      }
    },
    write: (session) => writeOwnerOnly(path, `${JSON.stringify({ owner, session })}\n`),
  };
}
