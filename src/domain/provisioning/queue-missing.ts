/** The error about a queue of the settings, or of a connection, that does not exist. */
import { shellWord } from '../commands.ts';
import { RequestError } from '../request-error.ts';

interface QueuePlace {
  readonly name: string;
  /** Absent: that of the AWS CLI. */
  readonly region?: string | undefined;
}

/** Returns the error. It contains the command that creates the queue again. */
export function queueMissing(what: string, { name, region }: QueuePlace): RequestError {
  const inRegion = region === undefined ? '' : ` --region ${shellWord(region)}`;
  const create = `aws sqs create-queue --queue-name ${shellWord(name)}${inRegion}`;
  return new RequestError(
    'connect.queue-missing',
    `${what}: the queue does not exist. Create it again with \`${create}\`, or name another one in TALLY_QUEUE_URL`,
    { create },
  );
}
