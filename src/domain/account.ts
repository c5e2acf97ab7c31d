/** How the catalogue account is entered. */

/** By a login at the identity provider. */
export interface PasswordAccount {
  kind: 'password';
  tokenUrl: string;
  clientId: string;
  username: string;
  password: string;
  /** Six digits, or the shared secret (base32) that codes are made from; undefined without two-factor login. */
  totp: string | undefined;
}

/** With a token as it is, or by a login. */
export type Account = { kind: 'token'; accessToken: string } | PasswordAccount;
