/** Programs that are ended in the middle of an order: at each touch of the disk, or of the authority. */
import { AsyncLocalStorage } from 'node:async_hooks';
import diagnosticsChannel from 'node:diagnostics_channel';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';
import type { AcmeContext } from '../../../src/tls/acme/order.ts';
import { renew } from '../../../src/tls/acme/renew.ts';
import type { Pebble } from '../../helpers/pebble.ts';
import { openProgram, type Program } from './pebble-world.ts';

/**
 * `stopped`: asked to end, while the call goes on; `killed`: neither this call nor any later one
 * happens. `asking`: as a request is sent; `answered`: when its answer is here.
 */
export type End = 'stopped' | 'killed' | 'asking' | 'answered';

export interface Interrupted {
  /** Where it was ended. */
  place: Place;
  /** What was on disk by then. */
  order: { key: string } | null;
  failures: number;
  /** The next program, as it ended. */
  next: Program;
  outcome: string;
  /** What the next program asked of the authority. */
  asked: string[];
}

/** A call such as `folder.writeOrder`, or the first part of a path such as `chalZ`; the how manieth. */
export type Place = [name: string, nth: number];

type Step = (name: string) => void;
const steps = new AsyncLocalStorage<Step>();

/** Lets a program end at a place, and the next one take over from what is on disk. */
export async function interrupt(pebble: Pebble, end: End, place: Place): Promise<Interrupted> {
  const controller = new AbortController();
  const [where, nth] = place;
  const settings = { host: `${where.replace('.', '-')}-${nth}.example.org`.toLowerCase() };
  const program = openProgram(pebble, { settings, signal: controller.signal });
  let count = 0;
  const step: Step = (name) => {
    if (name === where) count += 1;
    if (count === nth) controller.abort();
  };
  const isOnDisk = end === 'stopped' || end === 'killed';
  const context = isOnDisk ? stepping(program.context, end, step) : program.context;
  const { takeLock } = program;
  const options = { when: 'due', takeLock, lockWaitMs: 0, onIssued: () => undefined } as const;
  const look = () => renew(context, options);
  await (isOnDisk ? look() : steps.run(step, look)).catch((error: unknown) => {
    if (!controller.signal.aborted) throw error;
  });
  if (!controller.signal.aborted) throw new Error(`It has not come to ${where} (${nth}).`);
  const { saved, path, clock, dataDir } = program;
  const order = existsSync(path('order.json')) ? saved('order.json') : null;
  const failures = existsSync(path('renewal.json')) ? program.state().failures : 0;
  const next = openProgram(pebble, { settings, clock, dataDir });
  const asked: string[] = [];
  const { outcome } = await steps.run(
    (name) => void asked.push(name),
    () => next.look(),
  );
  return { place, order, failures, next, outcome, asked };
}

/** The same context, whose every call to the disk is a step. */
function stepping(context: AcmeContext, end: End, step: Step): AcmeContext {
  const watched = <Part extends object>(part: Part, name: string): Part =>
    new Proxy(part, {
      get: (target, property) => {
        const call = Reflect.get(target, property);
        if (typeof call !== 'function' || /^(answer|read)/.test(String(property))) return call;
        return async (...values: unknown[]) => {
          step(`${name}.${String(property)}`);
          if (end === 'killed' && context.signal.aborted) throw new Error('It is no more.');
          return Reflect.apply(call, target, values);
        };
      },
    });
  const { folder, states, challenges, openListener } = context;
  return {
    ...context,
    folder: watched(folder, 'folder'),
    states: watched(states, 'states'),
    challenges: watched(challenges, 'challenges'),
    openListener: watched({ openListener }, 'context').openListener,
  };
}

/** From now on, requests of programs are steps: as they are sent, or when they are answered. */
export function watchSteps(when: 'asking' | 'answered'): void {
  const owners = new WeakMap<object, Step>();
  const nameOf = (request: object) => String(Reflect.get(request, 'path')).split('/')[1] ?? '';
  const onStart = (message: unknown) => {
    const { request } = message as { request: object };
    const step = steps.getStore();
    // What is asked all the time, and changes nothing.
    if (step === undefined || /^(dir|nonce-plz)$/.test(nameOf(request))) return;
    if (when === 'asking') step(nameOf(request));
    else owners.set(request, step);
  };
  const onFinish = (message: unknown) => {
    const { request } = message as { request: object };
    owners.get(request)?.(nameOf(request));
  };
  diagnosticsChannel.subscribe('http.client.request.start', onStart);
  diagnosticsChannel.subscribe('http.client.response.finish', onFinish);
  onTestFinished(() => {
    diagnosticsChannel.unsubscribe('http.client.request.start', onStart);
    diagnosticsChannel.unsubscribe('http.client.response.finish', onFinish);
  });
}

/** Names of files in its folder. */
export function filesOf({ dataDir }: Pick<Program, 'dataDir'>): string[] {
  return readdirSync(join(dataDir, 'acme')).sort();
}

/** What a program leaves behind that is ended as soon as its order is placed. */
export async function leaveOrder(pebble: Pebble) {
  const controller = new AbortController();
  const { signal } = controller;
  const { context, saved, look, dataDir, clock } = openProgram(pebble, { signal });
  const { writeOrder } = context.folder;
  context.folder.writeOrder = async (order) => {
    await writeOrder(order);
    controller.abort();
  };
  await look().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return { dataDir, clock, order: saved('order.json') };
}

/** What must be true after each of them. */
export function checkAfterwards({
  place,
  order,
  failures,
  next,
  outcome,
  asked,
}: Interrupted): void {
  const where = place.join(' ');
  expect(failures, where).toBe(0);
  expect(['renewed', 'current'], where).toContain(outcome);
  const { key } = next.saved('certificate.json');
  // What the authority is looking at just then may be gone when it looks: that order is lost.
  const isLookedAt = where === 'chalZ 1' || where === 'authZ 2';
  if (order !== null && outcome === 'renewed' && !isLookedAt) {
    expect(asked, where).not.toContain('order-plz');
    expect(key, where).toBe(order.key);
  }
  expect(asked.filter((what) => what === 'order-plz').length, where).toBeLessThanOrEqual(1);
  // The order may stay when all but its end was reached; the next one then drops it.
  const left = filesOf(next).filter((name) => outcome === 'renewed' || name !== 'order.json');
  const account = expect.stringMatching(/^account-/);
  expect(left.slice(0, 2), where).toEqual([account, 'certificate.json']);
  expect(
    left.slice(2).filter((name) => name !== 'renewal.json'),
    where,
  ).toEqual([]);
}
