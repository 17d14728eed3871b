import { Option, type Command } from 'commander';
import type { AuditRequest } from '../api/audit.ts';
import { auditEvents, exportedAudit, type AuditRecord } from '../domain/identity/audit.ts';
import { cursorOption, limitOption, type PageOptions, printing, listing, printPage, withExamples } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { addAdminKeyCommands } from './keys.ts';
import { jsonText, tableText, fieldsText } from './output.ts';
import type { AccessView, GrantView, ReaderView } from '../api/access.ts';
import { readingReasons, readsText } from '../domain/access/reading-texts.ts';
import { printable } from '../domain/printable.ts';
import { CommandError } from './errors.ts';
import type { AppointmentAnswer, Person, User, UserChange } from '../api/users.ts';
import { roles, type Role } from '../domain/identity/actor.ts';

interface AuditOptions extends JsonOption, PageOptions {
  readonly from?: string;
  readonly to?: string;
  readonly date?: string;
  readonly email?: string;
  readonly event?: AuditRecord['eventname'];
  readonly key?: string;
  readonly jsonl?: true;
}

/** The page of an export: the largest that the API has, so that it needs the fewest requests. */
const EXPORT_LIMIT = 1_000;

/** `tally admin access|audit|grants|keys|users`. */
export function addAdminCommands(program: Command, cli: Cli): void {
  const admin = program.command('admin').summary('commands for administrators').description('Commands for administrators.');
  withExamples(admin, 'tally admin audit', 'tally admin keys list');
  addAudit(admin, cli);
  addAdminKeyCommands(admin, cli);
  addUserCommands(admin, cli);
  addAccessCommands(admin, cli);
}

function addAudit(admin: Command, cli: Cli): void {
  const audit = admin
    .command('audit')
    .summary('list who did what, when, and how it ended')
    .description(
      'Lists the records of the audit, the newest first. An act has two: one before it (`intended`), and one after it (`done` or `failed`).',
    )
    .option('--from <time>', 'only records from this day (2026-11-21) or time (2026-11-21T08:00:00Z) on')
    .option('--to <time>', 'only records from before this day or time')
    .option('--date <day>', 'only records of this day in UTC, as 2026/11/21')
    .option('--email <email>', 'only acts of this e-mail address, or of this user@host')
    .addOption(new Option('--event <event>', 'only this event').choices(auditEvents))
    .option('--key <key>', 'only acts with the API key of this name or fingerprint')
    .addOption(limitOption())
    .addOption(cursorOption())
    .addOption(
      new Option('--jsonl', 'print all matching records, each as one line of JSON with dates as Athena reads them').conflicts([
        'limit',
        'cursor',
        'json',
      ]),
    );
  printing(audit, 'tally admin audit --event BucketRemove', 'tally admin audit --date 2026/11/21 --jsonl').action(
    async ({ json, jsonl, ...query }: AuditOptions) => {
      await (jsonl === true ? exportAll(cli, query) : listRecords(cli, query, { json }));
    },
  );
}

type Query = Partial<AuditRequest>;

async function listRecords(cli: Cli, query: Query, options: JsonOption): Promise<void> {
  const page = await cli.withControl((control, context) => control.listAudit({ query }, context));
  printPage(cli, options, page, { none: 'The audit has no such record.', text: recordsText });
}

/** Prints page after page, so that the output may be longer than the memory. */
async function exportAll(cli: Cli, query: Query): Promise<void> {
  await cli.withControl(async (control, context) => {
    let cursor: string | undefined;
    do {
      const position = cursor === undefined ? {} : { cursor };
      const page = await control.listAudit({ query: { ...query, ...position, limit: EXPORT_LIMIT } }, context);
      const lines = page.items.map((record) => jsonText(exportedAudit(record), 'compact'));
      if (lines.length > 0) cli.print({}, undefined, () => lines.join('\n'));
      cursor = page.next;
    } while (cursor !== undefined);
  });
}

/** The columns of the table. What was requested and the reason come last, because they may be long. */
function recordsText(records: readonly AuditRecord[]): string {
  return tableText(
    ['TIME', 'EVENT', 'OUTCOME', 'WHO', 'FROM', 'WHAT', 'REASON'],
    records.map(({ eventtime, eventname, outcome, useridentity, sourceipaddress, parameters, reason }) => [
      eventtime,
      eventname,
      outcome,
      whoText(useridentity),
      sourceipaddress,
      parameters === undefined ? undefined : jsonText(parameters, 'compact'),
      reason,
    ]),
  );
}

