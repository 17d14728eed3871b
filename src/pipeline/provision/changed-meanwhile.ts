/** The error for what others changed while Tally wrote. Its text names what was seen, and leads to a new plan: it prints nothing that writes. */
import { commandOf } from '../../domain/commands.ts';
import { seenText } from '../../domain/provisioning/lost.ts';
import { RequestError } from '../../domain/request-error.ts';

interface Seen<Item> {
  readonly bucket: string;
  /** What was changed, as a sentence begins with it. */
  readonly what: string;
  /** What others had in it. */
  readonly before: readonly Item[];
  /** Undefined: this version does not know its form. */
  readonly now: readonly Item[] | undefined;
  readonly same: (item: Item) => string;
  readonly name: (item: Item) => string;
}

/** Creates it. */
export function changedMeanwhile<Item>({ bucket, what, before, now, same, name }: Seen<Item>): RequestError {
  const command = commandOf('bucket plan', bucket);
  const seen = now === undefined ? 'this version does not know the form that it has now' : seenText(before, now, { same, name });
  return new RequestError(
    'connect.changed-meanwhile',
    `${what} was changed by others while Tally wrote it. What others have in it: ${seen}. If it was not removed on purpose, its owner must add it again. Then look at the present plan with \`${command}\``,
    { before: before.map(name).join(', '), now: now?.map(name).join(', ') ?? 'not known to this version', command },
  );
}
