/** Certificates for servers of tests, made by openssl. */
import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { isIP } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** One certificate for all of the hosts, which is its own authority. A name has at most 64 characters in the subject, so all are alternative names. */
export async function certificateFor(hosts: readonly string[]): Promise<{ readonly key: string; readonly cert: string }> {
  const folder = await mkdtemp(join(tmpdir(), 'tally-certificate-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const names = [...new Set(hosts)].map((host) => `${isIP(host) === 0 ? 'DNS' : 'IP'}:${host}`).join();
  const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=tally test'];
  execFileSync('openssl', ['req', '-x509', ...options, '-addext', `subjectAltName=${names}`, '-keyout', key, '-out', cert], {
    stdio: 'ignore',
  });
  try {
    return { key: await readFile(key, 'utf8'), cert: await readFile(cert, 'utf8') };
  } finally {
    await rm(folder, { recursive: true });
  }
}
