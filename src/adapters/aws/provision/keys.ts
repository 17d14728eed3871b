/** Reads the policies of KMS keys. */
import { DescribeKeyCommand, GetKeyPolicyCommand, type KMSClient } from '@aws-sdk/client-kms';
import { FaultError } from '../../../domain/fault.ts';
import { parseArn } from '../../../domain/provisioning/names.ts';
import type { At, Provisioner } from '../../../pipeline/ports/provision.ts';
import { ask, isMissing } from './refusals.ts';

/** The SDK's client is loaded only when a key is needed. */
type ClientFor = (at: At) => Promise<KMSClient>;

export function createKeyProvision({ clientFor }: { readonly clientFor: ClientFor }): Pick<Provisioner, 'keyOf'> {
  return {
    async keyOf(at, key, signal) {
      // a key of another account is named by its ARN, which may be in another region too
      const client = await clientFor(parseArn(key) ?? at);
      try {
        // GetKeyPolicy takes no alias
        const described = new DescribeKeyCommand({ KeyId: key });
        const { KeyMetadata: { Arn: arn = '', KeyManager } = {} } = await ask(
          'kms:DescribeKey',
          key,
          (options) => client.send(described, options),
          signal,
        );
        const read = new GetKeyPolicyCommand({ KeyId: arn, PolicyName: 'default' });
        const { Policy: policy = '' } = await ask('kms:GetKeyPolicy', key, (options) => client.send(read, options), signal);
        return { arn, isManagedByAws: KeyManager === 'AWS', policy };
      } catch (error) {
        throw isMissing(error) ? new FaultError('connect.unavailable', `there is no key ${key}`) : error;
      }
    },
  };
}
