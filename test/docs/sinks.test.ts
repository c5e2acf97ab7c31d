/** docs/sinks.md: its document equals what is delivered, and its programs accept it. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { NotificationDocument } from '../../src/features/messages/document.ts';
import type { FormatName, MessageSettings } from '../../src/features/messages/formats.ts';
import { loadEachSink } from '../../src/features/sinks/definitions.ts';
import { sinkSchema } from '../../src/features/sinks/settings.ts';
import { mqtt } from '../../src/features/sinks/targets/mqtt.ts';
import { startHook } from '../features/sinks/hook-server.ts';
import { hasMosquitto, startMosquitto } from '../features/sinks/mosquitto.ts';
import { hasNats, startNats } from '../features/sinks/nats-server.ts';
import { startBroker } from '../features/sinks/simulated-broker.ts';
import { openSinkContext, openTestTarget } from '../features/sinks/sink-context.ts';
import {
  definition,
  messageUrls,
  mqttTarget,
  webhookTarget,
} from '../features/sinks/sink-definition.ts';
import { freePort } from '../helpers/free-ports.ts';
import { settings } from '../helpers/settings.ts';
import { blocks } from './console-sessions.ts';
import { createPageFolder, page, secret } from './sink-page-context.ts';

const shown: NotificationDocument = JSON.parse(blocks(page, 'json')[0] ?? '');

/** Opens a store with the notification of the page. */
async function openPageContext() {
  const context = await openSinkContext();
  await context.accept(
    {
      SubscriptionEvent: shown.event,
      ProductId: shown.productId,
      ProductName: shown.productName ?? '',
      SubscriptionId: shown.subscriptionId ?? '',
      NotificationDate: shown.notificationDate ?? '',
      AckId: shown.ackId ?? '',
      value: shown.value,
    },
    { subscription: shown.subscription, receivedAtUs: Date.parse(shown.receivedAt) * 1_000 },
  );
  return context;
}

/** Loads a sink of the page's file; it starts with the whole log. */
async function loaded(folder: ReturnType<typeof createPageFolder>, name: string) {
  folder.writeConfig(`${name}: {`);
  const found = (await loadEachSink({ workingDir: folder.folder, settings })).definitions.find(
    (one) => one.name === name,
  );
  if (found === undefined) throw new Error(`docs/sinks.md has no sink ${name}.`);
  return { ...found, startAt: 'start' as const };
}

/** Publishes a document as the MQTT sink of the page does; returns the payload. */
async function published(format: FormatName, document: NotificationDocument) {
  const broker = await startBroker();
  const metadataId = 'urn:wmo:md:centre:products';
  const message: MessageSettings = { format, stacIds: 'catalogue', metadataId };
  const urls = { ...messageUrls, catalogue: 'https://catalogue.dataspace.copernicus.eu' };
  const nowUs = () => Date.parse('2026-05-02T11:10:10Z') * 1_000;
  const { deliver } = openTestTarget(mqttTarget(broker.url), { nowUs, message, urls });
  await deliver(document, new AbortController().signal);
  return JSON.parse(String(broker.published[0]?.payload));
}

describe('docs/sinks.md', () => {
  it('names every field of the document, and shows it as it is delivered', async () => {
    const hook = await startHook();
    const { start } = await openPageContext();
    start(definition(webhookTarget(hook.url), { name: shown.sink }));
    await expect.poll(() => hook.received.length).toBe(1);
    expect(hook.received[0]?.data).toEqual(shown);
    const list = page.slice(page.indexOf('- `id`: '), page.indexOf('\n## Command'));
    for (const field of Object.keys(shown)) expect(list).toContain(`\`${field}\``);
  });

  it('names every field of a sink', () => {
    for (const field of Object.keys(sinkSchema.shape)) expect(page).toContain(field);
    for (const field of Object.keys(mqtt.fields.mqtt.unwrap().shape))
      expect(page).toContain(`\`${field}\``);
  });

  it('shows messages of each format as they are published', async () => {
    const [event, wis2] = blocks(page, 'json')
      .slice(1)
      .map((text) => JSON.parse(text));
    const Attributes = [{ Name: 'productType', ValueType: 'String', Value: event.producttype }];
    const scene = { ...shown, value: { ...shown.value, Attributes } };
    const { data, ...attributes } = await published('cloudevents', scene);
    expect({ ...attributes, data: event.data }).toEqual(event);
    expect(data).toMatchObject({ type: 'Feature', id: event.subject });
    const value = {
      ContentDate: { Start: wis2.properties.start_datetime, End: wis2.properties.end_datetime },
      GeoFootprint: wis2.geometry,
    };
    const { id, ...message } = await published('wis2', { ...shown, value });
    expect({ ...message, id: 'UUID' }).toEqual(wis2);
    expect(id).toMatch(/^[\da-f-]{36}$/);
  });

  it('has a command that stores each notification once', async () => {
    const folder = createPageFolder();
    folder.write('act.mjs');
    const { start, isDone, items } = await openPageContext();
    start(await loaded(folder, 'act'));
    await expect.poll(() => isDone('act')).toBe(true);
    expect(await items('dead', 'act')).toEqual([]);
    const kept = readFileSync(join(folder.folder, 'inbox', `${shown.id}.json`), 'utf8');
    expect(JSON.parse(kept)).toEqual(shown.value);
  });

  it('has a receiver that accepts signed requests and rejects others', async () => {
    const port = await freePort();
    const folder = createPageFolder([['9000', `${port}`]]);
    folder.write('receiver.mjs');
    const receiver = folder.start('receiver.mjs');
    // It is listening when it rejects what is not signed.
    const body = JSON.stringify({ data: shown });
    const forge = () => fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body });
    const statusOf = () =>
      forge().then(
        ({ status }) => status,
        () => 0,
      );
    await expect.poll(statusOf).toBe(401);
    const { start, isDone } = await openPageContext();
    const hook = await loaded(folder, 'hook');
    expect(hook.target).toMatchObject({ secret });
    start(hook);
    await expect.poll(() => isDone('hook')).toBe(true);
    await expect.poll(receiver.printed).toBe(`created ${shown.productName}\n`);
  });

  it.skipIf(!hasNats)('has a consumer of a stream (needs nats-server)', async () => {
    const server = await startNats();
    const folder = createPageFolder([['nats://127.0.0.1:4222', server.server]]);
    folder.write('consume.mjs');
    const consumer = folder.start('consume.mjs');
    const { start } = await openPageContext();
    const bus = await loaded(folder, 'bus');
    expect(bus.filter).toContain('cloudCover');
    start({ ...bus, filter: '' });
    await expect
      .poll(consumer.printed)
      .toBe(`earshot.alps-s2.created created ${shown.productName}\n`);
  });

  it.skipIf(!hasMosquitto)('has a subscriber of a broker (needs mosquitto)', async () => {
    const server = await startMosquitto();
    const folder = createPageFolder([['mqtt://127.0.0.1:1883', server.url]]);
    folder.write('subscribe.mjs');
    const subscriber = folder.start('subscribe.mjs');
    const { start } = await openPageContext();
    const broker = await loaded(folder, 'broker');
    expect(broker.message).toMatchObject({ format: 'cloudevents' });
    await expect.poll(server.log).toContain('work 1 earshot/#');
    start(broker);
    await expect
      .poll(subscriber.printed)
      .toBe(`earshot/SENTINEL-2/created org.ogc.api.collection.item.create ${shown.productName}\n`);
  });
});
