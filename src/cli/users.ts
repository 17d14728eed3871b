import { Option, type Command } from 'commander';
import type { Person, UserChange } from '../api/users.ts';
import { roles, type Role } from '../domain/identity/actor.ts';
import { printable } from '../domain/printable.ts';
import { printing } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError } from './errors.ts';
import { groupOf } from './from-rows.ts';

interface UserOptions extends JsonOption {
  readonly role?: Role;
  readonly disable?: true;
  readonly enable?: true;
}

/** `tally admin users set`. */
export function addUserSetCommand(program: Command, cli: Cli): void {
  const set = groupOf(program, ['admin', 'users'], 'tally admin users list')
    .command('set')
    .summary('disable or enable a user, or make an administrator')
    .description(
      'Changes a user. A disabled user cannot log in, and sessions and API keys of the user are refused within 5 s; once enabled, the user must log in again. A person who has logged in is an administrator at once. For anyone else the appointment waits for the first login, for at most 7 days. The role user takes it back.',
    )
    .argument(
      '<user>',
      'the id, as `tally admin users list` shows it; for a role also the verified e-mail address, or sub: and the subject',
    )
    .addOption(new Option('--role <role>', 'admin: make an administrator; user: take the appointment back').choices(roles))
    .addOption(new Option('--disable', 'refuse the user').conflicts(['role', 'enable']))
    .addOption(new Option('--enable', 'permit the user again').conflicts(['role', 'disable']));
  const examples = ['tally admin users set sub:248289761001 --role admin', 'tally admin users set 0aB1cD2eF3gH4iJ5kL6mN7 --disable'];
  printing(set, 'tally admin users set alice@example.com --role admin', ...examples).action(
    async (id: string, { role, disable, enable, ...options }: UserOptions) => {
      if (role === undefined && disable === undefined && enable === undefined)
        throw new CommandError('usage', 'the change is missing: --role, --disable or --enable');
      await changeUser(cli, id, role === undefined ? { disabled: disable === true } : { role }, options);
    },
  );
}

/** `tally admin appoint`: how the operator makes the first administrator. */
export function addAppointCommand(program: Command, cli: Cli): void {
  const appoint = groupOf(program, ['admin'], 'tally admin users list')
    .command('appoint')
    .summary('make a person an administrator')
    .description('Makes a person an administrator, as `tally admin users set USER --role admin` does.')
    .argument('<user>', 'the verified e-mail address, sub: and the subject, or the id of a user');
  printing(appoint, 'tally admin appoint alice@example.com').action((id: string, options: JsonOption) =>
    changeUser(cli, id, { role: 'admin' }, options),
  );
}

async function changeUser(cli: Cli, id: string, body: UserChange, options: JsonOption): Promise<void> {
  const person = await cli.withControl((control, context) => control.changeUser({ params: { id }, body }, context));
  cli.print(options, person, () => `${printable(person.user?.email ?? id)} ${changeText(body, person)}.`);
}

function changeText(wanted: UserChange, { waiting }: Person): string {
  if ('disabled' in wanted) return wanted.disabled ? 'is disabled' : 'is enabled';
  if (wanted.role === 'user') return 'is no administrator, and does not become one at a login';
  return waiting === undefined
    ? 'is an administrator now. In a browser it counts from the next login on'
    : `becomes an administrator at the next login, if it is before ${printable(waiting.expires_at)}`;
}
