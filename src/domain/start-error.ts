/** A reason not to start that the operator must correct: told in one line, exit code 78 (EX_CONFIG). */
export class StartError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'StartError';
  }
}
