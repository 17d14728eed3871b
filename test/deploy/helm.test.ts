/**
 * The chart: what its values make, by Helm itself, checked against the schemas of Kubernetes and of the kinds that KEDA, the
 * Prometheus operator and the Gateway API add, and against the settings of Tally.
 *
 * test/deploy/crds holds these kinds as JSON schemas without their texts and their status, in which fields that are not known are
 * refused: KEDA 2.21.0, Prometheus operator 0.85.0, Gateway API 1.7.0 (Apache-2.0).
 */
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { afterAll, describe, expect, it } from 'vitest';
import { parseAllDocuments, stringify } from 'yaml';
import { z } from 'zod';
import { parseSettings, serveMistakes, type Settings } from '../../src/settings/settings.ts';
import { ROOT, textOf } from '../docs/pages.ts';
import { canRun, findProgram, runProgram, type ProgramEnd } from '../docs/programs.ts';

const HELM = { name: 'helm', variable: 'TALLY_TEST_HELM' } as const;
const VALIDATE = { name: 'kubernetes-validate', variable: 'TALLY_TEST_KUBERNETES_VALIDATE' } as const;
const CHART = 'config/helm/tally';

const files = mkdtempSync(join(tmpdir(), 'tally-helm-'));
afterAll(() => rmSync(files, { recursive: true }));

type Values = Readonly<Record<string, unknown>>;

const QUEUE = 'https://sqs.eu-central-1.amazonaws.com/123456789012/bucket-events';
const OTHER_QUEUE = `${QUEUE}-of-others`;

/** The least with which the chart makes anything. */
const least: Values = { aws: { region: 'eu-central-1', queueUrls: [QUEUE] }, index: { existingSecret: 'tally' } };

const login: Values = {
  url: 'https://tally.example.org/',
  issuer: 'https://id.example.org',
  existingSecret: 'tally-login',
  allowed: ['domain=example.org', 'claim:groups=tally-users'],
  adminEmails: ['alice@example.org', 'bob@example.org'],
  trustedProxies: ['10.20.30.0/28'],
};

const anyPeer = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'ingress' } } }];

/** Everything that can be set, apart from what excludes something else. */
const most: Values = {
  roles: 'split',
  image: { repository: 'registry.example.org/tally', digest: `sha256:${'a'.repeat(64)}`, pullSecrets: ['registry'] },
  aws: { region: 'eu-central-1', queueUrls: [QUEUE, OTHER_QUEUE] },
  serviceAccount: { roleArn: 'arn:aws:iam::123456789012:role/tally', annotations: { team: 'search' } },
  index: { existingSecret: 'tally', auth: 'basic', ca: { existingSecret: 'authority' } },
  login: { ...login, adminClaim: 'groups=tally-admins' },
  settings: { TALLY_INGEST_VISIBILITY_S: 43_200, TALLY_COMPARE_INTERVAL_DAYS: 0, HTTPS_PROXY: 'http://proxy:3128' },
  ingress: { enabled: true, className: 'nginx', annotations: { 'cert-manager.io/cluster-issuer': 'letsencrypt' } },
  gateway: { enabled: true, parentRefs: [{ name: 'public', namespace: 'gateways', sectionName: 'https' }] },
  metrics: {
    serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
    rules: { enabled: true, labels: { release: 'prometheus' } },
    dashboard: { enabled: true, annotations: { grafana_folder: 'Tally' } },
  },
  autoscaling: { enabled: true, max: 20, messagesPerSecond: 500, targetLagSeconds: 120, prometheus: 'http://prometheus:9090' },
  networkPolicy: { enabled: true, httpFrom: anyPeer, metricsFrom: anyPeer, egress: { enabled: true, extra: [{ to: anyPeer }] } },
  podAnnotations: { note: 'one' },
  podLabels: { team: 'search' },
  nodeSelector: { 'kubernetes.io/arch': 'arm64' },
  tolerations: [{ key: 'search', operator: 'Exists' }],
  affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
  priorityClassName: 'search',
  extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/extra/ca.pem' }],
  extraEnvFrom: [{ secretRef: { name: 'more' } }],
  extraVolumes: [{ name: 'extra', configMap: { name: 'extra' } }],
  extraVolumeMounts: [{ name: 'extra', mountPath: '/extra' }],
  extraContainers: [{ name: 'collector', image: 'otel/collector' }],
  extraInitContainers: [{ name: 'wait', image: 'busybox' }],
  extraObjects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'extra-{{ .Release.Name }}' }, data: { a: 'b' } }],
};

