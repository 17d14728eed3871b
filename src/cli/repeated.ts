/** What a command requests again until it is done. */
import { z } from 'zod';
import type { Given, RowCommand } from '../api/command.ts';
import { connection, type ConnectionView } from '../api/connections.ts';
import type { Row } from '../api/row.ts';
import { NOT_SHOWN_YET, untilApplied } from '../api/until-applied.ts';
import { RequestError } from '../domain/request-error.ts';
import type { Cli, JsonOption } from './cli.ts';
import { CommandError } from './errors.ts';

interface Asked {
  readonly row: Pick<Row, 'otherStatuses'>;
  readonly command: RowCommand;
  readonly given: Given;
}

/** Sends the request of a row's command, and again while its row or the command says that it is not done. */
export function answered(cli: Cli, options: JsonOption, { row, command, given }: Asked, ask: () => Promise<unknown>): Promise<unknown> {
  const request = () => untilFree(cli, options, ask);
  if (command.takes !== undefined && 'all' in given) return allTaken(cli, options, command.takes, request);
  if (202 in (row.otherStatuses ?? {})) return applied(cli, options, async () => connection.parse(await request()));
  return request();
}

/** Repeats the request while its answer says that it is not applied yet. */
export async function applied(cli: Cli, options: JsonOption, request: () => Promise<ConnectionView>): Promise<ConnectionView> {
  const onWaiting = (waitingFor: string): void => cli.hint(options, `Waiting for ${waitingFor}.`);
  const answer = await untilApplied({ request, onWaiting, sleep: (ms) => cli.clock.sleep(ms) });
  if (answer === undefined) throw new CommandError('declined', `${NOT_SHOWN_YET}: repeat the command later`);
  return answer;
}

/** Two minutes: a change takes half of one, and that of a process that was killed is taken over after one. */
const BUSY_REQUESTS_MAX = 60;
const BUSY_RETRY_MS = 2_000;

/** Repeats the request while another process changes a connection. */
async function untilFree<Answer>(cli: Cli, options: JsonOption, request: () => Promise<Answer>): Promise<Answer> {
  for (let count = 1; ; count += 1) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof RequestError && error.code === 'connect.busy') || count === BUSY_REQUESTS_MAX) throw error;
    }
    cli.hint(options, 'Waiting for another change of a connection.');
    await cli.clock.sleep(BUSY_RETRY_MS);
  }
}

const countsIn = z.record(z.string(), z.number());

/** Repeats a request for all while it takes as many as one may. It ends with those that were there at the beginning. */
async function allTaken(
  cli: Cli,
  options: JsonOption,
  { field, max }: NonNullable<RowCommand['takes']>,
  request: () => Promise<unknown>,
): Promise<unknown> {
  let { [field]: taken = 0, remaining = 0 } = countsIn.parse(await request());
  const all = taken + remaining;
  let isMore = taken >= max && remaining > 0;
  while (isMore) {
    cli.hint(options, `${taken} of about ${all} are done.`);
    const { [field]: next = 0, ...left } = countsIn.parse(await request());
    taken += next;
    remaining = left['remaining'] ?? 0;
    // some that failed again have come since
    isMore = next >= max && remaining > 0 && taken < all;
  }
  return { [field]: taken, remaining };
}
