/**
 * The rooms of src and the direction of imports between them. Lint refuses what a single file must not import; this test
 * draws the graph of the whole tree, so that no arrow points up and no circle forms.
 */
import { describe, expect, test } from 'vitest';
import { circlesOf, importsOf, importsOfSource, type Import } from './import-graph.ts';

/** The layers, lowest first; each imports only layers that stand before it, and only those that it names. */
const layers: Readonly<Record<string, readonly string[]>> = {
  domain: [],
  api: ['domain'],
  settings: ['domain'],
  pipeline: ['domain', 'api'],
  adapters: ['domain', 'pipeline'],
  client: ['domain', 'api'],
  http: ['domain', 'api', 'client', 'pipeline'],
  panel: ['domain', 'api'],
  docs: [],
  cli: ['domain', 'api', 'client', 'settings', 'pipeline', 'http'],
  app: ['domain', 'api', 'settings', 'pipeline', 'adapters', 'http', 'panel', 'docs'],
  'main.ts': ['domain', 'client', 'settings', 'adapters', 'http', 'cli', 'app'],
};

/** The folders of pipeline, lowest first: a folder imports only folders before it. */
const pipelineRank = [
  'ports',
  'records',
  'serving',
  'series',
  'identity',
  'access',
  'queues',
  'observing',
  'gaps',
  'buckets',
  'letters',
  'compare',
  'reindex-jobs',
  'calendar',
  'provision',
  'control',
  'ingest',
];

const layerOf = (file: string): string => file.split('/')[1] ?? '';
const folderOf = (file: string): string => file.split('/').slice(0, -1).join('/');
/** A folder; a file at the top of a layer is a room by itself. */
const roomOf = (file: string): string => (file.split('/').length > 3 ? folderOf(file) : file);
const shown = ({ from, to }: Import): string => `${from} → ${to}`;

function wrongLayers(imports: readonly Import[]): readonly string[] {
  return imports
    .filter(({ from, to }) => layerOf(from) !== layerOf(to) && layers[layerOf(from)]?.includes(layerOf(to)) !== true)
    .map(shown);
}

/** An adapter sees no more of the pipeline than its ports. */
function throughNoPort(imports: readonly Import[]): readonly string[] {
  return imports
    .filter(({ from, to }) => layerOf(from) === 'adapters' && layerOf(to) === 'pipeline' && folderOf(to) !== 'src/pipeline/ports')
    .map(shown);
}

function upwardInPipeline(imports: readonly Import[]): readonly string[] {
  const rankOf = (file: string): number => pipelineRank.indexOf(file.split('/')[2] ?? '');
  return imports
    .filter(({ from, to }) => layerOf(from) === 'pipeline' && layerOf(to) === 'pipeline')
    .filter(({ from, to }) => rankOf(from) < 0 || rankOf(to) > rankOf(from))
    .map(shown);
}

const imports = importsOfSource();
const planted = (file: string, path: string): readonly Import[] => [...imports, ...importsOf(file, `import { x } from '${path}';\n`)];

describe('the import graph of src', () => {
  test('holds the whole tree', () => {
    expect(imports.length).toBeGreaterThan(1_000);
    expect([...new Set(imports.map(({ from }) => layerOf(from)))].toSorted()).toEqual(
      expect.arrayContaining(['adapters', 'app', 'cli', 'domain', 'http', 'pipeline']),
    );
  });

  test('has no arrow from a layer to one that it must not know', () => {
    expect(wrongLayers(imports)).toEqual([]);
    expect(throughNoPort(imports)).toEqual([]);
  });

  test('has no upward arrow between folders of pipeline', () => {
    expect(upwardInPipeline(imports)).toEqual([]);
  });

  test('has no circle between folders', () => {
    expect(circlesOf(imports, roomOf)).toEqual([]);
  });
});

describe('a planted import', () => {
  test('that points to a higher layer is found', () => {
    expect(wrongLayers(planted('src/domain/fault.ts', '../pipeline/ports/clock.ts'))).toEqual([
      'src/domain/fault.ts → src/pipeline/ports/clock.ts',
    ]);
    expect(throughNoPort(planted('src/adapters/aws/clients.ts', '../../pipeline/serving/repeat.ts'))).toHaveLength(1);
  });

  test('that points to a higher folder of pipeline is found', () => {
    expect(upwardInPipeline(planted('src/pipeline/observing/observer.ts', '../ingest/role.ts'))).toEqual([
      'src/pipeline/observing/observer.ts → src/pipeline/ingest/role.ts',
    ]);
  });

  test('from a folder without a rank is found', () => {
    expect(upwardInPipeline(planted('src/pipeline/elsewhere/x.ts', '../ports/clock.ts'))).toHaveLength(1);
  });

  test('that closes a circle is found', () => {
    expect(circlesOf(planted('src/pipeline/ports/clock.ts', '../observing/observer.ts'), roomOf).length).toBeGreaterThan(0);
  });
});