const together: Values = { ...least, login, ingress: { enabled: true } };

const objectSchema = z.looseObject({
  apiVersion: z.string(),
  kind: z.string(),
  metadata: z.looseObject({ name: z.string(), labels: z.record(z.string(), z.string()).optional() }),
  spec: z.unknown().optional(),
  data: z.record(z.string(), z.string()).optional(),
});
type Made = z.infer<typeof objectSchema>;

const mountSchema = z.object({ name: z.string(), mountPath: z.string() });
const containerSchema = z.looseObject({
  image: z.string(),
  env: z.array(z.object({ name: z.string(), value: z.string() })),
  ports: z.array(z.object({ name: z.string(), containerPort: z.number() })),
  livenessProbe: z.object({ timeoutSeconds: z.int(), periodSeconds: z.int() }),
  readinessProbe: z.looseObject({
    timeoutSeconds: z.int(),
    periodSeconds: z.int(),
    httpGet: z.object({ path: z.string(), port: z.string() }),
  }),
  volumeMounts: z.array(mountSchema),
});
const podSchema = z.looseObject({
  metadata: z.object({ labels: z.record(z.string(), z.string()), annotations: z.record(z.string(), z.string()).optional() }),
  spec: z.looseObject({
    terminationGracePeriodSeconds: z.int(),
    containers: z.tuple([containerSchema], z.unknown()),
    volumes: z.array(z.looseObject({ name: z.string() })),
  }),
});
const deploymentSchema = z.object({
  replicas: z.int().optional(),
  selector: z.object({ matchLabels: z.record(z.string(), z.string()) }),
  template: podSchema,
});

let written = 0;
/** A file of this run. Returns its path. */
function fileOf(text: string, ending: string): string {
  const path = join(files, `${++written}${ending}`);
  writeFileSync(path, text);
  return path;
}

/** Runs Helm in the project's folder. */
function helm(...args: readonly string[]): Promise<ProgramEnd> {
  const env = { ...process.env, HELM_CACHE_HOME: files, HELM_CONFIG_HOME: files, HELM_DATA_HOME: files };
  return runProgram(findProgram(HELM) ?? '', args, { cwd: ROOT, env });
}

const template = (values: Values): Promise<ProgramEnd> =>
  helm('template', 'tally', CHART, '--namespace', 'tally', '--values', fileOf(stringify(values), '.yaml'));

function objectsIn(text: string): readonly Made[] {
  return parseAllDocuments(text)
    .map((document): unknown => document.toJS())
    .filter((value) => value !== null)
    .map((value) => objectSchema.parse(value));
}

const known = new Map<Values, Promise<readonly Made[]>>();
/** What the chart makes of the values; of the same ones once. */
function made(values: Values): Promise<readonly Made[]> {
  const found = known.get(values) ?? make(values);
  known.set(values, found);
  return found;
}

async function make(values: Values): Promise<readonly Made[]> {
  const { code, stdout, stderr } = await template(values);
  expect(code, stderr).toBe(0);
  return objectsIn(stdout);
}

/** Why the chart makes nothing of the values. */
async function refusal(values: Values): Promise<string> {
  const { code, stderr } = await template(values);
  expect(code).not.toBe(0);
  return stderr;
}

const named = (objects: readonly Made[], kind: string): readonly string[] =>
  objects.flatMap((each) => (each.kind === kind ? each.metadata.name : []));

function one(objects: readonly Made[], kind: string, name: string): Made {
  const found = objects.filter((each) => each.kind === kind && each.metadata.name === name);
  expect(found, `${kind} ${name} of ${named(objects, kind).join(', ')}`).toHaveLength(1);
  return found[0]!;
}

