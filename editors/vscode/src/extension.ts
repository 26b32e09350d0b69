// What the editor starts: the client of `krn lsp`, and the commands.

import * as vscode from 'vscode';
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from 'vscode-languageclient/node';
import { type ServerAnswer, deed } from './answers';
import { Adapters, Configurations } from './debugger';
import { kernelAt } from './lines';
import { Views, settings } from './views';

let client: LanguageClient | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const views = new Views();
  const channel = vscode.window.createOutputChannel('Krn');
  const command = (name: string, deed: () => unknown) => vscode.commands.registerCommand(name, told(deed));
  context.subscriptions.push(
    views,
    channel,
    command('krn.showPtxBeside', () => atCursor((document, line) => views.showPtx(document, kernelAt(document.getText(), line)))),
    command('krn.showIrAfterPass', () => atCursor((document, line) => views.showIr(document, kernelAt(document.getText(), line)))),
    command('krn.restartServer', async () => {
      await client?.dispose();
      await start(views, channel);
    }),
    vscode.debug.registerDebugAdapterDescriptorFactory('krn', new Adapters()),
    vscode.debug.registerDebugConfigurationProvider('krn', new Configurations()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration('krn.path')) void vscode.commands.executeCommand('krn.restartServer');
    }),
  );
  await told(() => start(views, channel))();
}

export async function deactivate(): Promise<void> {
  await client?.dispose();
}

/** Errors are said to the user. */
function told(deed: () => unknown): () => Promise<void> {
  return async () => {
    try {
      await deed();
    } catch (error) {
      void vscode.window.showErrorMessage(`Krn: ${error instanceof Error ? error.message : String(error)}`);
    }
  };
}

async function atCursor(deed: (document: vscode.TextDocument, line: number) => Promise<void>): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  if (editor?.document.languageId === 'krn') await deed(editor.document, editor.selection.active.line);
}

async function start(views: Views, channel: vscode.OutputChannel): Promise<void> {
  const server: ServerOptions = { command: settings().tool, args: ['lsp'] };
  const options: LanguageClientOptions = {
    documentSelector: [{ language: 'krn' }],
    outputChannel: channel,
    traceOutputChannel: channel,
    middleware: { executeCommand: (command, args, next) => execute(views, channel, command, args, next) },
  };
  client = new LanguageClient('krn', 'Krn', server, options);
  await client.start();
}

/** A command of the server, from a code lens: what it answers is shown, and PTX is shown beside. */
async function execute(
  views: Views, channel: vscode.OutputChannel, command: string, args: unknown[],
  next: (command: string, args: unknown[]) => vscode.ProviderResult<unknown>,
): Promise<unknown> {
  const [uri, kernel] = args as [string, string];
  if (command === 'krn.ptx') {
    await told(async () => views.showPtx(await vscode.workspace.openTextDocument(vscode.Uri.parse(uri)), kernel))();
    return undefined;
  }
  const title = `${command.replace('.', ' ')} ${kernel}`;
  const progress = { location: vscode.ProgressLocation.Window, title };
  const answer = (await vscode.window.withProgress(progress, async () => next(command, args))) as ServerAnswer | undefined;
  if (!answer) return answer;
  const what = deed(command, kernel, answer);
  if (what.show === 'page') {
    await vscode.env.openExternal(vscode.Uri.file(what.path));
  } else {
    channel.appendLine(what.text);
    channel.show(true);
  }
  return answer;
}
