// What snippets put in: with the words that they propose, code that the tool takes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { run } from '../src/tool';
import { read, tool } from './files';

/** A snippet as it stands when nothing is typed into it. */
function filled(body: string[]): string {
  const text = body.join('\n').replace(/\t/g, '    ');
  const proposed = new Map<string, string>();
  for (const [, name, words] of text.matchAll(/\$\{(\d+):([^${}]*)\}/g)) proposed.set(name!, words!);
  const named = (_: string, name: string) => proposed.get(name) ?? '';
  let before: string;
  let after = text;
  do {
    before = after;
    after = before.replace(/\$\{\d+:([^${}]*)\}/g, '$1').replace(/\$(\d+)/g, named).replace(/\$\{(\d+)\}/g, named);
  } while (after !== before);
  return after;
}

const snippets: Record<string, { prefix: string; body: string | string[]; description: string }> =
  JSON.parse(read('editors/vscode/snippets/krn.json'));

/** What must stand around a snippet so that the file is whole. */
const around: Record<string, (code: string) => string> = {
  schedule: (code) => `kernel kernel_(a: f32[m, n]) -> b: f32[m, n] {\n    b[i, j] = a[i, j]\n}\n${code.replace('kernel {', 'kernel_ {')}`,
  forall: (code) => `kernel k(x: f32[n]) -> y: f32[n] {\n${code.replace('{\n    \n', '{\n    y[i] = x[i]\n')}\n}`,
  for: (code) => body(code),
  assert: (code) => body(code.replace('condition', 'v < 1.0')),
  print: (code) => body(code.replace('value', 'v')),
  while: (code) => body(code.replace('condition', 'v < 1.0')),
  if: (code) => body(code.replace('condition', 'v < 1.0')),
  ifelse: (code) => body(code.replace('condition', 'v < 1.0')),
  sum: (code) => `kernel k(x: f32[n]) -> y: f32 {\n    y = ${code}\n}`,
  'krn-test': (code) => `${code}dims n=3\nkernel k(x: f32[n]) -> y: f32[n] {\n    y[i] = x[i]\n}`,
};

function body(code: string): string {
  const filled = code.replace(/\{\n\s*\n/g, '{\n v += 1.0\n');
  return `kernel k(x: f32[n]) -> y: f32[n] {\n    forall e in n {\n        var v = x[e]\n${filled}\n        y[e] = v\n    }\n}`;
}

for (const [name, snippet] of Object.entries(snippets)) {
  test(`the snippet ${name}`, async () => {
    assert.ok(snippet.description);
    const code = filled([snippet.body].flat());
    const text = (around[snippet.prefix] ?? ((code: string) => code))(code);
    const answer = await run(tool, ['check', '-', '--allow', 'warnings'], `${text}\n`);
    assert.equal(answer.code, 0, `${text}\n${answer.errors}`);
  });
}
