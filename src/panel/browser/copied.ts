/** What is copied of an object: its key, its URI, and the line with which the AWS CLI reads it. */
import { shellWord } from '../../domain/commands.ts';

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
