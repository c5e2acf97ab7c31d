/**
 * Answers to challenges, in the data directory: whichever program the authority reaches gives them,
 * be it the receiver that runs while a command orders.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import type { KeyPair } from '../../http/listener.ts';
import { acmeFolderName } from './acme-folder.ts';
import { AcmeProblem } from './acme-problem.ts';
import { removeFile, writeSaved } from './saved-file.ts';

export interface ChallengeFolder {
  /** For http-01: the text for a token. Rejects with `unavailable`, and AcmeProblem for a bad token. */
  put(token: string, keyAuthorization: string): Promise<void>;
  /** For tls-alpn-01: the certificate that the next handshakes are answered with. */
  putAlpn(pair: KeyPair): Promise<void>;
  /** Takes all answers to an authority away, those that an interrupted order left behind, too. */
  clear(): Promise<void>;
  /** The same as `put` for a program of ours that wants to know who answers; `clear` leaves it alone. */
  putKnock(token: string, text: string): Promise<void>;
  removeKnock(token: string): Promise<void>;
  /** The text for a token; null for one that nobody expects. */
  answer(token: string): string | null;
  alpnAnswer(): KeyPair | null;
}

/** RFC 8555, 8.3: base64url. It becomes a file's name. */
const tokenPattern = /^[\w-]{1,200}$/;
const alpnFileName = 'tls-alpn-01.json';
const keyPairSchema = z.object({ cert: z.string(), key: z.string() });

export function openChallengeFolder(dataDir: string): ChallengeFolder {
  const folder = join(dataDir, acmeFolderName, 'challenges');
  const knocks = join(dataDir, acmeFolderName, 'knocks');
  const pathOf = (within: string, token: string) => {
    if (!tokenPattern.test(token)) {
      throw new AcmeProblem('malformedAnswer', 'a token is not as RFC 8555 has it');
    }
    return join(within, token);
  };
  return {
    put: async (token, keyAuthorization) => writeSaved(pathOf(folder, token), keyAuthorization),
    putKnock: async (token, text) => writeSaved(pathOf(knocks, token), text),
    removeKnock: async (token) => removeFile(pathOf(knocks, token)),
    putAlpn: (pair) => writeSaved(join(folder, alpnFileName), pair),
    clear: () => removeFile(folder),
    answer: (token) => {
      if (!tokenPattern.test(token)) return null;
      return textOf(join(folder, token)) ?? textOf(join(knocks, token));
    },
    alpnAnswer: () => {
      const text = textOf(join(folder, alpnFileName));
      return text === null ? null : keyPairSchema.parse(JSON.parse(text));
    },
  };
}

/** Read at once: these are asked for a few times in months, and a handshake cannot wait. */
function textOf(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
