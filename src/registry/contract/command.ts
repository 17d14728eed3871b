/** The command of a row: src/cli/from-rows.ts makes `tally …` from it, with its help, options, `--json` and table. */

/** Methods, because TypeScript compares their parameters both ways: a row can state the type of its answer. */
type Of<Arguments extends readonly unknown[], Result> = { call(...values: Arguments): Result }['call'];

/** A field of what is shown, or what is made of it at a moment. */
export type Column = string | Of<[item: unknown, nowMs: number], string | number | undefined>;

/** By their names. */
export type Columns = Readonly<Record<string, Column>>;

/** What the person has given, by the names of the API. */
export type Given = Readonly<Record<string, unknown>>;

export interface RowCommand {
  /**
   * The words, and then the fields that are given without their names: `keys get <id>`. Rows with the same words are one command,
   * and so are the forms of a body: what is given says which one is meant.
   */
  readonly words: string;
  /** One sentence, if that of the row is not about this command. */
  readonly summary?: string;
  /** Further facts, if those of the row are not about this command. */
  readonly description?: string;
  readonly examples: readonly [string, ...string[]];
  /** The names of options, where they are not those of the API. One that ends in `-file` takes a file with the value, which is a secret. */
  readonly options?: Readonly<Record<string, string>>;
  /** Fields that the command itself gives. */
  readonly fixed?: Given;
  /** Of each item, in a table; of an answer without items, one line each. */
  readonly columns?: Columns;
  /** The same of fields of the answer that have fields themselves. */
  readonly also?: Readonly<Record<string, Columns>>;
  /** What stands in place of an empty table. */
  readonly none?: string;
  /** What is printed besides, or in place of columns. */
  readonly text?: Of<[answer: unknown, given: Given], string>;
  /** Set if all items can be printed, each as one line of JSON: what the line holds. */
  readonly jsonl?: Of<[item: unknown], unknown>;
  /** Hints below the answer. */
  readonly hints?: Of<[answer: unknown, given: Given], readonly string[]>;
  /** Whether the answer is bad news, so that the exit code is 1. */
  readonly fails?: Of<[answer: unknown], boolean>;
  /** What a person agrees to first, at the terminal or by `--yes`; undefined: nothing. */
  readonly confirm?: Of<[given: Given], string | undefined>;
}

/** Columns of this type: a field that it does not have is a mistake. */
export function columnsOf<Item>(
  columns: Readonly<Record<string, (keyof Item & string) | ((item: Item, nowMs: number) => string | number | undefined)>>,
): Columns {
  return columns;
}
