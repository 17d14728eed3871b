/** What is copied of an object: its key, its URI, and the line with which the AWS CLI reads it. */

/** Control characters, which a terminal or a form may act on. */
const CONTROL = /\p{Cc}/u;

export interface Copied {
  readonly text: string;
  /** Whether it is a JSON string, because of control characters. */
  readonly isJson: boolean;
  /** What is announced; absent: the usual. */
  readonly note?: string;
}

/** Identifies an object among those of all buckets: the name of a bucket has no space. */
export function idOf({ bucket, key }: { readonly bucket: string; readonly key: string }): string {
  return `${bucket} ${key}`;
}

function safe(text: string): Copied {
  return CONTROL.test(text) ? { text: JSON.stringify(text), isJson: true } : { text, isJson: false };
}

/** A word for a shell. Control characters are escaped as bash and zsh read them, so that none acts on the terminal. */
export function shellWord(text: string): string {
  if (CONTROL.test(text)) {
    const escaped = text.replaceAll(/[\\']/g, String.raw`\$&`).replaceAll(/\p{Cc}/gu, (character) => escapeOf(character));
    return `$'${escaped}'`;
  }
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

function escapeOf(character: string): string {
  const code = character.charCodeAt(0).toString(16);
  return code.length > 1 && code >= '80' ? String.raw`\u${code.padStart(4, '0')}` : String.raw`\x${code.padStart(2, '0')}`;
}

export function copiedKey(key: string): Copied {
  return safe(key);
}

export function copiedUri(bucket: string, key: string): Copied {
  return safe(`s3://${bucket}/${key}`);
}

export function copiedCommand(bucket: string, key: string): Copied {
  const uri = `s3://${bucket}/${key}`;
  return CONTROL.test(key) ? safe(uri) : { text: `aws s3 cp ${shellWord(uri)} .`, isJson: false };
}

/** Several texts as lines. */
export function copiedLines(each: readonly Copied[]): Copied {
  const inJson = each.filter(({ isJson }) => isJson).length;
  const said = inJson === 0 ? '' : ` JSON strings among them, because of control characters: ${inJson}.`;
  return { text: each.map(({ text }) => text).join('\n'), isJson: inJson > 0, note: `Copied lines: ${each.length}.${said}` };
}
