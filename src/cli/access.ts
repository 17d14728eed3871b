import { Option, type Command } from 'commander';
import type { AccessView, GrantView, ReaderView } from '../api/access.ts';
import { printable } from '../domain/printable.ts';
import { cursorOption, limitOption, moreText, printing, withExamples, type PageOptions } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError } from './errors.ts';
import { readsText } from './login.ts';
import { fieldsText, tableText } from './output.ts';

const WHO = 'user:EMAIL, group:VALUE or everyone';
const WHERE = 'BUCKET, BUCKET/PREFIX, or * for every bucket';

/** `tally admin grants add|list|remove` and `tally admin access`. */
export function addAccessCommands(admin: Command, cli: Cli): void {
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
    .option('--where <where>', `only grants by which something of ${WHERE} may be read`)
    .addOption(limitOption())
    .addOption(cursorOption());
  interface ListOptions extends JsonOption, PageOptions {
    readonly who?: string;
    readonly where?: string;
  }
  printing(list, 'tally admin grants list', 'tally admin grants list --where photos/2026/').action(
    async ({ json, ...query }: ListOptions) => {
      const options: JsonOption = { ...(json === true && { json }) };
      const page = await cli.withControl((control, context) => control.listGrants({ query }, context));
      if (page.items.length === 0)
        cli.hint(options, `Nothing is granted here. Grant something: ${cli.typed('admin grants add WHO WHERE')}`);
      if (page.items.length > 0 || json === true) cli.print(options, page, () => grantsText(page.items));
      if (page.next !== undefined) cli.hint(options, moreText(page.next));
    },
  );
}

function grantsText(grants: readonly GrantView[]): string {
  return tableText(
    ['WHO', 'WHERE', 'GRANTED BY', 'SINCE', 'FROM'],
    grants.map(({ who, where, granted_by: by, created_at: since, source }) => [who, where, by, since, source]),
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
    .option('--user <id>', 'what the user with this id may read; `tally admin users list` shows the ids')
    .addOption(limitOption())
    .addOption(cursorOption());
  printing(access, 'tally admin access --where photos/2026/', 'tally admin access --user 0aB1cD2eF3gH4iJ5kL6mN7').action(
    async ({ json, user, where, ...page }: AccessOptions) => {
      const options: JsonOption = { ...(json === true && { json }) };
      if (user !== undefined) {
        const answer = await cli.withControl((control, context) => control.getAccess({ params: { id: user } }, context));
        return cli.print(options, answer, () => accessText(answer));
      }
      if (where === undefined) throw new CommandError('usage', 'the question is missing: --where BUCKET/PREFIX, or --user ID');
      const answer = await cli.withControl((control, context) => control.listReaders({ query: { where, ...page } }, context));
      if (answer.items.length === 0) cli.hint(options, `No one who has logged in may read anything of ${printable(where)} on this page.`);
      if (answer.items.length > 0 || json === true) cli.print(options, answer, () => readersText(answer.items));
      if (answer.next !== undefined) cli.hint(options, moreText(answer.next));
    },
  );
}

function readersText(readers: readonly ReaderView[]): string {
  return tableText(
    ['ID', 'EMAIL', 'ROLE', 'BY'],
    readers.map(({ user_id: id, email, role, by }) => [id, email, role, by.map(({ who, where }) => `${who} ${where}`).join(', ')]),
  );
}

const becauseTexts: Readonly<Record<AccessView['because'], string>> = {
  administrator: 'administrators read everything',
  readers: 'TALLY_READERS lets every user read everything',
  grants: 'what is granted',
  too_many: 'more than 300 separate parts are granted, so that the person reads nothing: grant shorter prefixes',
};

function accessText({ email, role, reads, because, grants, groups, groups_left_out: leftOut }: AccessView): string {
  const fields = fieldsText({
    email,
    role,
    reads: readsText(reads),
    because: becauseTexts[because],
    groups: groups.join(', '),
    'groups left out': leftOut ? 'the issuer sent more than it may: let it state only the groups of this application' : undefined,
  });
  return grants.length === 0 ? fields : `${fields}\n\n${grantsText(grants)}`;
}
