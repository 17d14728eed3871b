/** How keys and texts from outside are written, and what an object's copy buttons copy. */
import { shellWord } from '../../base/commands.ts';
import { printable } from '../../base/texts.ts';

/** The text with its invisible characters made visible; a key may be a single space. */
export function visibleText(text: string): string {
  return /^\s+$/.test(text) ? text.replaceAll(/\s/g, (space) => `\\u{${space.charCodeAt(0).toString(16)}}`) : printable(text);
}

/** A key's folder, which may be empty, and its name. A folder marker has its folder's name. */
export function keyParts(key: string): readonly [folder: string, name: string] {
  const slash = key.slice(0, -1).lastIndexOf('/') + 1;
  return [key.slice(0, slash), key.slice(slash)];
}

/** The contract's identifiers (never_compared, bulk-delete) as words. */
export function plainText(name: string): string {
  return name.replaceAll(/[_-]/g, ' ');
}

/** A terminal or a form may act on control characters, so a text that contains them is copied as a JSON string. */
function safe(text: string): string {
  return /\p{Cc}/u.test(text) ? JSON.stringify(text) : text;
}

/** What can be copied: the object's key, its URI, and the AWS CLI command that reads it. */
export function copiesOf(bucket: string, key: string): readonly (readonly [name: string, copied: string])[] {
  const uri = `s3://${bucket}/${key}`;
  return [
    ['Copy key', safe(key)],
    ['Copy URI', safe(uri)],
    ['Copy aws command', safe(`aws s3 cp ${shellWord(uri)} .`)],
  ];
}
