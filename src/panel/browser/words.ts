/** How texts from outside and keys are written, and what is copied of an object. */
import { shellWord } from '../../base/commands.ts';
import { printable } from '../../base/printable.ts';

/** A text in which nothing is invisible, and which is not invisible as a whole: a key may be one space. */
export function visibleText(text: string): string {
  return /^\s+$/.test(text) ? text.replaceAll(/\s/g, (space) => `\\u{${space.charCodeAt(0).toString(16)}}`) : printable(text);
}

/** The folder of a key, which may be empty, and its name. The marker of a folder has the folder's name. */
export function keyParts(key: string): readonly [folder: string, name: string] {
  const slash = key.slice(0, -1).lastIndexOf('/') + 1;
  return [key.slice(0, slash), key.slice(slash)];
}

/** Words of the contract as words: never_compared, bulk-delete. */
export function plainText(name: string): string {
  return name.replaceAll(/[_-]/g, ' ');
}

/** A terminal or a form may act on control characters: a text with them is copied as a JSON string. */
function safe(text: string): string {
  return /\p{Cc}/u.test(text) ? JSON.stringify(text) : text;
}

/** What is copied of an object: its key, its URI, and the line with which the AWS CLI reads it. */
export function copiesOf(bucket: string, key: string): readonly (readonly [name: string, copied: string])[] {
  const uri = `s3://${bucket}/${key}`;
  return [
    ['Copy key', safe(key)],
    ['Copy URI', safe(uri)],
    ['Copy aws command', safe(`aws s3 cp ${shellWord(uri)} .`)],
  ];
}
