import { Option, type Command } from 'commander';
import type { AllKeysRequest, AnyApiKey, ApiKey, KeysRequest, NewApiKey } from '../api/api-keys.ts';
import { requireSafeAddress } from '../client/addresses.ts';
import { keyScopes } from '../domain/identity/actor.ts';
import { EXPIRES_IN_DAYS_DEFAULT, EXPIRES_IN_DAYS_MAX, keyStatuses } from '../domain/identity/api-key.ts';
import { numberOption, parameter, printing, listing, printPage, withExamples } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError } from './errors.ts';
import { fieldsText, tableText, type Cell } from './output.ts';

interface RevokeOptions extends JsonOption {
  readonly secretFile?: string;
}

const ID = 'k0123456789abcdefghijAB';

/** `tally keys create|list|get|revoke`. */
export function addKeyCommands(program: Command, cli: Cli): void {
  const keys = program
    .command('keys')
    .summary('create, list, show and revoke your API keys')
    .description('Creates, lists, shows and revokes your API keys. A key is created by a user who has logged in.');
  withExamples(keys, 'tally keys create "nightly export, production, 2026-11"', 'tally keys list --status ACTIVE');
  addCreate(keys, cli);
  addList(keys, cli);
  const get = keys.command('get').summary('show one of your API keys').description('Shows one of your API keys.');
  addGet(get, { cli, example: `tally keys get ${ID}` }, (id) =>
    cli.withControl((control, context) => control.getApiKey({ params: { id } }, context)),
  );
  addRevoke(keys, cli);
}

/** `tally admin keys list|get|revoke`. */
export function addAdminKeyCommands(admin: Command, cli: Cli): void {
  const keys = admin
    .command('keys')
    .summary('list, show and revoke the API keys of all users')
    .description('Lists, shows and revokes the API keys of all users.');
  withExamples(keys, 'tally admin keys list --status ACTIVE --unused-since 2026-08-01', `tally admin keys revoke ${ID}`);
  addAdminList(keys, cli);
  const get = keys.command('get').summary('show one API key of any user').description('Shows one API key of any user.');
  addGet(get, { cli, example: `tally admin keys get ${ID}` }, (id) =>
    cli.withControl((control, context) => control.getAnyApiKey({ params: { id } }, context)),
  );
  const revoke = keys
    .command('revoke')
    .summary('revoke one API key of any user')
    .description('Revokes the API key. Every process refuses it within 5 s. A revoked key cannot be made valid again.')
    .argument('<id>', 'the ID that `list` shows');
  printing(revoke, `tally admin keys revoke ${ID}`).action(async (id: string, options: JsonOption) => {
    await cli.withControl((control, context) => control.revokeAnyApiKey({ params: { id } }, context));
    cli.print(options, { revoked: id }, () => REVOKED);
  });
}

const NONE = 'There are no such API keys here.';
const REVOKED = 'Revoked. Every process refuses the key within 5 s.';

function addCreate(keys: Command, cli: Cli): void {
  const create = keys
    .command('create')
    .summary('create an API key and print its secret once')
    .description(
      'Creates an API key and prints its secret, which cannot be shown again. It needs a login; an API key cannot create another one.',
    )
    .argument('<name>', 'what the key is for: purpose, environment and date')
    .addOption(
      numberOption('--days <n>', `the key ends after this many days, 1 to ${EXPIRES_IN_DAYS_MAX} (default: ${EXPIRES_IN_DAYS_DEFAULT})`, {
        max: EXPIRES_IN_DAYS_MAX,
        name: 'expires_in_days',
      }),
    )
    .addOption(
      parameter('--scope <scopes...>', 'what the key may do (default: what you may do, without admin)', 'scopes').choices(keyScopes),
    );
  printing(create, 'tally keys create "nightly export, production, 2026-11" --days 60 --scope read').action(
    async (name: string, { json, ...parameters }: JsonOption & Omit<Partial<NewApiKey>, 'name'>) => {
      const options = { json };
      const body = { name, ...parameters };
      const created = await cli.withControl((control, context) => control.createApiKey({ body }, context));
      cli.print(options, created, () => fieldsText({ secret: created.secret, ...keyFields(created.key) }));
      cli.hint(options, 'Store the secret now: it cannot be shown again.');
    },
  );
}

function addList(keys: Command, cli: Cli): void {
  const list = keys
    .command('list')
    .summary('list your API keys')
    .description('Lists your API keys, the newest first. Revoked keys are not listed.')
    .option('--name <name>', 'only keys with this name')
    .option('--fingerprint <fingerprint>', 'only the key with this fingerprint')
    .addOption(new Option('--status <status>', 'only keys with this status').choices(keyStatuses));
  listing(list, 'tally keys list --status EXPIRED').action(async ({ json, ...query }: JsonOption & Partial<KeysRequest>) => {
    const page = await cli.withControl((control, context) => control.listApiKeys({ query }, context));
    printPage(cli, { json }, page, { none: NONE, text: (items) => tableText(HEADINGS, items.map(keyCells)) });
  });
}

