// What becomes of a command of the language server: `krn.run` and the others of the code lenses.

/** What the server answers. */
export interface ServerAnswer {
  code: number | null;
  output: string;
  errors: string;
  page: string | null;
}

/** What to do with the answer. */
export type Deed = { show: 'text'; text: string } | { show: 'page'; path: string };

export function deed(command: string, kernel: string, answer: ServerAnswer): Deed {
  if (answer.page && answer.code === 0) return { show: 'page', path: answer.page };
  const verb = command.replace(/^krn\./, '');
  const parts = [`krn ${verb} --kernel ${kernel}`, answer.output.trimEnd(), answer.errors.trimEnd()];
  if (answer.code !== 0) parts.push(`exit code ${answer.code ?? 'none: stopped'}`);
  return { show: 'text', text: `${parts.filter((part) => part !== '').join('\n')}\n` };
}
