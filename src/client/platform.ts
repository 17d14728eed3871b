/** The configuration document of a catalog, and which versions of the platform this client works with. */
import { z } from 'zod';
import { documentRows } from '../api/service.ts';
import { FaultError } from '../domain/fault.ts';
import { printable } from '../domain/printable.ts';
import { catalogAddress, registryOrigin } from './addresses.ts';
import { ClientError } from './client-error.ts';
import { send } from './send.ts';
import type { Config } from './store.ts';

/** The document is static: an answer that takes longer does not come. */
const TIMEOUT_MS = 15_000;
const VERSION_LENGTH_MAX = 100;

/** An earlier version answers no version, or another kind of it. */
const document = documentRows['GET /config.json'].answer.pick({ registryUrl: true }).extend({ version: z.unknown() });

/** Reads which registry the catalog has, without a credential. Throws `platform.too-old` and `address.invalid`. */
export async function fetchConfig(catalogUrl: string, signal: AbortSignal): Promise<Config> {
  const catalog = catalogAddress(catalogUrl);
  const address = new URL(`${catalog}/config.json`);
  const answer = await send(address, { method: 'GET', timeoutMs: TIMEOUT_MS }, signal);
  const parsed = document.safeParse(answer.json);
  if (!answer.ok || !parsed.success) {
    throw new FaultError(
      'registry.unknown-answer',
      `${address.href} answered ${answer.status} without a registryUrl: check the address of the catalog`,
    );
  }
  requireVersion(parsed.data.version, catalog);
  return { catalog_url: catalog, registry_url: registryOrigin(parsed.data.registryUrl, `the registryUrl of ${address.href}`) };
}

/** Throws `platform.too-old` below version 1.67. Versions are compared as numbers: 1.100 is later than 1.67. */
export function requireVersion(version: unknown, address: string): void {
  if (typeof version !== 'string')
    throw new ClientError('platform.too-old', `${address} does not report its version: version 1.67 or higher is needed`);
  const shown = printable(version, VERSION_LENGTH_MAX);
  const [, major, minor] = /^v?(\d{1,9})\.(\d{1,9})(?!\d)/.exec(version) ?? [];
  if (major === undefined)
    throw new ClientError('platform.too-old', `${address} reports the version ${shown}, which is not a version number`);
  if (Number(major) > 1 || (Number(major) === 1 && Number(minor) >= 67)) return;
  throw new ClientError('platform.too-old', `${address} has version ${shown}: version 1.67 or higher is needed; upgrade the platform`);
}
