// Builds the extension: `node build.mjs` the code alone, `package` the .vsix file, `test` what the tests run.

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const own = import.meta.dirname;
const shared = { bundle: true, platform: 'node', target: 'node20', absWorkingDir: own, logLevel: 'warning' };

rmSync(join(own, 'dist'), { recursive: true, force: true });
// The module `vscode` is there in the editor alone.
await build({
  ...shared,
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  format: 'cjs',
  external: ['vscode'],
  minify: true,
});

if (process.argv[2] === 'test') {
  pack();
  const tests = readdirSync(join(own, 'test')).filter((name) => name.endsWith('.test.ts'));
  await build({
    ...shared,
    entryPoints: tests.map((name) => `test/${name}`),
    outdir: 'dist/test',
    format: 'cjs',
    alias: { vscode: './test/fake-vscode.ts', 'vscode-languageclient/node': './test/fake-client.ts' },
  });
}
if (process.argv[2] === 'package') pack();

function pack() {
  for (const name of ['LICENSE-MIT', 'LICENSE-APACHE']) {
    if (existsSync(join(own, '../..', name))) cpSync(join(own, '../..', name), join(own, name));
  }
  // Everything is in the bundle; there is no repository to make links to.
  const options = ['package', '--no-dependencies', '--allow-missing-repository', '--skip-license', '--out', 'dist/krn.vsix'];
  execFileSync(process.execPath, [join(own, 'node_modules/@vscode/vsce/vsce'), ...options], { cwd: own, stdio: ['ignore', 'ignore', 'inherit'] });
}
