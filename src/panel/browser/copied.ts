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

function safe(text: string): Copied {
  return CONTROL.test(text) ? { text: JSON.stringify(text), isJson: true } : { text, isJson: false };
}

/** A word for a shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
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
