/** Opens the sandbox's ports: the one that steers it, and those of what it imitates. */
import { createControlApp } from './control/control.ts';
import { createInferenceApp } from './inference/inference-app.ts';
import { type ListenAddress, type LocalServer, startLocalServer } from './local-server.ts';
import type { CheckedSandboxOptions } from './sandbox-options.ts';
import type { SandboxParts } from './sandbox-parts.ts';
import { realmPath, tokenPath } from './services/identity-app.ts';
import { createServiceApp } from './services/service-app.ts';

export interface SandboxPorts {
  readonly controlUrl: string;
  readonly catalogueUrl: string;
  readonly tokenUrl: string;
  readonly inferenceUrl: string;
  close(): Promise<void>;
}

/** Throws SandboxConfigurationError, with nothing left open, when one of them cannot be opened. */
export async function openSandboxPorts(
  options: CheckedSandboxOptions,
  parts: SandboxParts,
  subscriptionId: string | null,
  signal: AbortSignal,
): Promise<SandboxPorts> {
  const { endpoint = null, allowRemoteControl: allowRemote } = options;
  const { clock, inference } = parts;
  const opened: LocalServer[] = [];
  const close = async () => void (await Promise.all(opened.map((server) => server.close())));
  const open = async (
    fetch: Parameters<typeof startLocalServer>[0],
    address: ListenAddress,
    about: { name: string; hazard: string },
  ) => {
    const server = await startLocalServer(fetch, address, { ...about, allowRemote });
    opened.push(server);
    return server.url;
  };
  try {
    const services = createServiceApp({ ...parts, signal });
    const catalogueUrl = await open(services.fetch, options.serviceListen, {
      name: 'service',
      hazard: 'it speaks plain HTTP and knows a password that everybody does',
    });
    const completions = createInferenceApp({ ...inference, clock, signal });
    const inferenceUrl = await open(completions.fetch, options.inferenceListen, {
      name: 'inference service',
      hazard: 'it speaks plain HTTP and knows keys that everybody does',
    });
    const urls = {
      catalogueUrl,
      tokenUrl: `${catalogueUrl}${realmPath}${tokenPath}`,
      inferenceUrl,
    };
    const about = { endpoint, subscriptionId, ...urls };
    const control = createControlApp({ ...parts, about, signal });
    const controlUrl = await open(control.fetch, options.controlListen, {
      name: 'control port',
      hazard: 'it has no password',
    });
    return { controlUrl, ...urls, close };
  } catch (error) {
    await close();
    throw error;
  }
}
