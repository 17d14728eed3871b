import type { Command } from 'commander';
import { KEY_REVOKED } from '../api/api-keys.ts';
import { requireSafeAddress } from '../client/addresses.ts';
import { printing } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError } from './errors.ts';
import { groupOf } from './from-rows.ts';

interface RevokeOptions extends JsonOption {
  readonly secretFile?: string;
}

const ID = 'k0123456789abcdefghijAB';

/** `tally keys revoke`. */
export function addRevokeCommand(program: Command, cli: Cli): void {
  const revoke = groupOf(program, ['keys'], `tally keys revoke ${ID}`)
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
        return cli.print(options, { id }, () => KEY_REVOKED);
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