function whoText({ email, sessionContext: { auth } }: AuditRecord['useridentity']): string {
  return auth.keyName === undefined ? email : `${email} (${auth.keyName})`;
}

const WHO = 'user:EMAIL, group:VALUE or everyone';
const WHERE = 'BUCKET, BUCKET/PREFIX, or * for every bucket';

/** `tally admin grants add|list|remove` and `tally admin access`. */
function addAccessCommands(admin: Command, cli: Cli): void {
  const grants = admin
    .command('grants')
    .summary('who may read which keys')
    .description(
      'Adds, lists and removes grants: who may read the keys of a bucket, or those with a prefix. A person reads what is granted to the person, to a group of the person, and to everyone. Administrators read everything.',
    );
  withExamples(grants, 'tally admin grants list');
  addChange(grants, cli, 'add');
  addList(grants, cli);
  addChange(grants, cli, 'remove');
  addAccess(admin, cli);
}

const changes = {
  add: {
    summary: 'let someone read a bucket or a part of one',
    description: 'Lets someone read the keys of a bucket, or those with a prefix. It counts from the next request on.',
    doneText: (grant: GrantView) => `${printable(grant.who)} may read ${placeText(grant.where)}.`,
  },
  remove: {
    summary: 'remove a grant',
    description: 'Removes a grant. It counts from the next request on. What another grant gives, or the role of an administrator, stays.',
    doneText: (grant: GrantView) => `${printable(grant.who)} may not read ${placeText(grant.where)} by this grant any more.`,
  },
} as const;

function addChange(grants: Command, cli: Cli, name: keyof typeof changes): void {
  const { summary, description, doneText } = changes[name];
  const command = grants.command(name).summary(summary).description(description).argument('<who>', WHO).argument('<where>', WHERE);
  printing(command, `tally admin grants ${name} group:analysts photos/2026/`).action(
    async (who: string, where: string, options: JsonOption) => {
      const body = { who, where };
      const grant = await cli.withControl((control, context) =>
        name === 'add' ? control.addGrant({ body }, context) : control.removeGrant({ body }, context),
      );
      cli.print(options, grant, () => doneText(grant));
      const hint = name === 'add' ? prefixHint(where) : undefined;
      if (hint !== undefined) cli.hint(options, hint);
    },
  );
}

/** A prefix that ends within a name means more than the folder that its author may have thought of. */
function prefixHint(where: string): string | undefined {
  const prefix = where.slice(where.indexOf('/') + 1);
  if (!where.includes('/') || prefix === '') return undefined;
  if (/[*?]/.test(prefix)) return `${printable(where)} is compared letter by letter: * and ? stand for themselves`;
  if (prefix.endsWith('/')) return undefined;
  return `${printable(where)} does not end in a slash: it is the beginning of every key that continues it, such as ${printable(where)}2/x`;
}

function placeText(where: string): string {
  return where === '*' ? 'every bucket' : printable(where);
}

function addList(grants: Command, cli: Cli): void {
  const list = grants
    .command('list')
    .summary('list the grants')
    .description('Lists the grants.')
    .option('--who <who>', `only grants to ${WHO}`)
    .option('--where <where>', `only grants by which something of ${WHERE} may be read`);
  interface ListOptions extends JsonOption, PageOptions {
    readonly who?: string;
    readonly where?: string;
  }
  listing(list, 'tally admin grants list', 'tally admin grants list --where photos/2026/').action(
    async ({ json, ...query }: ListOptions) => {
      const page = await cli.withControl((control, context) => control.listGrants({ query }, context));
      printPage(cli, { json }, page, {
        none: `Nothing is granted here. Grant something: tally admin grants add WHO WHERE`,
        text: grantsText,
      });
    },
  );
}

function grantsText(grants: readonly GrantView[]): string {
  return tableText(
    ['WHO', 'WHERE', 'GRANTED BY', 'SINCE'],
    grants.map(({ who, where, granted_by: by, created_at: since }) => [who, where, by, since]),
  );
}

interface AccessOptions extends JsonOption, PageOptions {
  readonly user?: string;
  readonly where?: string;
}

