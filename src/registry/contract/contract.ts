/**
 * The API's contract: each operation once, as a row. Everything that follows from an operation is made from its row:
 *
 *   row ──► its route, checks and authorisation (src/registry/control-plane.ts) ──► its operation (src/registry/operations/operations.ts)
 *       ├──► OpenAPI, docs/reference/api.md, and the client behind `--registry`
 *       ├──► its command, with help and table (src/cli/from-rows.ts), and docs/reference/cli.md
 *       └──► its tool for programs that act for people (src/registry/tools.ts)
 */
import type { Actor } from '../../base/actor.ts';
import { accessRows } from './access.ts';
import { keyRows } from './api-keys.ts';
import { auditRows } from './audit.ts';
import { bucketRows } from './buckets.ts';
import { connectionRows } from './connections.ts';
import { deadLetterRows } from './dead-letters.ts';
import { eventRows } from './events.ts';
import { gapRows } from './gaps.ts';
import { jobRows } from './jobs.ts';
import { loginRows } from './login.ts';
import { mcpRows } from './mcp.ts';
import { objectRows } from './objects.ts';
import { panelRows } from './panel.ts';
import type { AnswerOf, AnyRequest, CheckedOf, Method, RequestOf, Row } from './row.ts';
import { documentRows, healthRows } from './service.ts';
import { usageRows } from './usage.ts';
import { userRows } from './users.ts';

/** The operations of the control plane. */
const controlRows = {
  ...objectRows,
  ...usageRows,
  ...eventRows,
  ...bucketRows,
  ...connectionRows,
  ...gapRows,
  ...jobRows,
  ...deadLetterRows,
  ...keyRows,
  ...auditRows,
  ...userRows,
  ...accessRows,
};
/** The operations that the listeners answer themselves. */
const listenerRows = { ...loginRows, ...healthRows, ...documentRows, ...panelRows, ...mcpRows };

/** All operations, by `METHOD /path`. */
export const contract = { ...controlRows, ...listenerRows };

type ControlRows = typeof controlRows;

/** The operations of the control plane, by name. */
export type ControlName = ControlRows[keyof ControlRows]['operation'];
/** The operations that the listeners answer, by name. */
export type ListenerName = (typeof listenerRows)[keyof typeof listenerRows]['operation'];
/** The operations of the health listener. */
export type HealthName = (typeof healthRows)[keyof typeof healthRows]['operation'];
/** The operations of login and of the caller's session, by name. */
export type LoginName = (typeof loginRows)[keyof typeof loginRows]['operation'];
/** The files of the panel, by name. */
export type PanelName = (typeof panelRows)[keyof typeof panelRows]['operation'];
/** All operations, by name. */
export type OperationName = ControlName | ListenerName;

/** What accompanies each request. */
export interface Context {
  /** Who sends the request, as far as the registry knows. */
  readonly actor: Actor;
  /** Identifies the request in the audit. Absent: each action gets an id. */
  readonly requestId?: string;
  readonly signal: AbortSignal;
}

/**
 * The control plane as its callers, known by their credentials, see it. Each operation rejects with a RequestError for what the caller
 * can correct, with a FaultError, or with the signal's reason.
 */
export type Operations = {
  readonly [Key in keyof ControlRows as ControlRows[Key]['operation']]: (
    request: RequestOf<ControlRows[Key]>,
    context?: Pick<Context, 'signal'>,
  ) => Promise<AnswerOf<ControlRows[Key]>>;
};

/** The control plane's implementation, whose requests are already checked. */
export type CheckedOperations = {
  readonly [Key in keyof ControlRows as ControlRows[Key]['operation']]: (
    request: CheckedOf<ControlRows[Key]>,
    context: Context,
  ) => Promise<AnswerOf<ControlRows[Key]>>;
};

/** An operation's query, as callers send it. */
export type OperationQuery<Name extends ControlName> = Parameters<Operations[Name]>[0] extends { readonly query?: infer Query }
  ? NonNullable<Query>
  : never;

/** An operation's body, as callers send it. */
export type OperationBody<Name extends ControlName> = Parameters<Operations[Name]>[0] extends { readonly body?: infer Body }
  ? NonNullable<Body>
  : never;

/** A row with its method and path, and its defaults. */
export type PlacedRow<Name extends string = OperationName> = Row &
  Required<Pick<Row, 'status' | 'errors' | 'example'>> & {
    readonly operation: Name;
    readonly method: Method;
    /** With `{name}` for parameters. */
    readonly path: string;
  };

/** All rows, in the order of the contract. */
export const rows: readonly PlacedRow[] = placed<OperationName>(contract);
/** The rows of the control plane. */
export const rowsOfControlPlane: readonly PlacedRow<ControlName>[] = placed<ControlName>(controlRows);
/** The rows that the health listener serves too. */
export const rowsOfHealth: readonly PlacedRow<HealthName>[] = placed<HealthName>(healthRows);
/** The rows that the listeners themselves answer. */
export const rowsOfListener: readonly PlacedRow<ListenerName>[] = placed<ListenerName>(listenerRows);

function placed<Name extends string>(group: Readonly<Record<string, Row & { readonly operation: Name }>>): readonly PlacedRow<Name>[] {
  return Object.entries(group).map(([key, row]) => {
    const [method = '', path = ''] = key.split(' ');
    const status = row.answer === undefined ? 204 : 200;
    return { status, errors: [], example: {}, ...row, method: methodOf(method), path };
  });
}

function methodOf(text: string): Method {
  if (text === 'GET' || text === 'POST' || text === 'PATCH' || text === 'DELETE') return text;
  throw new TypeError(`${text} is not a method of the contract`);
}

/**
 * An operation of any kind, for code that treats all operations alike. It is a method type because TypeScript compares the
 * parameters of methods both ways: such code checks each request by its row instead.
 */
export type AnyOperation = { call(request: AnyRequest, context: Context): Promise<unknown> }['call'];
/** The same, as its callers see it. */
export type AnyCall = { call(request: AnyRequest, context?: Pick<Context, 'signal'>): Promise<unknown> }['call'];

/** The operations, each made from its row. */
export function operationsOf(make: (row: PlacedRow<ControlName>) => AnyCall): Operations {
  const operations: object = Object.fromEntries(rowsOfControlPlane.map((row) => [row.operation, make(row)]));
  if (isOperations(operations)) return operations;
  throw new TypeError('an operation of the contract was not made');
}

function isOperations(value: object): value is Operations {
  const names = new Set(Object.keys(value));
  return rowsOfControlPlane.every(({ operation }) => names.has(operation));
}
