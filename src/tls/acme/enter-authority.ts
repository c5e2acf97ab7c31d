/** Opens the account at an authority: the one on disk, or a new one. */
import { AcmeProblem, isAcmeProblem } from './acme-problem.ts';
import type { AcmeWorld } from './acme-world.ts';
import { type Authority, createAuthority, createKey, type Directory } from './authority.ts';

export interface EnteredAuthority {
  authority: Authority;
  directory: Directory;
}

/** For the questions that need no account. */
export function visitAuthority({ settings, signal }: AcmeWorld): Promise<Authority> {
  const { directoryUrl, extraCaPem } = settings;
  return createKey().then((accountKey) =>
    createAuthority({
      directoryUrl,
      extraCaPem,
      signal,
      accountKey,
      accountUrl: null,
      eab: undefined,
    }),
  );
}

/**
 * The key is on disk before the authority hears of it, so that an interruption makes no second
 * account. Rejects with AcmeProblem, `configuration` or `unavailable`.
 */
export async function enterAuthority({
  folder,
  settings,
  signal,
}: Pick<AcmeWorld, 'folder' | 'settings' | 'signal'>): Promise<EnteredAuthority> {
  const { directoryUrl, extraCaPem, eab, email } = settings;
  const open = (accountKey: string, accountUrl: string | null) =>
    createAuthority({ directoryUrl, extraCaPem, signal, accountKey, accountUrl, eab });
  let saved = await folder.readAccount(directoryUrl);
  if (saved === null) {
    saved = { directoryUrl, key: await createKey(), url: null };
    await folder.writeAccount(saved);
  }
  const { key } = saved;
  const authority = open(key, saved.url);
  const directory = await authority.readDirectory();
  if (saved.url === null && eab === undefined && directory.meta?.externalAccountRequired === true) {
    throw new AcmeProblem('externalAccountRequired', 'its directory says so');
  }
  const url = await authority
    .enterAccount(email)
    .catch((problem: unknown) => {
      // Authorities forget: test ones at each start. The same key makes a new account.
      const isForgotten =
        isAcmeProblem(problem, 'accountDoesNotExist') || isAcmeProblem(problem, 'malformed');
      if (saved.url === null || !isForgotten) throw problem;
      return open(key, null).enterAccount(email);
    })
    .catch(aboutTheAccount);
  if (url !== saved.url) await folder.writeAccount({ directoryUrl, key, url });
  return { authority: url === saved.url ? authority : open(key, url), directory };
}

/** `unauthorized` means something else of an account than of a challenge. */
function aboutTheAccount(problem: unknown): never {
  if (!isAcmeProblem(problem, 'unauthorized')) throw problem;
  throw new AcmeProblem('accountRefused', problem.detail, problem.retryAfterMs);
}
