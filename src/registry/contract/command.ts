/** A row's command: src/cli/from-rows.ts makes `tally …` from it, with help, options, `--json` and table. */

/** Methods, because TypeScript compares their parameters both ways: a row can state the type of its answer. */
type Of<Arguments extends readonly unknown[], Result> = { call(...values: Arguments): Result }['call'];

/** A field of what is shown, or a function of it and the time. */
export type Column = string | Of<[item: unknown, nowMs: number], string | number | undefined>;

/** The columns by name. */
export type Columns = Readonly<Record<string, Column>>;

/** What the person gave, by the API's names. */
export type Given = Readonly<Record<string, unknown>>;

export interface RowCommand {
  /**
   * The words, and then the fields that are given without their names: `keys get <id>`. Rows with the same words are one command,
   * and so are the forms of a body: what is given says which one is meant.
   */
  readonly words: string;
  /** One sentence, if the row's does not fit this command. */
  readonly summary?: string;
  /** Further facts, if the row's do not fit this command. */
  readonly description?: string;
  readonly examples: readonly [string, ...string[]];
  /** The options' names where they differ from the API's. If a name ends in `-file`, the value is a secret, read from a file. */
  readonly options?: Readonly<Record<string, string>>;
  /** Fields that the command itself sets. */
  readonly fixed?: Given;
  /** The columns of each item in a table or, in an answer without items, one line each. */
  readonly columns?: Columns;
  /** The same for fields of the answer that have fields of their own. */
  readonly also?: Readonly<Record<string, Columns>>;
  /** Shown instead of an empty table. */
  readonly none?: string;
  /** Printed besides the columns, or instead of them. */
  readonly text?: Of<[answer: unknown, given: Given], string>;
  /** Set if all items can be printed as JSON lines: what a line contains. */
  readonly jsonl?: Of<[item: unknown], unknown>;
  /** Hints below the answer. */
  readonly hints?: Of<[answer: unknown, given: Given], readonly string[]>;
  /** Whether the answer is bad news, for which the exit code is 1. */
  readonly fails?: Of<[answer: unknown], boolean>;
  /** What a person must first agree to, at the terminal or with `--yes`; undefined: nothing. */
  readonly confirm?: Of<[given: Given], string | undefined>;
}

/** The columns of this type, checked for fields that it doesn't have. */
export function columnsOf<Item>(
  columns: Readonly<Record<string, (keyof Item & string) | ((item: Item, nowMs: number) => string | number | undefined)>>,
): Columns {
  return columns;
}
