/** Opens the sandbox's two ports: the one that steers it, and the one of what it imitates. */
import { createControlApp } from './control/control.ts';
import { startLocalServer } from './local-server.ts';
import type { CheckedSandboxOptions } from './sandbox-options.ts';
import type { SandboxParts } from './sandbox-parts.ts';
import { realmPath, tokenPath } from './services/identity-app.ts';
import { createServiceApp } from './services/service-app.ts';

export interface SandboxPorts {
  readonly controlUrl: string;
  readonly catalogueUrl: string;
  readonly tokenUrl: string;
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
  const service = await startLocalServer(
    createServiceApp({ ...parts, signal }).fetch,
    options.serviceListen,
    {
      name: 'service',
      hazard: 'it speaks plain HTTP and knows a password that everybody does',
      allowRemote,
    },
  );
  const catalogueUrl = service.url;
  const tokenUrl = `${service.url}${realmPath}${tokenPath}`;
  const about = { endpoint, subscriptionId, catalogueUrl, tokenUrl };
  try {
    const control = await startLocalServer(
      createControlApp({ ...parts, about }).fetch,
      options.controlListen,
      { name: 'control port', hazard: 'it has no password', allowRemote },
    );
    const close = async () => void (await Promise.all([control.close(), service.close()]));
    return { controlUrl: control.url, catalogueUrl, tokenUrl, close };
  } catch (error) {
    await service.close();
    throw error;
  }
}
