/** Interrupted processes: the next process finishes the same order and never places a second one. */

import { AsyncLocalStorage } from 'node:async_hooks';
import diagnosticsChannel from 'node:diagnostics_channel';
import { chmodSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, vi } from 'vitest';
import type { AcmeContext } from '../../../src/tls/acme/order.ts';
import { renew } from '../../../src/tls/acme/renew.ts';
import { hasPebble, type Pebble, startPebble } from '../../helpers/pebble.ts';
import { dayUs, it, openProgram, type Program, watchRequests } from './pebble-context.ts';
import { handshake, servedSerial, startReceiver, untilSaved } from './receiver-context.ts';

const diskPlaces: Place[] = [
  ['context.openListener', 1],
  ['folder.writeAccount', 1],
  ['folder.writeAccount', 2],
  ['folder.writeOrder', 1],
  ['challenges.clear', 1],
  ['challenges.put', 1],
  ['challenges.clear', 2],
  ['folder.writeCertificate', 1],
  ['states.write', 1],
  ['folder.removeOrder', 1],
];

const requestPlaces: Place[] = [
  ['sign-me-up', 1],
  ['order-plz', 1],
  ['my-order', 1],
  ['authZ', 1],
  ['chalZ', 1],
  ['authZ', 2],
  ['finalize-order', 1],
  ['my-order', 2],
  ['certZ', 1],
];

describe.skipIf(!hasPebble)('an interrupted process (needs pebble)', () => {
  it.for([
    ['stopped at a disk operation', 'stopped', diskPlaces],
    ['killed at a disk operation', 'killed', diskPlaces],
    ['stopped at a request', 'asking', requestPlaces],
    ['stopped at an answer', 'answered', requestPlaces],
  ] as const)(
    '%s leaves the files that the next process needs',
    { timeout: 40_000 },
    async ([_title, end, places], { pebble }) => {
      watchSteps(end === 'answered' ? 'answered' : 'asking');
      const all = await Promise.all(places.map((place) => interrupt(pebble, end, place)));
      for (const one of all) checkAfterwards(one);
      // Otherwise there was no order to resume.
      expect(all.filter(({ order }) => order !== null).length).toBeGreaterThanOrEqual(4);
    },
  );

  it('leaves a finished order that the next renewal does not reuse', async ({ pebble }) => {
    const { next, order, outcome } = await interrupt(pebble, 'killed', ['folder.removeOrder', 1]);
    expect([outcome, next.saved('order.json')]).toEqual(['current', order]);
    const { key } = next.saved('certificate.json');
    expect(key).toBe(order?.key);
    expect((await next.check('anyway')).outcome).toBe('renewed');
    expect(next.saved('certificate.json').key).not.toBe(key);
    expect(filesOf(next)).not.toContain('order.json');
  });
});

describe.skipIf(!hasPebble)('an unfinished order (needs pebble)', () => {
  it('that the authority has deleted, like its account, is placed again', async ({ pebble }) => {
    const { dataDir, clock, order } = await leaveOrder(pebble);
    await pebble.stop();
    await pebble.start();
    const program = openProgram(pebble, { dataDir, clock });
    const account = filesOf(program).find((name) => name.startsWith('account-')) ?? '';
    const { key } = program.saved(account);
    expect((await program.check()).outcome).toBe('renewed');
    expect(program.saved('certificate.json').key).not.toBe(order.key);
    expect(program.saved(account).key).toBe(key);
    expect(program.state()).toMatchObject({ failures: 0, lastFailure: null });
  });

  it.each([
    ['for another name', 'other.example.org', 0],
    ['a day ago', 'earshot.example.org', dayUs],
    ['in the future', 'earshot.example.org', -1],
  ])('%s is dropped', async (_, host, laterUs) => {
    const pebble = await startPebble();
    const { dataDir, clock, order } = await leaveOrder(pebble);
    const requests = watchRequests(pebble);
    clock.advance(laterUs);
    const program = openProgram(pebble, { dataDir, clock, settings: { host } });
    const renewal = await program.check();
    expect(renewal.outcome === 'renewed' && renewal.certificate.covers(host)).toBe(true);
    expect(program.saved('certificate.json').key).not.toBe(order.key);
    expect(requests.orders()).toBe(1);
    expect(filesOf(program)).not.toContain('order.json');
  });

  it('is resumed when it is for this name and less than a day old', async ({ pebble }) => {
    const { dataDir, clock, order } = await leaveOrder(pebble);
    const requests = watchRequests(pebble);
    clock.advance(dayUs - 1);
    const program = openProgram(pebble, { dataDir, clock });
    expect((await program.check()).outcome).toBe('renewed');
    expect(program.saved('certificate.json').key).toBe(order.key);
    expect(requests.orders()).toBe(0);
  });
});

