/** The target of an MQTT sink. This file is also loaded without a test runner. */
import type { SinkTarget } from '../../../src/features/sinks/registry.ts';

type Mqtt = Extract<SinkTarget, { kind: 'mqtt' }>;

export function mqttTarget(url: string, fields: Partial<Mqtt> = {}): Mqtt {
  return {
    kind: 'mqtt',
    url,
    topic: 'earshot/{collection}/{event}',
    isRetained: false,
    login: null,
    ca: null,
    clientId: null,
    metadataId: null,
    format: 'document',
    ...fields,
  };
}
