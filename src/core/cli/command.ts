/** Runtime of the commands: opens the parts that a command declares, runs it, and closes them. */
import { Command } from 'commander';
import { createClosers } from '../host/job.ts';
import type { Io } from './io.ts';

/** Parts that a command can request by name. Features declare theirs in this interface. */
// biome-ignore lint/suspicious/noEmptyInterface: features add members.
export interface Parts {}

/** How a command uses a part. Features declare theirs in this interface. */
// biome-ignore lint/suspicious/noEmptyInterface: features add members.
export interface PartUses {}

export interface CommandSpec<Flags, Need extends keyof Parts, Words extends unknown[]> {
  description: string;
  /** Adds arguments, flags and subcommands. Parsers may use the clock and the files of `io`. */
  flags?: (command: Command, io: Io) => Command;
  /** Help below the list of flags: explanation, fields of --json, examples; exit codes only if they are unusual. */
  help: string | ((io: Io) => string);
  /** Parts to open before the command runs, in this order, and to close after it. */
  needs?: readonly Need[];
  /** Use of the parts, by the flags. */
  uses?: (flags: Flags) => PartUses;
  /** Checks the flags and arguments before anything is opened. Throws `usage`. */
  check?: (flags: Flags, io: Io, ...words: Words) => void;
  /** Runs the command. `words` are the parsed arguments. */
  run: (
    context: Io & Pick<Parts, Need> & CommandContext,
    flags: Flags,
    ...words: Words
  ) => Promise<void>;
}

export interface CommandContext {
  /** The declared command itself. */
  command: Command;
  /** The version of earshot. */
  version: string;
}

type Described = Pick<CommandSpec<object, never, []>, 'description' | 'help'>;

function describedCommand(name: string, { description, help }: Described, io: Io): Command {
  const text = withExitCodes(typeof help === 'string' ? help : help(io));
  return new Command(name).description(description).addHelpText('after', `\n${text}`);
}

/** Declares a command that has only subcommands; `usual` runs if none is named. */
export function defineGroup(
  name: string,
  spec: Described & {
    usual?: (io: Io) => Command;
    commands: readonly ((io: Io) => Command)[];
  },
): (io: Io) => Command {
  const { usual, commands } = spec;
  return (io) => {
    const group = describedCommand(name, spec, io);
    if (usual !== undefined) group.addCommand(usual(io), { isDefault: true });
    for (const command of commands) group.addCommand(command(io));
    return group;
  };
}

/** Declares a command, or a subcommand. */
export function defineCommand<
  Flags extends object,
  const Need extends keyof Parts = never,
  Words extends unknown[] = string[],
>(name: string, spec: CommandSpec<Flags, Need, Words>): (io: Io) => Command {
  const { needs = [], uses, check, run } = spec;
  return (io) => {
    const command = describedCommand(name, spec, io);
    spec.flags?.(command, io);
    return command.action(async (...given: unknown[]) => {
      // Commander calls an action with the arguments, the flags and the command.
      const words = given.slice(0, -2) as Words;
      const flags = given.at(-2) as Flags;
      check?.(flags, io, ...words);
      const about = { command, version: versionOf(command) ?? 'unknown' };
      await withParts(
        io,
        needs,
        (parts) => run({ ...io, ...parts, ...about }, flags, ...words),
        uses?.(flags),
      );
    });
  };
}

/** Adds the usual exit codes before the examples, unless a command has its own. */
function withExitCodes(help: string): string {
  if (help.includes('Exit codes:')) return help;
  const codes = 'Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.';
  const at = help.indexOf('Examples:\n');
  return at === -1 ? `${help}\n\n${codes}` : `${help.slice(0, at)}${codes}\n\n${help.slice(at)}`;
}

/** Only the program itself has a version. */
function versionOf({ parent }: Command): string | undefined {
  return parent === null ? undefined : (parent.version() ?? versionOf(parent));
}

/** Opens parts in their order, and closes them in reverse when `use` has ended. */
export async function withParts<const Need extends keyof Parts, Result>(
  io: Io,
  needs: readonly Need[],
  use: (parts: Pick<Parts, Need>) => Promise<Result>,
  uses: PartUses = {},
): Promise<Result> {
  const closers = createClosers();
  const parts: Partial<Parts> = {};
  try {
    for (const need of needs) {
      const open = io.features.find(({ parts: own }) => own?.[need] !== undefined)?.parts?.[need];
      if (open === undefined) throw new Error(`There is no part ${need}.`);
      const part = await open(io, uses);
      closers.add(() => part.close(), need);
      Object.assign(parts, { [need]: part });
    }
    return await use(parts as Pick<Parts, Need>);
  } finally {
    await closers.closeAll();
  }
}

/** Opens a part. Loads its code when it is called: most commands use few of them. */
export type OpenPart = (io: Io, uses: PartUses) => Promise<object & { close(): Promise<void> }>;