const deploymentOf = (objects: readonly Made[], name: string) => deploymentSchema.parse(one(objects, 'Deployment', name).spec);
const containerOf = (objects: readonly Made[], name: string) => deploymentOf(objects, name).template.spec.containers[0];
const environmentOf = (objects: readonly Made[], name: string): Readonly<Record<string, string>> =>
  Object.fromEntries(containerOf(objects, name).env.map((each) => [each.name, each.value]));

const contents: Readonly<Record<string, string>> = {
  '/run/secrets/index/index-url': 'https://tally:secret@search.internal:9200',
  '/run/secrets/login/client-secret': 'secret',
  '/run/secrets/ca/ca.crt': rootCertificates[0]!,
};

/** The settings of a Deployment, whose files are all mounted. Fails unless Tally serves with them. */
function settingsOf(objects: readonly Made[], name: string): Settings {
  const { volumeMounts } = containerOf(objects, name);
  const ours = Object.entries(environmentOf(objects, name)).filter(([variable]) => variable.startsWith('TALLY_'));
  const read = new Set<string>();
  const parsed = parseSettings({ ...Object.fromEntries(ours), TALLY_HEALTH_ADDRESS: '0.0.0.0:8081' }, (path) => {
    read.add(path);
    return { mode: 0o644, text: contents[path] ?? '' };
  });
  if (!parsed.ok) throw new Error(`${name}: ${parsed.mistakes.join('\n')}`);
  expect(serveMistakes(parsed.settings)).toEqual([]);
  for (const path of read) expect(volumeMounts.map(({ mountPath }) => mountPath)).toContain(path.replace(/\/[^/]+$/, ''));
  return parsed.settings;
}

const crds = new Map(
  readdirSync(join(ROOT, 'test/deploy/crds')).map((name) => [
    name.replace('.json', ''),
    z.fromJSONSchema(z.record(z.string(), z.unknown()).parse(JSON.parse(textOf(`test/deploy/crds/${name}`)))),
  ]),
);

/** What the schemas of their kinds say against the objects. */
async function complaints(objects: readonly Made[]): Promise<readonly string[]> {
  // validating each takes a twentieth of a second, and most are the same whatever the values
  const own = new Set(objects.filter(({ kind }) => !crds.has(kind)).map((each) => stringify(each)));
  const { code, stdout, stderr } = await runProgram(findProgram(VALIDATE) ?? '', [
    '--strict',
    '--quiet',
    fileOf([...own].join('---\n'), '.yaml'),
  ]);
  const added = objects.flatMap((each) => {
    const { error } = crds.get(each.kind)?.safeParse(each) ?? {};
    return (error?.issues ?? []).map(({ path, message }) => `${each.kind} ${each.metadata.name}: ${path.join('.')}: ${message}`);
  });
  return [...(code === 0 ? [] : [stdout + stderr]), ...added];
}

const runs = canRun('the Helm chart', [HELM, VALIDATE]);