const soon = { timeout: 10_000, interval: 10 };

const unusable = ['', '{', '[]', 'null', '{"directoryUrl":1}', '\u0000\u0001'];

describe.skipIf(!hasPebble)('an unusable file (needs pebble)', () => {
  it.each(['account', 'order.json', 'certificate.json'])(
    '%s is named in the message, and its removal fixes the error',
    async (which) => {
      const pebble = await startPebble();
      const { next } = await interrupt(pebble, 'killed', ['folder.removeOrder', 1]);
      const { dataDir, clock } = next;
      const name = filesOf(next).find((one) => one.startsWith(which)) ?? '';
      const path = next.path(name);
      const settings = { host: 'folder-removeorder-1.example.org' };
      const requests = watchRequests(pebble);
      const fail = () => openProgram(pebble, { dataDir, clock, settings }).fail('anyway');
      for (const text of unusable) {
        writeFileSync(path, text);
        expect(await fail()).toBe(
          `${path} has invalid content. Move the file to another folder: earshot creates a new file.`,
        );
      }
      chmodSync(path, 0o640);
      expect(await fail()).toBe(
        `${path} contains a secret, and other users can read or change the file. Run: chmod 600 ${path}`,
      );
      expect(requests.orders()).toBe(0);
      rmSync(path);
      const program = openProgram(pebble, { dataDir, clock, settings });
      expect((await program.check('anyway')).outcome).toBe('renewed');
    },
  );

  it('renewal.json is reset and does not prevent a certificate', async ({ pebble }) => {
    const { dataDir, clock } = await leaveOrder(pebble);
    for (const text of unusable) {
      const program = openProgram(pebble, { dataDir, clock });
      writeFileSync(program.path('renewal.json'), text, { mode: 0o600 });
      expect(await program.context.states.read()).toMatchObject({ failures: 0, issuedAtUs: [] });
    }
    const program = openProgram(pebble, { dataDir, clock });
    expect((await program.check()).outcome).toBe('renewed');
    expect(await program.context.states.read()).toMatchObject({ lastSuccessAtUs: clock.nowUs() });
  });

  it.each(['account', 'order.json', 'certificate.json'])(
    '%s with an invalid key is named in the message',
    async (which) => {
      const pebble = await startPebble();
      const { dataDir, clock } = await leaveOrder(pebble);
      const program = openProgram(pebble, { dataDir, clock });
      if (which === 'certificate.json') await program.check();
      const name = filesOf(program).find((one) => one.startsWith(which)) ?? '';
      const damaged = { ...program.saved(name), key: 'no key' };
      writeFileSync(program.path(name), JSON.stringify(damaged), { mode: 0o600 });
      expect(await program.fail('anyway')).toContain(program.path(name));
    },
  );

  it('does not affect the certificate of a running receiver, but prevents a start', async ({
    pebble,
  }) => {
    const receiver = await startReceiver(pebble);
    await untilSaved(receiver);
    const { port, dataDir, clock, lines, close } = receiver;
    const first = await servedSerial(port);
    const path = join(dataDir, 'acme', 'certificate.json');
    writeFileSync(path, 'damaged');
    const reports = () => lines.filter(({ reason }) => reason?.startsWith(path));
    await vi.waitFor(() => expect(reports()).toHaveLength(1), soon);
    expect(await servedSerial(port)).toBe(first);
    await close();
    expect(reports()).toHaveLength(1);
    await expect(startReceiver(pebble, { dataDir, clock })).rejects.toMatchObject({
      code: 'configuration',
      message: expect.stringContaining(path),
    });
  });

  it('with the answer to tls-alpn-01 makes only such handshakes fail', async ({ pebble }) => {
    const receiver = await startReceiver(pebble, { challenge: 'tls-alpn-01' });
    await untilSaved(receiver);
    const { port, dataDir } = receiver;
    const first = await servedSerial(port);
    const other = openProgram(pebble, { dataDir });
    await other.context.challenges.putAlpn({ cert: 'none', key: 'none' });
    const path = join(dataDir, 'acme', 'challenges', 'tls-alpn-01.json');
    for (const text of [undefined, ...unusable]) {
      if (text !== undefined) writeFileSync(path, text);
      await expect(handshake(port, { protocols: ['acme-tls/1'] })).rejects.toThrow();
      expect(await servedSerial(port)).toBe(first);
    }
  });
});

