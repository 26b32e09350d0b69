// The debugger: `krn dap`, and what it is told where nobody has written a launch configuration.

import * as vscode from 'vscode';
import { kernelAt } from './lines';
import { settings } from './views';

/** Starts the tool that the settings name. */
export class Adapters implements vscode.DebugAdapterDescriptorFactory {
  createDebugAdapterDescriptor(): vscode.DebugAdapterDescriptor {
    return new vscode.DebugAdapterExecutable(settings().tool, ['dap']);
  }
}

/** Fills in what a launch configuration leaves open. */
export class Configurations implements vscode.DebugConfigurationProvider {
  /** Without a configuration, the kernel at the cursor, or the file's only one. */
  resolveDebugConfiguration(
    _folder: vscode.WorkspaceFolder | undefined, configuration: vscode.DebugConfiguration,
  ): vscode.DebugConfiguration | undefined {
    const editor = vscode.window.activeTextEditor;
    if (!configuration.type && !configuration.request) {
      if (editor?.document.languageId !== 'krn') return undefined;
      const kernel = kernelAt(editor.document.getText(), editor.selection.active.line);
      const program = editor.document.uri.fsPath;
      configuration = { type: 'krn', request: 'launch', name: 'Debug kernel', program, stopOnEntry: true, ...(kernel ? { kernel } : {}) };
    }
    const { target } = settings();
    return configuration.target || !target ? configuration : { ...configuration, target };
  }
}
