// The extension itself, with the editor's module replaced and the tool as it is.

import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import { activate, deactivate } from '../src/extension';
import { LanguageClient } from './fake-client';
import { fake, window } from './fake-vscode';
import { read, tool, until } from './files';

const source = read('examples/saxpy.krn');
const computed = source.split('\n').findIndex((text) => text.includes('alpha * x[i]'));
const context = { subscriptions: [] as { dispose(): void }[] };
const made = () => LanguageClient.made.at(-1)!;
let editor: any;

before(async () => {
  fake.settings.set('path', tool);
  fake.settings.set('target', 'sm_90');
  await activate(context as never);
  editor = fake.document('/saxpy.krn', source);
  window.activeTextEditor = editor;
});

const beside = (scheme: string) => window.visibleTextEditors.find((it) => it.document.uri.scheme === scheme);

test('the client starts the server that the settings name', () => {
  assert.deepEqual(made().server, { command: tool, args: ['lsp'] });
  assert.deepEqual(made().options.documentSelector, [{ language: 'krn' }]);
  assert.ok(made().started);
});

test('the debugger is the tool that the settings name, and takes the kernel at the cursor', () => {
  assert.deepEqual({ ...fake.adapters.createDebugAdapterDescriptor() }, { command: tool, args: ['dap'] });
  fake.move(editor, computed);
  const resolve = (configuration: object) => fake.configurations.resolveDebugConfiguration(undefined, configuration);
  assert.deepEqual(resolve({}), {
    type: 'krn', request: 'launch', name: 'Debug kernel', program: '/saxpy.krn', stopOnEntry: true, kernel: 'saxpy', target: 'sm_90',
  });
  const written = { type: 'krn', request: 'launch', name: 'mine', program: 'a.krn', target: 'sm_80' };
  assert.deepEqual(resolve(written), written);
});

test('PTX beside follows the cursor in both directions', async () => {
  fake.move(editor, computed);
  await fake.commands.get('krn.showPtxBeside')!();
  const ptx = beside('krn-ptx');
  const lines = ptx.document.text.split('\n');
  assert.ok(lines.includes('.target sm_90'));
  assert.match(ptx.document.uri.path, /saxpy\.saxpy\.ptx$/);
  assert.ok(ptx.marked.some((at: number) => lines[at].includes('fma.rn.f32')));
  assert.equal(ptx.revealed, ptx.marked[0]);
  assert.deepEqual(editor.marked, [computed]);

  fake.move(editor, 0);
  assert.deepEqual([ptx.marked, editor.marked], [[], []]);

  fake.move(ptx, lines.findIndex((text: string) => text.includes('ld.global')));
  assert.deepEqual(editor.marked, [computed]);
  assert.equal(editor.revealed, computed);
  fake.move(ptx, 0);
  assert.deepEqual(editor.marked, []);

  // Another tab was in front of it.
  fake.move(editor, computed);
  fake.hide(ptx);
  assert.deepEqual(fake.show(ptx.document).marked, ptx.marked);
});

test('PTX is made anew when the source changes, and nothing is marked by an old one', async () => {
  const ptx = beside('krn-ptx');
  fake.move(editor, computed);
  fake.edit(editor, `\n${source.replace('alpha * x[i]', 'alpha * x[i] * 3.0')}`);
  fake.move(editor, computed + 1);
  assert.deepEqual(ptx.marked, [], 'the old PTX is of other lines');
  await until('new PTX', () => ptx.document.text.includes('alpha * x[i] * 3.0'));
  await until('new marks', () => ptx.marked.length > 0);
  assert.deepEqual(editor.marked, [computed + 1]);

  fake.edit(editor, 'kernel saxpy( {');
  await until('the mistakes', () => ptx.document.text.startsWith('// error['));
  fake.move(editor, 0);
  assert.deepEqual(ptx.marked, []);
  fake.edit(editor, source);
  await until('PTX again', () => ptx.document.text.includes('.visible .entry saxpy'));
  fake.close(ptx);
});

test('IR after the pass that is chosen', async () => {
  fake.pick = 'map';
  fake.move(editor, computed);
  await fake.commands.get('krn.showIrAfterPass')!();
  const passes = fake.picks.at(-1)!;
  assert.ok(passes.length > 20);
  assert.equal(passes.find((it) => it.label === 'map')!.description, 'changed');
  const ir = beside('krn-ir');
  assert.ok(ir.document.text.startsWith('// after map\nkernel "saxpy" {'));
  assert.match(ir.document.uri.path, /saxpy\.saxpy\.map\.kir$/);

  fake.edit(editor, 'kernel');
  const errors = fake.errors.length;
  await fake.commands.get('krn.showIrAfterPass')!();
  assert.match(fake.errors[errors]!, /mistakes/);
  fake.edit(editor, source);
  fake.close(ir);
});

test('what code lenses do is shown', async () => {
  const execute = made().options.middleware.executeCommand;
  const uri = editor.document.uri.toString();
  const answer = { code: 0, output: 'said\n', errors: '', page: null };
  await execute('krn.run', [uri, 'saxpy'], async () => answer);
  assert.match(fake.output, /krn run --kernel saxpy\nsaid\n/);
  await execute('krn.report', [uri, 'saxpy'], async () => ({ ...answer, page: '/report.html' }));
  assert.deepEqual(fake.opened, ['/report.html']);
  await execute('krn.ptx', [uri, 'saxpy'], () => assert.fail('the extension shows PTX itself'));
  assert.ok(beside('krn-ptx').document.text.includes('.visible .entry saxpy'));
});

test('another tool restarts the server, and one that is not there is told', async () => {
  const old = made();
  fake.configure('path', '/nowhere/krn');
  await until('another client', () => made() !== old && made().started);
  assert.ok(!old.started);
  const errors = fake.errors.length;
  await fake.commands.get('krn.showPtxBeside')!();
  assert.match(fake.errors[errors]!, /cannot be started/);
  // Nothing is left that would try again.
  fake.edit(editor, `${source}\n`);
  await new Promise((resume) => setTimeout(resume, 400));
  assert.equal(fake.errors.length, errors + 1);
  await deactivate();
  assert.ok(!made().started);
  for (const it of context.subscriptions) it.dispose();
});
