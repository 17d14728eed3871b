/** Sums up V8's CPU profiles (`node --cpu-prof`): where a process spent its time, by part rather than by function. */
import { z } from 'zod';

const frameSchema = z.object({ functionName: z.string(), url: z.string() });
const profileSchema = z.object({
  nodes: z.array(z.object({ id: z.number(), callFrame: frameSchema, children: z.array(z.number()).optional() })),
  /** Monotonic, µs. */
  startTime: z.number(),
  samples: z.array(z.number()),
  timeDeltas: z.array(z.number()),
});

type CallFrame = z.infer<typeof frameSchema>;

export interface ProfileCost {
  /** A package, a part of Node, a file of ours, or one of V8's own names in parentheses. */
  readonly part: string;
  /** Self time within the span. */
  readonly us: number;
}

/** The part of the profile that counts: monotonic, µs, as process.hrtime tells it. */
export interface Span {
  readonly fromUs: number;
  readonly toUs: number;
}

/** V8 samples every ms. A longer gap is time that another process had: a sample stands for no more than this. */
const SAMPLE_US_MAX = 1_500;

/** Self time by part, greatest first, without idle time. `json` is the text of a `.cpuprofile`; throws when it is none. */
export function costsOf(
  json: string,
  span: Span,
  partOf: (frame: CallFrame) => string | undefined = defaultPartOf,
): readonly ProfileCost[] {
  const profile = profileSchema.parse(JSON.parse(json));
  const parts = partsOfNodes(profile.nodes, partOf);
  const costs = new Map<string, number>();
  let atUs = profile.startTime;
  profile.samples.forEach((id, index) => {
    const deltaUs = profile.timeDeltas[index] ?? 0;
    atUs += deltaUs;
    const part = parts.get(id) ?? '(unknown)';
    if (atUs > span.fromUs && atUs <= span.toUs && part !== '(idle)')
      costs.set(part, (costs.get(part) ?? 0) + Math.min(deltaUs, SAMPLE_US_MAX));
  });
  return [...costs].map(([part, us]) => ({ part, us })).toSorted((a, b) => b.us - a.us);
}

type ProfileNode = z.infer<typeof profileSchema>['nodes'][number];

/** A node's part is its own, or, for what has no file (JSON.parse, a RegExp), its caller's with its name. */
function partsOfNodes(nodes: readonly ProfileNode[], partOf: (frame: CallFrame) => string | undefined): Map<number, string> {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parts = new Map<number, string>();
  const visit = (node: ProfileNode, caller: string): void => {
    const own = partOf(node.callFrame);
    parts.set(node.id, own ?? caller);
    for (const id of node.children ?? []) {
      const child = byId.get(id);
      if (child !== undefined) visit(child, own ?? caller);
    }
  };
  const root = nodes[0];
  if (root !== undefined) visit(root, '(program)');
  return parts;
}

const PACKAGE = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//;
const OWN = /\/((?:src|test)\/.*)\.ts$/;

/** Packages by name, Node's modules as they are, our own files by path, V8's work by its name. */
export function defaultPartOf({ functionName, url }: CallFrame): string | undefined {
  if (functionName.startsWith('(') && url === '') return functionName;
  if (url.startsWith('node:')) return `node:${url.slice(5).split('/').slice(0, 2).join('/')}`;
  return PACKAGE.exec(url)?.[1] ?? OWN.exec(url)?.[1];
}
