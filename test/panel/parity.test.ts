/** What scripts can do by the API, people can do by the panel: each operation is called by it, or has a reason here. */
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { contract } from '../../src/api/contract.ts';

const SOURCES = globSync('src/panel/browser/*.{ts,tsx}').toSorted();
const source = SOURCES.map((file) => readFileSync(file, 'utf8')).join('\n');

/** Operations that the panel does not call, with the reason. */
const exceptions: Readonly<Record<string, string>> = {
  'GET /v1/api-keys/{id}': 'the list shows the same fields',
  'GET /v1/admin/api-keys/{id}': 'the list shows the same fields',
};

describe('the panel', () => {
  const operations = Object.keys(contract).filter((key) => key.split(' ')[1]?.startsWith('/v1/') === true);

  it.each(operations)('has a place for %s', (key) => {
    const isCalled = source.includes(`'${key}'`);
    expect(isCalled, `${key} is not called in src/panel/browser: call it there, or name a reason in this file`).toBe(!(key in exceptions));
  });

  it('has no exception for an operation that does not exist', () => {
    expect(Object.keys(exceptions).filter((key) => !(key in contract))).toEqual([]);
  });

  it('makes no markup of texts', () => {
    expect(source).not.toMatch(/innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML|document\.write|\beval\(|new Function/);
  });

  it('shows no text of an answer without Text, Lines or Advice', () => {
    // what comes from outside; fields with a closed set of values are not among it
    const outside =
      /\{(?:\w+\.)*(?:key|reason|user_email|email|fingerprint_text|sentence|requested_by|created_by|topic_arn|prefix|issuer|detail|body|what|why|fix|script|waiting_for|waitingFor)\}/;
    const lines = SOURCES.filter((file) => file.endsWith('.tsx')).flatMap((file) => readFileSync(file, 'utf8').split('\n'));
    expect(lines.filter((line) => outside.test(line) && !/<(?:Text|Lines|Advice)\b/.test(line) && !/=\{/.test(line))).toEqual([]);
  });
});
