/**
 * What is stored for one user of this machine: the addresses, an interactive login, an API key. The Python SDK reads and writes
 * the same files, so their form is a contract.
 */
import { z } from 'zod';
import { jsonOf } from '../domain/json.ts';
import { catalogAddress, registryOrigin } from './addresses.ts';
import { ClientError } from './client-error.ts';
import { codeOf, createPrivateFiles, type ReadHow } from './private-files.ts';

const CONFIG = 'config.json';
const CREDENTIALS = 'credentials.json';

/** Raised by a change that earlier versions would misread. */
const FORMAT = 1;

const catalog = z.string().transform(catalogAddress);
const registry = z.string().transform((text) => registryOrigin(text));
const config = z.object({ catalog_url: catalog, registry_url: registry });
export type Config = z.infer<typeof config>;

const session = z.object({
  registry_url: registry,
  catalog_url: catalog,
  token: z.string(),
  /** When the session ends at the latest, by the clock of this machine, in seconds since 1970. */
  expires_at: z.number(),
});
export type StoredSession = z.infer<typeof session>;

const credentials = z.object({
  session: session.optional(),
  api_key: z.object({ registry_url: registry, catalog_url: catalog, secret: z.string() }).optional(),
});
type StoredCredentials = z.infer<typeof credentials>;

export interface Store {
  /** Undefined before the first login. */
  readConfig(): Config | undefined;
  writeConfig(config: Config): void;
  /** `isOpenAllowed`: also from files that others can read, to end what is in them. */
  readCredentials(how?: ReadHow): StoredCredentials;
  writeCredentials(credentials: StoredCredentials): void;
  /** Removes all credentials without reading them. */
  removeCredentials(): void;
}

/** The store. Each function throws `credentials.unusable`, with what to do, for files that cannot be trusted, read or written. */
export function createStore(folder: string | undefined): Store {
  const files = createPrivateFiles(folder);

  function read<Schema extends z.ZodType>(name: string, schema: Schema, how?: ReadHow): z.output<Schema> | undefined {
    const text = files.read(name, how);
    if (text === undefined) return undefined;
    const json = jsonOf(text);
    if (typeof json === 'object' && json !== null && 'format' in json && json.format !== FORMAT) {
      throw unusable(`${name} was written by another version of Tally: upgrade this one, or remove the file and log in again`);
    }
    const parsed = safely(() => schema.safeParse(json));
    if (parsed?.success !== true) throw unusable(`${name} is not as Tally writes it: remove it and log in again`);
    return parsed.data;
  }

  function change(what: string, work: () => void): void {
    try {
      work();
    } catch (error) {
      if (error instanceof ClientError) throw error;
      throw unusable(`${what} (${codeOf(error)}): check the folder ${folder ?? ''}`);
    }
  }

  const write = (name: string, values: object): void =>
    change(`${name} cannot be written`, () => files.write(name, `${JSON.stringify({ format: FORMAT, ...values }, undefined, 2)}\n`));
  const removeCredentials = (): void => change(`${CREDENTIALS} cannot be removed`, () => files.remove(CREDENTIALS));

  return {
    readConfig: () => read(CONFIG, config),
    writeConfig: (values) => write(CONFIG, values),
    readCredentials: (how) => read(CREDENTIALS, credentials, how) ?? {},
    writeCredentials: (values) => write(CREDENTIALS, values),
    removeCredentials,
  };
}

const unusable = (message: string): ClientError => new ClientError('credentials.unusable', message);

/** An address that may not be used is a mistake of the file as well. */
function safely<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch {
    return undefined;
  }
}
