/**
 * Telemetry: the metrics in the table (series.ts) and the log. Code counts and logs things where they happen:
 *
 *   count, set, observe ──► the metric's series ──► /metrics
 *   info, warn, error   ──► one line of JSON on stdout
 *
 * Labels have fixed sets of values and never contain keys or ids; those go into log fields. No decision depends on the telemetry.
 */
import type { AuditRecord } from '../base/audit.ts';
import type { seriesTable } from './series.ts';

type Table = typeof seriesTable;
export type MetricName = keyof Table;
type NameOf<Type extends string> = { [Name in MetricName]: Table[Name]['type'] extends Type ? Name : never }[MetricName];

/** One value for each label of the metric; `never` if it has no labels. */
export type LabelsOf<Name extends MetricName> = Table[Name] extends { readonly labels: infer Sets }
  ? { readonly [Label in keyof Sets]: ValueOf<Sets[Label]> }
  : never;
type ValueOf<Values> = Values extends readonly (infer Value extends string)[] ? Value : never;
/** A separate argument for the labels, if the metric has any. */
type LabelArguments<Name extends MetricName> = [LabelsOf<Name>] extends [never] ? [] : [labels: LabelsOf<Name>];

/** The fields of a log line besides its message. Texts are escaped, and passwords in URLs are masked. */
export type LogFields = Readonly<Record<string, unknown>>;

/**
 * No method throws. A label value that is not in the table does not compile, so that input from outside never creates a series.
 * Messages of log lines are constants.
 */
export interface Telemetry {
  /** Adds to a counter. */
  count<Name extends NameOf<'counter'>>(name: Name, by: number, ...labels: LabelArguments<Name>): void;
  /** Sets a gauge. */
  set<Name extends NameOf<'gauge'>>(name: Name, value: number, ...labels: LabelArguments<Name>): void;
  /** Sets each series of a gauge to the number of elements with its labels, and all other series to 0. */
  setCounts<Name extends NameOf<'gauge'>>(name: Name, each: readonly LabelsOf<Name>[]): void;
  /** Adds a value to a histogram. */
  observe(name: NameOf<'histogram'>, value: number): void;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /**
   * Warns, unless the same message about the same subject was logged within the interval (default: ten minutes). Within the
   * interval, one message is logged for a limited number of subjects.
   */
  warnOnce(message: string, subject: string, fields: LogFields, intervalMs?: number): void;
  /** Logs that a request failed, with advice. The same failure is logged at most once in ten minutes. */
  requestFailed(operation: string, error: unknown): void;
  /** Logs an audit record at every log level except `silent`: the log is the second copy of the audit. */
  audited(record: AuditRecord): void;
}
