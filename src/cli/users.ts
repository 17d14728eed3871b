import type { Command } from 'commander';
import type { AppointmentAnswer, AppointmentRequest, User } from '../api/users.ts';
import { cursorOption, limitOption, moreText, printing, withExamples, type PageOptions } from './arguments.ts';
import { printable } from '../domain/printable.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError } from './errors.ts';
import { tableText } from './output.ts';

interface AppointOptions extends JsonOption {
  readonly sub?: string;
  readonly withdraw?: true;
}

/** `tally admin appoint`, `tally admin appointments`, `tally admin users list|disable|enable`. */
export function addUserCommands(admin: Command, cli: Cli): void {
  addAppoint(admin, cli);
  addAppointments(admin, cli);
  const users = admin
    .command('users')
    .summary('people who have logged in')
    .description('Lists, disables and enables people who have logged in.');
  withExamples(users, 'tally admin users list');
  addList(users, cli);
  addSwitch(users, cli, 'disable');
  addSwitch(users, cli, 'enable');
}

function addAppoint(admin: Command, cli: Cli): void {
  const appointment = admin
    .command('appoint')
    .alias('grant')
    .summary('make a person an administrator')
    .description(
      'Makes a person an administrator, by the e-mail address that the issuer has verified or by the subject. A person who has logged in is one at once. For anyone else the appointment waits for the first login, for at most 7 days. Run it where the store can be reached, with the settings of the registry, or with the session of an administrator.',
    )
    .argument('[email]', 'the verified e-mail address')
    .option('--sub <sub>', 'the subject instead: how the issuer names the person')
    .option('--withdraw', 'take back an appointment that waits, as `tally admin appointments` shows it');
  const examples = ['tally admin appoint --sub 248289761001', 'tally admin appoint alice@example.com --withdraw'];
  printing(appointment, 'tally admin appoint alice@example.com', ...examples).action(
    async (email: string | undefined, { sub, withdraw, ...options }: AppointOptions) => {
      const body = appointeeOf(email, sub);
      if (withdraw === true) {
        const withdrawn = await cli.withControl((control, context) => control.withdrawAppointment({ body }, context));
        return cli.print(options, withdrawn, () => `${appointeeText(withdrawn)} does not become an administrator at the next login.`);
      }
      const answer = await cli.withControl((control, context) => control.appointAdmin({ body }, context));
      return cli.print(options, answer, () =>
        answer.user_id === undefined
          ? `${appointeeText(answer)} becomes an administrator at the next login, if it is before ${printable(answer.expires_at)}.`
          : `${appointeeText(answer)} is an administrator now. In a browser it counts from the next login on.`,
      );
    },
  );
}

function appointeeText({ email, sub }: AppointmentAnswer): string {
  return printable(email ?? sub ?? '');
}

function addAppointments(admin: Command, cli: Cli): void {
  const appointments = admin
    .command('appointments')
    .summary('list the appointments that wait for a login')
    .description('Lists the appointments that wait for a login of the person. `tally admin appoint EMAIL --withdraw` takes one back.')
    .addOption(limitOption())
    .addOption(cursorOption());
  printing(appointments, 'tally admin appointments').action(async ({ json, ...query }: JsonOption & PageOptions) => {
    const options: JsonOption = { ...(json === true && { json }) };
    const page = await cli.withControl((control, context) => control.listAppointments({ query }, context));
    if (page.items.length === 0) cli.hint(options, 'No appointment waits for a login here.');
    if (page.items.length > 0 || json === true) cli.print(options, page, () => appointmentsText(page.items));
    if (page.next !== undefined) cli.hint(options, moreText(page.next));
  });
}

function appointmentsText(appointments: readonly AppointmentAnswer[]): string {
  return tableText(
    ['EMAIL', 'SUBJECT', 'APPOINTED BY', 'SINCE', 'ENDS'],
    appointments.map(({ email, sub, appointed_by: by, created_at: created, expires_at: ends }) => [email, sub, by, created, ends]),
  );
}

function appointeeOf(email: string | undefined, sub: string | undefined): AppointmentRequest {
  if (email !== undefined && sub === undefined) return { email };
  if (sub !== undefined && email === undefined) return { sub };
  throw new CommandError('usage', 'name one person: an e-mail address, or --sub with the subject');
}

function addList(users: Command, cli: Cli): void {
  const list = users
    .command('list')
    .summary('list the people who have logged in')
    .description('Lists the people who have logged in, with their roles and where these come from.')
    .addOption(limitOption())
    .addOption(cursorOption());
  printing(list, 'tally admin users list').action(async ({ json, ...query }: JsonOption & PageOptions) => {
    const options: JsonOption = { ...(json === true && { json }) };
    const page = await cli.withControl((control, context) => control.listUsers({ query }, context));
    if (page.items.length === 0) cli.hint(options, 'No one has logged in.');
    if (page.items.length > 0 || json === true) cli.print(options, page, () => usersText(page.items));
    if (page.next !== undefined) cli.hint(options, moreText(page.next));
  });
}

function usersText(users: readonly User[]): string {
  return tableText(
    ['ID', 'EMAIL', 'ROLE', 'BECAUSE OF', 'LAST LOGIN', 'DISABLED'],
    users.map(({ id, email, email_verified: isVerified, role, role_source: source, last_login_at: lastLogin, disabled_at: disabled }) => [
      id,
      isVerified ? email : `${email} (not verified)`,
      role,
      source === 'none' ? undefined : source,
      lastLogin,
      disabled,
    ]),
  );
}

const switches = {
  disable: {
    summary: 'refuse a user',
    description: 'Disables a user: sessions and API keys of the user are refused within 5 s, and the user cannot log in.',
    done: 'is disabled',
    operation: 'disableUser',
  },
  enable: {
    summary: 'permit a user again',
    description: 'Enables a user who was disabled. The user must log in again.',
    done: 'is enabled',
    operation: 'enableUser',
  },
} as const;

function addSwitch(users: Command, cli: Cli, name: keyof typeof switches): void {
  const { summary, description, done, operation } = switches[name];
  const command = users
    .command(name)
    .summary(summary)
    .description(description)
    .argument('<id>', 'the id, as `tally admin users list` shows it');
  printing(command, `tally admin users ${name} 0aB1cD2eF3gH4iJ5kL6mN7`).action(async (id: string, options: JsonOption) => {
    const user = await cli.withControl((control, context) => control[operation]({ params: { id } }, context));
    cli.print(options, user, () => `${printable(user.email)} ${done}.`);
  });
}