/**
 * `stopped`: stopped gracefully during the call; `killed`: neither this call nor any later one
 * happens. `asking`: stopped when a request is sent; `answered`: when it is answered.
 */
type End = 'stopped' | 'killed' | 'asking' | 'answered';

interface Interrupted {
  /** Point of the interruption. */
  place: Place;
  /** State on disk at that point. */
  order: { key: string } | null;
  failures: number;
  /** The next process, after its check. */
  next: Program;
  outcome: string;
  /** Requests of the next process to the authority. */
  asked: string[];
}

/** A call such as `folder.writeOrder`, or the first part of a path such as `chalZ`, and its count from 1. */
type Place = [name: string, nth: number];

type Step = (name: string) => void;

const steps = new AsyncLocalStorage<Step>();

/** Interrupts a process at a place, then runs the next process with the same files. */
async function interrupt(pebble: Pebble, end: End, place: Place): Promise<Interrupted> {
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
  const { acquireLock } = program;
  const options = { when: 'due', acquireLock, lockWaitMs: 0, onIssued: () => undefined } as const;
  const check = () => renew(context, options);
  await (isOnDisk ? check() : steps.run(step, check)).catch((error: unknown) => {
    if (!controller.signal.aborted) throw error;
  });
  if (!controller.signal.aborted) throw new Error(`${where} (${nth}) was not reached.`);
  const { saved, path, clock, dataDir } = program;
  const order = existsSync(path('order.json')) ? saved('order.json') : null;
  const failures = existsSync(path('renewal.json')) ? program.state().failures : 0;
  const next = openProgram(pebble, { settings, clock, dataDir });
  const asked: string[] = [];
  const { outcome } = await steps.run(
    (name) => void asked.push(name),
    () => next.check(),
  );
  return { place, order, failures, next, outcome, asked };
}

/** Returns the context with every disk call reported as a step. */
function stepping(context: AcmeContext, end: End, step: Step): AcmeContext {
  const watched = <Part extends object>(part: Part, name: string): Part =>
    new Proxy(part, {
      get: (target, property) => {
        const call = Reflect.get(target, property);
        if (typeof call !== 'function' || /^(answer|read)/.test(String(property))) return call;
        return async (...values: unknown[]) => {
          step(`${name}.${String(property)}`);
          if (end === 'killed' && context.signal.aborted)
            throw new Error('The process was killed.');
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

/** Reports requests as steps, when they are sent or when they are answered. */
function watchSteps(when: 'asking' | 'answered'): void {
  const owners = new WeakMap<object, Step>();
  const nameOf = (request: object) => String(Reflect.get(request, 'path')).split('/')[1] ?? '';
  const onStart = (message: unknown) => {
    const { request } = message as { request: object };
    const step = steps.getStore();
    // Frequent requests that change nothing.
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

/** Returns the names of the files in its folder. */
function filesOf({ dataDir }: Pick<Program, 'dataDir'>): string[] {
  return readdirSync(join(dataDir, 'acme')).sort();
}

/** Stops a process as soon as its order is placed, and returns its files. */
async function leaveOrder(pebble: Pebble) {
  const controller = new AbortController();
  const { signal } = controller;
  const { context, saved, check, dataDir, clock } = openProgram(pebble, { signal });
  const { writeOrder } = context.folder;
  context.folder.writeOrder = async (order) => {
    await writeOrder(order);
    controller.abort();
  };
  await check().catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return { dataDir, clock, order: saved('order.json') };
}

/** Checks the state after an interruption. */
function checkAfterwards({ place, order, failures, next, outcome, asked }: Interrupted): void {
  const where = place.join(' ');
  expect(failures, where).toBe(0);
  expect(['renewed', 'current'], where).toContain(outcome);
  const { key } = next.saved('certificate.json');
  // A challenge that the authority is validating may be gone then: that order is lost.
  const isValidating = where === 'chalZ 1' || where === 'authZ 2';
  if (order !== null && outcome === 'renewed' && !isValidating) {
    expect(asked, where).not.toContain('order-plz');
    expect(key, where).toBe(order.key);
  }
  expect(asked.filter((what) => what === 'order-plz').length, where).toBeLessThanOrEqual(1);
  // A finished order may remain on disk; the next process drops it.
  const left = filesOf(next).filter((name) => outcome === 'renewed' || name !== 'order.json');
  const account = expect.stringMatching(/^account-/);
  expect(left.slice(0, 2), where).toEqual([account, 'certificate.json']);
  expect(
    left.slice(2).filter((name) => name !== 'renewal.json'),
    where,
  ).toEqual([]);
}
