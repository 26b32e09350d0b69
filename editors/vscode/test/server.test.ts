// A session with the real server, through the protocol's library.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import * as lsp from 'vscode-languageserver-protocol/node';
import { type ServerAnswer, deed } from '../src/answers';
import { Lines } from '../src/lines';
import { read, tool } from './files';

const uri = 'file:///saxpy.krn';

test('the server answers what the client shows', { timeout: 60_000 }, async () => {
  const server = spawn(tool, ['lsp'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => server.on('exit', resolve));
  const connection = lsp.createProtocolConnection(
    new lsp.StreamMessageReader(server.stdout), new lsp.StreamMessageWriter(server.stdin),
  );
  const reported: lsp.PublishDiagnosticsParams[] = [];
  const news = new Map<number, () => void>();
  connection.onNotification(lsp.PublishDiagnosticsNotification.type, (it) => {
    reported.push(it);
    for (const resume of news.values()) resume();
  });
  const report = async (wanted: (it: lsp.PublishDiagnosticsParams) => boolean) => {
    while (!reported.some(wanted)) await new Promise<void>((resume) => news.set(news.size, resume));
  };
  connection.listen();
  const { capabilities } = await connection.sendRequest(lsp.InitializeRequest.type, {
    processId: process.pid, rootUri: null, capabilities: { textDocument: { publishDiagnostics: { versionSupport: true } } },
  });
  await connection.sendNotification(lsp.InitializedNotification.type, {});
  assert.deepEqual(capabilities.executeCommandProvider?.commands, ['krn.run', 'krn.profile', 'krn.ptx', 'krn.report']);

  const source = read('examples/saxpy.krn');
  await connection.sendNotification(lsp.DidOpenTextDocumentNotification.type, {
    textDocument: { uri, languageId: 'krn', version: 1, text: source },
  });
  const lenses = await connection.sendRequest(lsp.CodeLensRequest.type, { textDocument: { uri } });
  assert.deepEqual(lenses?.map((lens) => lens.command?.command), capabilities.executeCommandProvider?.commands);

  const { command, arguments: args } = lenses!.find((lens) => lens.command?.command === 'krn.ptx')!.command!;
  const ptx: ServerAnswer = await connection.sendRequest(lsp.ExecuteCommandRequest.type, { command, arguments: args });
  const line = source.split('\n').findIndex((text) => text.includes('alpha * x[i]'));
  assert.ok(new Lines(ptx.output).toPtx(line).length > 10);

  const made: ServerAnswer = await connection.sendRequest(lsp.ExecuteCommandRequest.type, { command: 'krn.run', arguments: args });
  const what = deed('krn.run', 'saxpy', made);
  assert.ok(what.show === 'text' && /verified/i.test(what.text), JSON.stringify(what));

  await connection.sendNotification(lsp.DidChangeTextDocumentNotification.type, {
    textDocument: { uri, version: 2 },
    contentChanges: [{ text: source.replace('alpha * x[i]', 'alpha * nothing[i]') }],
  });
  await report((it) => it.diagnostics.some((one) => one.message.includes('nothing')));

  await connection.sendRequest(lsp.ShutdownRequest.type);
  await connection.sendNotification(lsp.ExitNotification.type);
  assert.equal(await ended, 0);
  connection.dispose();
});
