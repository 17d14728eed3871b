/** What workers say of themselves at /metrics. */

export interface Metrics {
  /** The sum of the counter's series that have these labels; of all of them where none are given. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number;
}

/** Asks workers for their metrics and adds them up. */
export async function metricsOf(urls: readonly string[]): Promise<Metrics> {
  const texts = await Promise.all(urls.map((url) => fetch(url).then((answer) => answer.text())));
  return parseMetrics(texts.join('\n'));
}

/** Reads Prometheus text. */
export function parseMetrics(text: string): Metrics {
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return {
    sum(name, labels = {}) {
      const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
      return lines
        .filter((line) => (line.startsWith(`${name}{`) || line.startsWith(`${name} `)) && wanted.every((label) => line.includes(label)))
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
    },
  };
}
