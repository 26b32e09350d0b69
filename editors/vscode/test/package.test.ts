// The package that is installed: what is in it, and that it is whole.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { unzipSync } from 'fflate';
import { own } from './files';

const files = unzipSync(readFileSync(`${own}/dist/krn.vsix`));
const text = (path: string) => Buffer.from(files[path] ?? assert.fail(`no ${path}`)).toString('utf8');

test('the package has these files and no others', () => {
  assert.deepEqual(Object.keys(files).sort(), [
    '[Content_Types].xml',
    'extension.vsixmanifest',
    'extension/LICENSE-APACHE',
    'extension/LICENSE-MIT',
    'extension/dist/extension.js',
    'extension/language-configuration.json',
    'extension/package.json',
    'extension/readme.md',
    'extension/snippets/krn.json',
    'extension/syntaxes/krn.tmLanguage.json',
    'extension/syntaxes/markdown.tmLanguage.json',
  ]);
});

test('what the manifest names is there', () => {
  const manifest = JSON.parse(text('extension/package.json'));
  const { languages, grammars, snippets, commands, menus } = manifest.contributes;
  const paths = [manifest.main, languages[0].configuration, ...[...grammars, ...snippets].map((it) => it.path)];
  for (const path of paths) assert.notEqual(text(`extension/${path}`), '', path);
  const code = text(`extension/${manifest.main}`);
  for (const { command } of commands) assert.ok(code.includes(`"${command}"`), command);
  const known = commands.map((it: { command: string }) => it.command);
  for (const { command } of menus['editor/title']) assert.ok(known.includes(command), command);
  const [debug] = manifest.contributes.debuggers;
  assert.ok(code.includes('"dap"') && debug.type === 'krn');
  const { properties } = debug.configurationAttributes.launch;
  const written = [...debug.initialConfigurations, ...debug.configurationSnippets.map((it: { body: object }) => it.body)];
  for (const field of written.flatMap(Object.keys)) {
    assert.ok(['type', 'request', 'name'].includes(field) || field in properties, field);
  }
  assert.match(text('extension.vsixmanifest'), /<Identity [^>]*Id="krn" [^>]*Publisher="krn"/);
});

test('its JSON can be read, and its code needs the editor alone', () => {
  for (const path of Object.keys(files).filter((it) => it.endsWith('.json'))) JSON.parse(text(path));
  const needed = [...text('extension/dist/extension.js').matchAll(/\brequire\("([^"]+)"\)/g)].map((it) => it[1]!);
  const foreign = needed.filter((it) => it !== 'vscode' && !it.startsWith('node:'));
  for (const name of foreign) assert.ok(require('node:module').builtinModules.includes(name), name);
});

test('the lock file names no host', () => {
  assert.doesNotMatch(readFileSync(`${own}/package-lock.json`, 'utf8'), /"resolved"|registry/);
});
