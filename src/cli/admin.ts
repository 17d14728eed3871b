import { InvalidArgumentError, Option, type Command } from 'commander';
import type { AuditRequest } from '../api/audit.ts';
import { auditEvents, exportedAudit, type AuditRecord } from '../domain/identity/audit.ts';
import { addAccessCommands } from './access.ts';
import { cursorOption, limitOption, moreText, printing, withExamples, type PageOptions } from './arguments.ts';
import type { Cli, JsonOption } from './cli.ts';
import { addAdminKeyCommands } from './keys.ts';
import { jsonText, tableText } from './output.ts';
import { addUserCommands } from './users.ts';

interface AuditOptions extends JsonOption, PageOptions {
  readonly from?: string;
  readonly to?: string;
  readonly date?: Day;
  readonly email?: string;
  readonly event?: AuditRecord['eventname'];
  readonly key?: string;
  readonly jsonl?: true;
}

/** From its first moment to that of the next day. */
interface Day {
  readonly from: string;
  readonly to: string;
}

const DAY_MS = 86_400_000;
/** The page of an export: the largest that the API has, so that it needs the fewest requests. */
const EXPORT_LIMIT = 1_000;

/** `tally admin access|appoint|appointments|audit|grants|keys|users`. */
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
    .addOption(new Option('--date <day>', 'only records of this day in UTC, as 2026/11/21').argParser(dayOf).conflicts(['from', 'to']))
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
    async ({ json, jsonl, date, ...options }: AuditOptions) => {
      const query = { ...options, ...date };
      await (jsonl === true ? exportAll(cli, query) : list(cli, query, { ...(json === true && { json }) }));
    },
  );
}

type Query = Partial<AuditRequest>;

async function list(cli: Cli, query: Query, options: JsonOption): Promise<void> {
  const page = await cli.withControl((control, context) => control.listAudit({ query }, context));
  if (page.items.length === 0) cli.hint(options, 'The audit has no such record.');
  if (page.items.length > 0 || options.json === true) cli.print(options, page, () => recordsText(page.items));
  if (page.next !== undefined) cli.hint(options, moreText(page.next));
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

function dayOf(text: string): Day {
  const [, year, month, day] = /^(\d{4})\/(\d{2})\/(\d{2})$/.exec(text) ?? [];
  const fromMs = year === undefined ? Number.NaN : Date.parse(`${year}-${month}-${day}T00:00:00.000Z`);
  if (Number.isNaN(fromMs)) throw new InvalidArgumentError('It must be a day such as 2026/11/21.');
  return { from: isoOf(fromMs), to: isoOf(fromMs + DAY_MS) };
}

function isoOf(ms: number): string {
  return new Date(ms).toISOString();
}
