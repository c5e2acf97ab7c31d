/** The account's session on disk: shared by all commands, readable by its owner alone. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import writeFileAtomic from 'write-file-atomic';
import { z } from 'zod';

export const sessionFileName = 'account-session.json';

const fileBytesMax = 256 * 2 ** 10;

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
        return fileSchema.parse(JSON.parse(await readOwnerOnly(path))).session;
      } catch {
        // A new login replaces whatever is there.
        return null;
      }
    },
    write: (session) => {
      const text = JSON.stringify({ owner, session });
      return writeFileAtomic(path, `${text}\n`, { mode: 0o600 });
    },
  };
}

/** Rejects when others may read the file: what they could read they could have written down. */
async function readOwnerOnly(path: string): Promise<string> {
  const file = await open(path, 'r');
  try {
    const stats = await file.stat();
    if (!stats.isFile() || stats.size > fileBytesMax) throw new Error('This is no session file.');
    if ((stats.mode & 0o077) !== 0) throw new Error('Others may read the session file.');
    return await file.readFile('utf8');
  } finally {
    await file.close();
  }
}
