/**
 * The label values that metrics and traces have had from the first version, for names that the code has since changed:
 * dashboards and alerts depend on them.
 */
export function labelOf(name: string): string {
  // a write that the store refused, because it holds something newer, and a task of an earlier turn
  return name === 'superseded' || name === 'late' ? 'stale' : name;
}
