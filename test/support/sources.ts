/** What tests of event sources need of an emulator beyond AWS's own API. */
/** As “Parsing message formats” in the SNS developer guide shows it. Nobody may fetch its URLs. */
export function confirmationBody(topicArn: string, token: string): string {
  return JSON.stringify({
    Type: 'SubscriptionConfirmation',
    MessageId: '165545c9-2a5c-472c-8df2-7ff2be2b3b1b',
    Token: token,
    TopicArn: topicArn,
    Message: `You have chosen to subscribe to the topic ${topicArn}.`,
    SubscribeURL: 'http://127.0.0.1:1/must-not-be-fetched',
    Timestamp: '2026-03-01T08:30:06.000Z',
    SignatureVersion: '1',
    Signature: 'EXAMPLE==',
    SigningCertURL: 'http://127.0.0.1:1/must-not-be-fetched.pem',
  });
}