function addAccess(admin: Command, cli: Cli): void {
  const access = admin
    .command('access')
    .summary('who may read this, and what this person may read')
    .description('Shows who may read something of a bucket, or what one person may read, and by which grants.')
    .addOption(new Option('--where <where>', `who may read something of ${WHERE}`).conflicts('user'))
    .option('--user <id>', 'what the user with this id may read; `tally admin users list` shows the ids');
  listing(access, 'tally admin access --where photos/2026/', 'tally admin access --user 0aB1cD2eF3gH4iJ5kL6mN7').action(
    async ({ json, user, where, ...page }: AccessOptions) => {
      if (user !== undefined) {
        const answer = await cli.withControl((control, context) => control.getAccess({ params: { id: user } }, context));
        return cli.print({ json }, answer, () => accessText(answer));
      }
      if (where === undefined) throw new CommandError('usage', 'the question is missing: --where BUCKET/PREFIX, or --user ID');
      const answer = await cli.withControl((control, context) => control.listReaders({ query: { where, ...page } }, context));
      const isWhole = page.cursor === undefined && answer.next === undefined;
      printPage(cli, { json }, answer, {
        none: `No one who has logged in may read anything of ${printable(where)}${isWhole ? '' : ' on this page'}.`,
        text: readersText,
      });
    },
  );
}

function readersText(readers: readonly ReaderView[]): string {
  return tableText(
    ['ID', 'EMAIL', 'ROLE', 'BY'],
    readers.map(({ user_id: id, email, role, by }) => [id, email, role, by.map(({ who, where }) => `${who} ${where}`).join(', ')]),
  );
}

function accessText({ email, role, reads, because, grants, groups, groups_left_out: leftOut }: AccessView): string {
  const fields = fieldsText({
    email,
    role,
    reads: readsText(reads),
    because: readingReasons[because],
    groups: groups.join(', '),
    'groups left out': leftOut ? 'the issuer sent more than it may: let it state only the groups of this application' : undefined,
  });
  return grants.length === 0 ? fields : `${fields}\n\n${grantsText(grants)}`;
}

/** `tally admin users list|set`. */
function addUserCommands(admin: Command, cli: Cli): void {
  const users = admin
    .command('users')
    .summary('people who have logged in, and who is an administrator')
    .description('Lists people who have logged in, disables and enables them, and makes administrators.');
  withExamples(users, 'tally admin users list');
  addUserList(users, cli);
  addUserSet(users, cli);
}

function addUserList(users: Command, cli: Cli): void {
  const list = users
    .command('list')
    .summary('list the people who have logged in')
    .description(
      'Lists the people who have logged in, with their roles and where these come from, and the appointments that wait for a login.',
    );
  listing(list, 'tally admin users list').action(async ({ json, ...query }: JsonOption & PageOptions) => {
    const page = await cli.withControl((control, context) => control.listUsers({ query }, context));
    const waiting = page.waiting.length === 0 ? '' : waitingText(page.waiting);
    printPage(cli, { json }, page, {
      none: waiting === '' ? 'No one has logged in.' : `No one has logged in.\n\n${waiting}`,
      text: (items) => (waiting === '' ? usersText(items) : `${usersText(items)}\n\n${waiting}`),
    });
  });
}

function waitingText(waiting: readonly AppointmentAnswer[]): string {
  return tableText(
    ['ADMINISTRATOR AT THE FIRST LOGIN', 'APPOINTED BY', 'SINCE', 'ENDS'],
    waiting.map(({ email, sub = '', appointed_by: by, created_at: created, expires_at: ends }) => [
      email ?? `sub:${sub}`,
      by,
      created,
      ends,
    ]),
  );
}

interface UserOptions extends JsonOption {
  readonly role?: Role;
  readonly disable?: true;
  readonly enable?: true;
}

function addUserSet(users: Command, cli: Cli): void {
  const set = users
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
      const body = role === undefined ? { disabled: disable === true } : { role };
      const person = await cli.withControl((control, context) => control.changeUser({ params: { id }, body }, context));
      cli.print(options, person, () => `${printable(person.user?.email ?? id)} ${changeText(body, person)}.`);
    },
  );
}

function changeText(wanted: UserChange, { waiting }: Person): string {
  if ('disabled' in wanted) return wanted.disabled ? 'is disabled' : 'is enabled';
  if (wanted.role === 'user') return 'is no administrator, and does not become one at a login';
  return waiting === undefined
    ? 'is an administrator now. In a browser it counts from the next login on'
    : `becomes an administrator at the next login, if it is before ${printable(waiting.expires_at)}`;
}

function usersText(users: readonly User[]): string {
  return tableText(
    ['ID', 'EMAIL', 'ROLE', 'BECAUSE OF', 'LAST LOGIN', 'DISABLED'],
    users.map((user) => [
      user.id,
      user.email_verified ? user.email : `${user.email} (not verified)`,
      user.role,
      reasonText(user),
      user.last_login_at,
      user.disabled_at,
    ]),
  );
}

function reasonText({ role_source: source, appointed_by: by }: User): string | undefined {
  if (source === 'none') return undefined;
  return by === undefined ? source : `${source} by ${by}`;
}