describe.skipIf(!runs)('the chart', () => {
  it('passes helm lint with the least and with most values', async () => {
    for (const values of [least, most, together]) {
      const { code, stdout, stderr } = await helm('lint', '--strict', '--quiet', CHART, '--values', fileOf(stringify(values), '.yaml'));
      expect(code, stdout + stderr).toBe(0);
    }
  });

  it('makes what the schemas of Kubernetes and of the added kinds accept', async () => {
    const all = (await Promise.all([least, most, together].map(made))).flat();
    expect(await complaints(all)).toEqual([]);
    expect([...new Set(all.map(({ kind }) => kind))].toSorted()).toEqual(
      [
        ...crds.keys(),
        'ConfigMap',
        'Deployment',
        'Ingress',
        'NetworkPolicy',
        'PodDisruptionBudget',
        'Service',
        'ServiceAccount',
      ].toSorted(),
    );
  });

  it('would not pass with a field that does not exist', async () => {
    const [deployment, scaled] = [one(await made(least), 'Deployment', 'tally'), one(await made(most), 'ScaledObject', 'tally-ingest')];
    const wrong = [deployment, scaled].map((each) => ({ ...each, spec: { ...z.looseObject({}).parse(each.spec), invented: 1 } }));
    expect((await complaints(wrong)).map((each) => /invented/.exec(each)?.[0])).toEqual(['invented', 'invented']);
  });

  it('refuses a value that does not exist, and one of another form', async () => {
    expect(await refusal({ ...least, ingres: { enabled: true } })).toContain('ingres');
    expect(await refusal({ ...least, index: { url: 'https://tally:secret@search.internal:9200' } })).toContain('/index/url');
    expect(await refusal({ ...least, roles: 'apart' })).toContain('/roles');
    expect(await refusal({ ...least, fullnameOverride: 'Tally_1' })).toContain('/fullnameOverride');
    const spread = { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway', labelSelector: {} };
    expect(await refusal({ ...least, topologySpreadConstraints: [spread] })).toContain('labelSelector');
    expect(await refusal({ ...least, podLabels: { 'app.kubernetes.io/name': 'search' } })).toContain(
      "invalid propertyName 'app.kubernetes.io/name'",
    );
  });

  it('names all contradictions of the values at once', async () => {
    const said = await refusal({ autoscaling: { enabled: true }, ingress: { enabled: true }, settings: { TALLY_ROLES: 'http' } });
    for (const name of ['aws.queueUrls', 'index.existingSecret', 'autoscaling.enabled', 'login.issuer', 'settings.TALLY_ROLES'])
      expect(said).toContain(`\n  ${name}: `);
    const wrong = await refusal({
      ...least,
      roles: 'split',
      autoscaling: { enabled: true, min: 3, max: 2 },
      serviceAccount: { create: false, roleArn: 'arn:aws:iam::123456789012:role/tally' },
      settings: { AWS_SECRET_ACCESS_KEY: 'secret' },
    });
    for (const name of ['autoscaling.min', 'serviceAccount.create', 'settings.AWS_SECRET_ACCESS_KEY'])
      expect(wrong).toContain(`\n  ${name}: `);
  });

  it('has one Deployment with all roles, or one for each', async () => {
    const [small, large] = await Promise.all([made(least), made(most)]);
    expect(named(small, 'Deployment')).toEqual(['tally']);
    expect(settingsOf(small, 'tally').TALLY_ROLES).toEqual(['ingest', 'reindex', 'http']);
    const roles = ['ingest', 'reindex', 'http'] as const;
    expect(named(large, 'Deployment')).toEqual(roles.map((role) => `tally-${role}`));
    for (const role of roles) expect(settingsOf(large, `tally-${role}`).TALLY_ROLES).toEqual([role]);
  });

  it('has settings with which Tally serves, the same as the values say', async () => {
    const objects = await made(most);
    for (const role of ['ingest', 'reindex', 'http']) {
      expect(settingsOf(objects, `tally-${role}`)).toMatchObject({
        TALLY_QUEUE_URL: [QUEUE, OTHER_QUEUE],
        TALLY_INGEST_VISIBILITY_S: 43_200,
        TALLY_COMPARE_INTERVAL_DAYS: 0,
        TALLY_TARGET_LAG_S: 120,
      });
      expect(environmentOf(objects, `tally-${role}`)).toMatchObject({ AWS_REGION: 'eu-central-1', NODE_EXTRA_CA_CERTS: '/extra/ca.pem' });
    }
    expect(settingsOf(objects, 'tally-http')).toMatchObject({
      TALLY_PUBLIC_URL: 'https://tally.example.org',
      TALLY_OIDC_CLIENT_SECRET: 'secret',
      TALLY_OIDC_ALLOWED: login['allowed'],
      TALLY_OIDC_ADMIN_EMAILS: login['adminEmails'],
      TALLY_TRUSTED_PROXIES: login['trustedProxies'],
    });
  });

  it('gives what belongs to logins to the control plane alone, and keeps secrets out of the variables', async () => {
    const objects = await made(most);
    for (const role of ['ingest', 'reindex']) {
      expect(JSON.stringify(one(objects, 'Deployment', `tally-${role}`))).not.toMatch(/OIDC|tally-login/);
      expect(containerOf(objects, `tally-${role}`).ports.map(({ name }) => name)).toEqual(['health']);
    }
    expect(JSON.stringify(objects)).not.toMatch(/secretKeyRef/);
  });

  it('keeps the control plane on the loopback address of its pod where no one logs in', async () => {
    const objects = await made(least);
    expect(settingsOf(objects, 'tally').TALLY_HTTP_ADDRESS).toMatchObject({ host: '127.0.0.1' });
    expect(named(objects, 'Service')).toEqual(['tally-metrics']);
    expect(containerOf(objects, 'tally').readinessProbe.httpGet).toEqual({ path: '/readyz', port: 'health' });
  });

  it('lets a stop end, and probes with patience', async () => {
    const objects = await made(most);
    for (const name of named(objects, 'Deployment')) {
      const { terminationGracePeriodSeconds, containers } = deploymentOf(objects, name).template.spec;
      const lingers = z.object({ preStop: z.object({ sleep: z.object({ seconds: z.int() }) }) }).safeParse(containers[0]['lifecycle']);
      const left = terminationGracePeriodSeconds - (lingers.data?.preStop.sleep.seconds ?? 0);
      expect(1_000 * left).toBeGreaterThan(settingsOf(objects, name).TALLY_SHUTDOWN_TIMEOUT_MS);
      // a second, the default, is short for a process that is busy with large messages
      for (const { timeoutSeconds, periodSeconds } of [containers[0].livenessProbe, containers[0].readinessProbe]) {
        expect(timeoutSeconds).toBeGreaterThanOrEqual(5);
        expect(timeoutSeconds).toBeLessThan(periodSeconds);
      }
    }
  });

  it('runs without root, a writable root file system, capabilities and a token of Kubernetes', async () => {
    const objects = await made(most);
    for (const name of named(objects, 'Deployment')) {
      expect(deploymentOf(objects, name).template.spec).toMatchObject({
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
        imagePullSecrets: [{ name: 'registry' }],
        priorityClassName: 'search',
        nodeSelector: { 'kubernetes.io/arch': 'arm64' },
        initContainers: [{ name: 'wait' }],
      });
      const { containers, volumes } = deploymentOf(objects, name).template.spec;
      expect(containers[0]).toMatchObject({
        image: `registry.example.org/tally@sha256:${'a'.repeat(64)}`,
        envFrom: [{ secretRef: { name: 'more' } }],
        securityContext: { readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      });
      expect(containers[1]).toMatchObject({ name: 'collector' });
      expect(volumes).toContainEqual({ name: 'extra', configMap: { name: 'extra' } });
      expect(containers[0].volumeMounts).toContainEqual({ name: 'extra', mountPath: '/extra' });
    }
    expect(named(objects, 'ConfigMap')).toContain('extra-tally');
  });

  it('admits only the named peers, each to its port', async () => {
    const { spec } = one(await made(most), 'NetworkPolicy', 'tally');
    expect(spec).toMatchObject({
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        { ports: [{ port: 'http' }], from: anyPeer },
        { ports: [{ port: 'health' }], from: anyPeer },
      ],
    });
    const closed = one(await made({ ...least, networkPolicy: { enabled: true } }), 'NetworkPolicy', 'tally');
    expect(closed.spec).toMatchObject({ policyTypes: ['Ingress'] });
    expect(closed.spec).not.toHaveProperty('ingress');
    // a rule without ports would admit everything
    const withoutPorts = { networkPolicy: { enabled: true, egress: { enabled: true, ports: [] } } };
    const { spec: narrow } = one(await made({ ...least, ...withoutPorts }), 'NetworkPolicy', 'tally');
    const rules = z.object({ egress: z.array(z.object({ ports: z.array(z.unknown()).min(1) })) }).parse(narrow);
    expect(rules.egress).toHaveLength(2);
  });

  it.each(['keda-sqs.yaml', 'keda-prometheus.yaml'])('makes config/scaling/%s by the command that the file names', async (name) => {
    const text = textOf(`config/scaling/${name}`);
    const [, command = ''] = /^#\s+helm (template .+)$/m.exec(text) ?? [];
    const { stdout } = await helm(...command.split(' '));
    expect(text.split('\n').slice(2).join('\n'), command).toBe(stdout);
  });
});
