// Where things lie, for the tests: they run in the extension's folder.

import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

export const own = process.cwd();
export const root = resolve(own, '../..');

/** The tool, as `cargo xtask test` builds it. */
export const tool = (() => {
  const found = process.env.KRN_TOOL ?? resolve(root, 'target/debug/krn');
  if (!existsSync(found)) throw new Error(`there is no ${found}: \`cargo build\` makes it, or KRN_TOOL names another`);
  return found;
})();

export const read = (path: string) => readFileSync(resolve(root, path), 'utf8');

/** Waits until something holds; fails after ten seconds. */
export async function until(what: string, holds: () => boolean): Promise<void> {
  for (let left = 1000; left > 0; left -= 1) {
    if (holds()) return;
    await new Promise((resume) => setTimeout(resume, 10));
  }
  throw new Error(`it never happened: ${what}`);
}
