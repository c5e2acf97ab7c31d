/** Checks the password of the private listener. */
import { type Finding, finding } from '../terms/finding.ts';
import { passwordLengthMin } from './values.ts';

/** Warns of a password that can be guessed. For the doctor, and for the log at the start. */
export function checkConsolePassword(password: string | undefined): Finding[] {
  if (password === undefined || password.length >= passwordLengthMin) return [];
  const text = `EARSHOT_CONSOLE_PASSWORD has fewer than ${passwordLengthMin} characters, and can be guessed.`;
  return [finding('configuration', 'warning', text, 'Set a longer password.')];
}
