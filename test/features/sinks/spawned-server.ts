/** A real server of a sink on loopback, which tests stop, kill and restart. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { onTestFinished } from 'vitest';

/** Debian's folder for services is not in every PATH. */
export const env = { PATH: `${process.env.PATH}:/usr/sbin` };

/** Starts the server, and waits until its port answers with this event. */
export async function spawnServer(
  [program = '', ...args]: readonly string[],
  { port, answersWith }: { port: number; answersWith: 'connect' | 'data' },
) {
  let log = '';
  let child: ChildProcess;
  const start = async () => {
    child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
    child.stderr?.on('data', (chunk: Buffer) => {
      log += chunk.toString();
    });
    while (!(await isAnswering(port, answersWith))) {
      if (child.exitCode !== null) throw new Error(`${program} ended: ${log}`);
      await delay(10);
    }
  };
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const exit = once(child, 'exit');
    child.kill('SIGKILL');
    await exit;
  };
  await start();
  onTestFinished(() => kill());
  return {
    ...{ port, start, kill, log: () => log },
    signal: (name: NodeJS.Signals) => void child.kill(name),
  };
}

async function isAnswering(port: number, event: string): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, event);
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
