/**
 * The client's types are written by hand, so that it depends on no row of the contract. Here the compiler compares them: each
 * answer of the contract must be one that the client reads, and each request of the client one that the contract takes.
 */
import { expect, it } from 'vitest';
import type { contract } from '../../src/api/contract.ts';
import type { AnswerOf, RequestOf } from '../../src/api/row.ts';
import type { Caller } from '../../src/client/caller.ts';
import type { ConfigDocument } from '../../src/client/platform.ts';
import type { Grant, TokenAnswer } from '../../src/client/send.ts';

type Contract = typeof contract;
/** `absent` for an operation that this version of the contract does not have. */
type Answer<Key extends string> = Key extends keyof Contract ? AnswerOf<Contract[Key]> : 'absent';
type Body<Key extends string> = Key extends keyof Contract
  ? RequestOf<Contract[Key]> extends { readonly body: infer B }
    ? B
    : never
  : 'absent';

type Reads<Own, Theirs> = [Theirs] extends ['absent'] ? true : [Theirs] extends [Own] ? true : false;
type Takes<Own, Theirs> = [Theirs] extends ['absent'] ? true : [Own] extends [Theirs] ? true : false;

const comparisons = {
  config: true satisfies Reads<ConfigDocument, Answer<'GET /config.json'>>,
  caller: true satisfies Reads<Caller, Answer<'GET /v1/session'>>,
  token: true satisfies Reads<TokenAnswer, Answer<'POST /login/token'>>,
  grant: true satisfies Takes<Grant, Body<'POST /login/token'>>,
};

it('compares each type of the client with the contract', () => {
  expect(Object.values(comparisons)).toEqual([true, true, true, true]);
});

it('would find an answer that the client cannot read', () => {
  // @ts-expect-error the registry's address would be missing
  const differs = true satisfies Reads<ConfigDocument, { readonly version: string }>;
  expect(differs).toBe(true);
});
