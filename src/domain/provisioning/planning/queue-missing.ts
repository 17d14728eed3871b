/** The error about a queue of the settings, or of a connection, that does not exist. */
import { shellWord } from '../../commands.ts';
import { RequestError } from '../../request-error.ts';
import { queueNames } from './queue-pair.ts';

interface QueuePlace {
  readonly name: string;
  /** Absent: that of the AWS CLI. */
  readonly region?: string | undefined;
}

/** Returns the error. It contains the command that creates the queue again. */
export function queueMissing(what: string, { name, region }: QueuePlace): RequestError {
  const inRegion = region === undefined ? '' : ` in ${region}`;
  const prefix = prefixOf(name);
  const create = prefix === undefined ? 'tally queue create --apply' : `tally queue create --apply --prefix ${shellWord(prefix)}`;
  const how = prefix === undefined ? 'Make it again as it was made, or make others with' : 'Make it again with';
  return new RequestError(
    'connect.queue-missing',
    `${what}: the queue does not exist${inRegion}. ${how} \`${create}\`, or name another one in TALLY_QUEUE_URL`,
    { create },
  );
}

/** The prefix by which `tally queue create` gives a queue this name. */
function prefixOf(name: string): string | undefined {
  const [prefix = ''] = name.split(/-(?:bucket-events|dead-letters)$/);
  return Object.values(queueNames(prefix)).includes(name) ? prefix : undefined;
}
