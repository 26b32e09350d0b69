// The tool `krn`, run on a text.

import { spawn } from 'node:child_process';

export interface Answer {
  /** The exit code; `null` where the tool was stopped. */
  code: number | null;
  output: string;
  errors: string;
}

/** Runs the tool, with a text on its standard input. Rejects where it cannot be started. */
export function run(tool: string, args: string[], text: string, stop?: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const child = spawn(tool, args, { stdio: 'pipe', signal: stop });
    const [output, errors]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on('data', (part: Buffer) => output.push(part));
    child.stderr.on('data', (part: Buffer) => errors.push(part));
    // A tool that ends without reading all of it says why.
    child.stdin.on('error', () => {});
    child.on('error', (error: NodeJS.ErrnoException) => {
      if (error.name === 'AbortError') return;
      reject(new Error(`\`${tool}\` cannot be started (${error.code ?? error.message}): set \`krn.path\` to where it lies`));
    });
    child.on('close', (code) => {
      const said = (parts: Buffer[]) => Buffer.concat(parts).toString('utf8');
      resolve({ code, output: said(output), errors: said(errors) });
    });
    child.stdin.end(text);
  });
}

/** The arguments of `krn build` for the text on standard input. */
export function build(kernel: string | undefined, target: string, more: string[] = []): string[] {
  const of = (option: string, value: string | undefined) => (value ? [option, value] : []);
  return ['build', '-', ...of('--kernel', kernel), ...of('--target', target), '--allow', 'warnings', ...more];
}

/** What is shown in place of a result: the tool's own words, as comments. */
export function refusal(answer: Answer): string {
  const said = answer.errors.trim() || `krn ended with ${answer.code}`;
  return said.split('\n').map((line) => `// ${line}`.trimEnd() + '\n').join('');
}
