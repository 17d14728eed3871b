/** As much of PromQL as it takes to say which series an expression reads; whether it is PromQL at all is promtool's to say. */

export interface Matcher {
  readonly label: string;
  readonly operator: '=' | '!=' | '=~' | '!~';
  readonly value: string;
}

export interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

export interface Series {
  readonly metric: string;
  readonly labels: Readonly<Record<string, string>>;
}

const KEYWORDS = new Set(['and', 'or', 'unless', 'bool', 'offset', 'inf', 'nan']);

/** The vector selectors of an expression, in their order. */
export function selectorsIn(expression: string): readonly Selector[] {
  const bare = expression
    .replaceAll(/\[[^\]]*\]/g, ' ')
    .replaceAll(/\boffset\s+\w+/g, ' ')
    .replaceAll(GROUPING, ' ');
  return [...bare.matchAll(/(?<![\w.:])([a-zA-Z_:][\w:]*)(?![\w:])\s*(\{[^}]*\})?(?!\s*\()/g)].flatMap(([, metric = '', braces = '']) =>
    KEYWORDS.has(metric.toLowerCase()) ? [] : [{ metric, matchers: matchersIn(braces) }],
  );
}

const GROUPING = /\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)|\bgroup_(?:left|right)\b/g;

/** Labels that the expression groups or joins by. */
export function groupingLabelsIn(expression: string): readonly string[] {
  return [...expression.matchAll(GROUPING)].flatMap(([, labels = '']) => labels.split(',').flatMap((label) => label.trim() || []));
}

function matchersIn(braces: string): readonly Matcher[] {
  return [...braces.matchAll(/(\w+)\s*(=~|!~|!=|=)\s*"([^"]*)"/g)].map(([, label = '', operator = '', value = '']) => ({
    label,
    operator: operator as Matcher['operator'],
    value,
  }));
}

/** Every sample of Prometheus' text format, and one without labels for a metric that has a type and no sample yet. */
export function seriesIn(metricsText: string): readonly Series[] {
  const samples = [...metricsText.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/gm)].map(([, metric = '', labels = '']) => ({
    metric,
    labels: Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label = '', value = '']) => [label, value])),
  }));
  const named = new Set(samples.map(({ metric }) => metric));
  const typed = [...metricsText.matchAll(/^# TYPE (\S+) (\w+)$/gm)].flatMap(([, metric = '', type = '']) =>
    type === 'histogram' ? ['_bucket', '_sum', '_count'].map((suffix) => `${metric}${suffix}`) : [metric],
  );
  return [...samples, ...typed.filter((metric) => !named.has(metric)).map((metric) => ({ metric, labels: {} }))];
}
