/** The process cannot start until the operator corrects something. The message is printed as one line, and the exit code is 78 (EX_CONFIG). */
export class StartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartError';
  }
}
