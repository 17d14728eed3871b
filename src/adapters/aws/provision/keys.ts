/** Reads the policies of KMS keys. */
import { z } from 'zod';
import { FaultError } from '../../../domain/fault.ts';
import { parseArn } from '../../../domain/provisioning/names.ts';
import type { Provisioner } from '../../../pipeline/ports/provision.ts';
import type { AskKms } from '../kms.ts';
import { asking, isMissing } from './refusals.ts';

const keySchema = z.object({ KeyMetadata: z.object({ Arn: z.string(), KeyManager: z.string().optional() }) });
const policySchema = z.object({ Policy: z.string() });

/** Creates the function. */
export function createKeyProvision({ askKms }: { readonly askKms: AskKms }): Pick<Provisioner, 'keyOf'> {
  return {
    async keyOf(region, key, signal) {
      // a key of another account is named by its ARN, which may be in another region too
      const at = parseArn(key)?.region ?? region;
      try {
        // GetKeyPolicy takes no alias
        const describe = () => askKms(at, 'DescribeKey', { KeyId: key }, signal);
        const { KeyMetadata } = parsed(key, keySchema, await asking(`DescribeKey ${key}`, 'kms:DescribeKey', describe, signal));
        const read = () => askKms(at, 'GetKeyPolicy', { KeyId: KeyMetadata.Arn, PolicyName: 'default' }, signal);
        const { Policy } = parsed(key, policySchema, await asking(`GetKeyPolicy ${key}`, 'kms:GetKeyPolicy', read, signal));
        return { arn: KeyMetadata.Arn, isManagedByAws: KeyMetadata.KeyManager === 'AWS', policy: Policy };
      } catch (error) {
        throw isMissing(error) ? new FaultError('connect.unavailable', `there is no key ${key}`) : error;
      }
    },
  };
}

function parsed<Schema extends z.ZodType>(key: string, schema: Schema, answer: unknown): z.infer<Schema> {
  const result = schema.safeParse(answer);
  if (result.success) return result.data;
  throw new FaultError('connect.unavailable', `the answer of KMS about ${key} cannot be read`);
}