function addAdminList(keys: Command, cli: Cli): void {
  const list = keys
    .command('list')
    .summary('list the API keys of all users')
    .description('Lists the API keys of all users. With filters, a page may be shorter than its limit although another one follows.')
    .option('--email <email>', 'only keys of the user with this e-mail address')
    .addOption(parameter('--name <name>', 'only keys with this name', 'key_name'))
    .addOption(new Option('--status <status>', 'only keys with this status').choices(keyStatuses))
    .addOption(
      parameter('--unused-since <time>', 'only keys that were not used since this day (2026-11-21) or time, and are older than it'),
    );
  listing(list, 'tally admin keys list --email bob@example.com', 'tally admin keys list --status ACTIVE --unused-since 2026-08-01').action(
    async ({ json, ...query }: JsonOption & Partial<AllKeysRequest>) => {
      const page = await cli.withControl((control, context) => control.listAllApiKeys({ query }, context));
      printPage(cli, { json }, page, {
        none: NONE,
        text: (items) => tableText([...HEADINGS, 'OWNER', 'OWNER ID'], items.map(anyKeyCells)),
      });
    },
  );
}

interface GetParts {
  readonly cli: Cli;
  readonly example: string;
}

function addGet(command: Command, { cli, example }: GetParts, get: (id: string) => Promise<ApiKey | AnyApiKey>): void {
  printing(command.argument('<id>', 'the ID that `list` shows'), example).action(async (id: string, options: JsonOption) => {
    const key = await get(id);
    const more =
      'owner_disabled' in key ? { owner: ownerText(key), owner_id: key.user_id, owner_disabled: key.owner_disabled ? 'yes' : 'no' } : {};
    cli.print(options, key, () => fieldsText({ ...keyFields(key), ...more }));
  });
}

function addRevoke(keys: Command, cli: Cli): void {
  const revoke = keys
    .command('revoke')
    .summary('revoke one of your API keys, or any key by its secret')
    .description(
      'Revokes the API key with this ID, or the one whose secret is in a file. The latter needs no login. It prints the same whether or not there was such a key. Every process refuses a revoked key within 5 s, and it cannot be made valid again.',
    )
    .argument('[id]', 'the ID that `list` shows')
    .option('--secret-file <path>', 'a file with the secret; /dev/stdin for the standard input');
  printing(revoke, `tally keys revoke ${ID}`, 'tally keys revoke --secret-file leaked.txt --registry URL').action(
    async (id: string | undefined, { secretFile, ...options }: RevokeOptions) => {
      if ((id === undefined) === (secretFile === undefined)) {
        throw new CommandError('usage', 'name the key by its ID, or by a file with its secret (--secret-file)');
      }
      if (secretFile === undefined) {
        await cli.withControl((control, context) => control.revokeApiKey({ params: { id: id ?? '' } }, context));
        return cli.print(options, { revoked: id }, () => REVOKED);
      }
      const { TALLY_REGISTRY_URL: registry } = cli.settings();
      // the secret is in the body, which no other check of credentials sees
      if (registry !== undefined) requireSafeAddress(registry, 'the address of the registry');
      const secret = cli.secretIn('--secret-file', secretFile);
      await cli.withControl((control, context) => control.revokeApiKeyBySecret({ body: { secret } }, context));
      // whether there was such a key is not answered
      return cli.print(
        options,
        {},
        () => 'If this was the secret of an API key, the key is revoked now. Every process refuses it within 5 s.',
      );
    },
  );
}

const HEADINGS = ['ID', 'NAME', 'FINGERPRINT', 'STATUS', 'CREATED', 'EXPIRES', 'LAST USED', 'SCOPES'];

function keyCells(key: ApiKey): readonly Cell[] {
  return [key.id, key.name, key.fingerprint, key.status, key.created_at, key.expires_at, key.last_used_at ?? 'never', key.scopes.join(',')];
}

function anyKeyCells(key: AnyApiKey): readonly Cell[] {
  return [...keyCells(key), `${ownerText(key)}${key.owner_disabled ? ' (disabled)' : ''}`, key.user_id];
}

function ownerText({ user_email: email, user_email_verified: isVerified }: AnyApiKey): string {
  return isVerified ? email : `${email} (not verified)`;
}

function keyFields(key: ApiKey): Readonly<Record<string, Cell>> {
  return {
    id: key.id,
    name: key.name,
    owner: key.user_email,
    fingerprint: key.fingerprint,
    status: key.status,
    created: key.created_at,
    expires: key.expires_at,
    last_used: key.last_used_at ?? 'never',
    scopes: key.scopes.join(', '),
  };
}
