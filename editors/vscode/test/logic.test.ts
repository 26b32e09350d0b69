// What the extension works out without the editor, on what the tool really prints.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deed } from '../src/answers';
import { Lines, kernelAt } from '../src/lines';
import { OPTIONS, snapshots } from '../src/passes';
import { build, refusal, run } from '../src/tool';
import { read, tool } from './files';

test('lines of PTX and of the source belong together, in both directions', async () => {
  const source = read('examples/saxpy.krn');
  const line = source.split('\n').findIndex((text) => text.includes('alpha * x[i]'));
  const { code, output } = await run(tool, build('saxpy', 'sm_90'), source);
  assert.equal(code, 0);
  const ptx = output.split('\n');
  const lines = new Lines(output);
  const made = lines.toPtx(line);
  assert.ok(made.length > 10, `${made.length} lines`);
  assert.ok(made.some((at) => ptx[at]!.includes('fma.rn.f32')));
  assert.ok(made.every((at) => lines.toSource(at) === line));
  // What is of no line of the source: the head, declarations, and the end.
  for (const word of ['.version', '.visible', '.reqntid', '.reg ']) {
    assert.equal(lines.toSource(ptx.findIndex((text) => text.includes(word))), undefined, word);
  }
  assert.deepEqual(lines.toPtx(0), []);
});

test('places in another file are of no line, and an entry ends', () => {
  const ptx = ['.file 1 "a"', '.file 2 "b"', '.loc 1 7 2', 'add', '.loc 2 7 2', 'mul', '.loc 1 8 1', 'ret', '}', 'x'];
  const lines = new Lines(ptx.join('\n'));
  assert.deepEqual(lines.toPtx(6), [2, 3]);
  assert.deepEqual(lines.toPtx(7), [6, 7]);
  assert.equal(lines.toSource(5), undefined);
  assert.equal(lines.toSource(9), undefined);
});

test('the kernel at the cursor', () => {
  const text = '// kernel no()\nkernel one() {\n}\n/*\nkernel no()\n*/\nfn f() -> f32 { 1.0 }\n kernel two() { }\n';
  const found = text.split('\n').map((_, line) => kernelAt(text, line));
  assert.deepEqual(found, [undefined, 'one', 'one', 'one', 'one', 'one', undefined, 'two', 'two']);
});

test('the IR after each pass, and which changed it', async () => {
  const source = read('examples/matmul.krn');
  const { code, errors } = await run(tool, build('matmul', '', OPTIONS), source);
  assert.equal(code, 0);
  const found = snapshots(errors);
  assert.ok(found.length > 20);
  for (const { pass, text } of found) {
    assert.ok(text.startsWith(`// after ${pass}\n`), pass);
    assert.ok(text.includes('kernel "') && text.endsWith('}\n'), pass);
    assert.ok(!/ (us|ms)\b/.test(text), pass);
  }
  const changed = found.filter((it) => it.changed).map((it) => it.pass);
  assert.ok(changed.includes('map') && changed.length < found.length, changed.join());
});

test('a file with mistakes gives the tool’s words', async () => {
  const answer = await run(tool, build(undefined, ''), 'kernel k() { y = }');
  assert.equal(answer.code, 1);
  assert.match(refusal(answer), /^\/\/ error\[E/);
  assert.ok(refusal(answer).split('\n').every((line) => line === '' || line.startsWith('//')));
});

test('a tool that is not there is told', async () => {
  await assert.rejects(run('/nowhere/krn', [], ''), /cannot be started \(ENOENT\): set `krn.path`/);
});

test('what becomes of the server’s answers', () => {
  const answer = { code: 0, output: 'verified\n', errors: '', page: null };
  assert.deepEqual(deed('krn.run', 'k', answer), { show: 'text', text: 'krn run --kernel k\nverified\n' });
  assert.deepEqual(deed('krn.report', 'k', { ...answer, page: '/p.html' }), { show: 'page', path: '/p.html' });
  const failed = deed('krn.run', 'k', { ...answer, code: 3, errors: 'differs\n' });
  assert.deepEqual(failed, { show: 'text', text: 'krn run --kernel k\nverified\ndiffers\nexit code 3\n' });
});
