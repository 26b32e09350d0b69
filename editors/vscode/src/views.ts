// Texts that the tool makes of a source, shown beside it, and made anew when the source changes.

import * as vscode from 'vscode';
import { Lines } from './lines';
import { OPTIONS, type Snapshot, snapshots } from './passes';
import { build, refusal, run } from './tool';

/** PTX and IR have a scheme each: what an editor shows is told by its URI. */
export const PTX = 'krn-ptx';
export const IR = 'krn-ir';

/** How long nothing must have been typed before the text is made anew. */
const PAUSE = 250;

/** What a shown text was made of. */
interface View {
  source: vscode.Uri;
  kernel: string | undefined;
  /** IR after which pass; PTX where there is none. */
  pass: string | undefined;
  text: string;
  /** The version of the source that the text belongs to. */
  version: number;
  lines: Lines | undefined;
  stop: AbortController;
  timer: ReturnType<typeof setTimeout> | undefined;
}

export class Views implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly views = new Map<string, View>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly mark = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor('editor.hoverHighlightBackground'),
    overviewRulerColor: new vscode.ThemeColor('editorOverviewRuler.rangeHighlightForeground'),
  });
  private readonly listeners: vscode.Disposable[];

  constructor() {
    this.listeners = [
      this.mark,
      this.changed,
      ...[PTX, IR].map((scheme) => vscode.workspace.registerTextDocumentContentProvider(scheme, this)),
      vscode.window.onDidChangeTextEditorSelection((event) => this.follow(event.textEditor)),
      vscode.window.onDidChangeVisibleTextEditors(() => {
        if (vscode.window.activeTextEditor) this.follow(vscode.window.activeTextEditor);
      }),
      vscode.workspace.onDidChangeTextDocument((event) => this.sourceChanged(event.document)),
      vscode.workspace.onDidCloseTextDocument((document) => this.forget(document.uri)),
    ];
  }

  dispose(): void {
    for (const key of [...this.views.keys()]) this.forget(vscode.Uri.parse(key));
    for (const listener of this.listeners) listener.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.views.get(uri.toString())?.text ?? '';
  }

  /** Shows the PTX of a kernel, or of the file, beside the source. */
  async showPtx(source: vscode.TextDocument, kernel: string | undefined): Promise<void> {
    await this.show(PTX, source, kernel, undefined);
  }

  /** Lets a pass be chosen, and shows the IR after it. */
  async showIr(source: vscode.TextDocument, kernel: string | undefined): Promise<void> {
    const made = await this.printed(source, kernel);
    if (typeof made === 'string') {
      void vscode.window.showErrorMessage('Krn: there is no IR of a file with mistakes in it.');
      return;
    }
    const items = made.map((it) => ({ label: it.pass, description: it.changed ? 'changed' : 'changed nothing' }));
    const placeHolder = kernel ? `The IR of ${kernel} after which pass?` : 'The IR after which pass?';
    const chosen = await vscode.window.showQuickPick(items, { placeHolder });
    if (chosen) await this.show(IR, source, kernel, chosen.label);
  }

  private async show(
    scheme: string, source: vscode.TextDocument, kernel: string | undefined, pass: string | undefined,
  ): Promise<void> {
    const name = source.uri.path.split('/').pop()!.replace(/\.krn$/, '');
    const title = [name, kernel, pass].filter((part) => part !== undefined).join('.');
    const uri = vscode.Uri.from({ scheme, path: `/${title}.${scheme === PTX ? 'ptx' : 'kir'}`, query: source.uri.toString() });
    this.forget(uri);
    const view: View = {
      source: source.uri, kernel, pass, text: '', version: -1, lines: undefined, stop: new AbortController(), timer: undefined,
    };
    this.views.set(uri.toString(), view);
    try {
      await this.make(uri, view, source);
    } catch (error) {
      this.forget(uri);
      throw error;
    }
    const document = await vscode.workspace.openTextDocument(uri);
    const options = { viewColumn: vscode.ViewColumn.Beside, preserveFocus: true, preview: false };
    await vscode.window.showTextDocument(document, options);
    const editor = vscode.window.visibleTextEditors.find((it) => it.document.uri.toString() === source.uri.toString());
    if (editor) this.follow(editor);
  }

  /** The IR after each pass, or why there is none. */
  private async printed(source: vscode.TextDocument, kernel: string | undefined, stop?: AbortSignal): Promise<Snapshot[] | string> {
    const { tool, target } = settings(source.uri);
    const answer = await run(tool, build(kernel, target, OPTIONS), source.getText(), stop);
    return answer.code === 0 ? snapshots(answer.errors) : refusal(answer);
  }

  private async make(uri: vscode.Uri, view: View, source: vscode.TextDocument): Promise<void> {
    view.stop.abort();
    view.stop = new AbortController();
    const stop = view.stop.signal;
    const version = source.version;
    let text: string;
    let lines: Lines | undefined;
    if (view.pass === undefined) {
      const { tool, target } = settings(source.uri);
      const answer = await run(tool, build(view.kernel, target), source.getText(), stop);
      text = answer.code === 0 ? answer.output : refusal(answer);
      lines = answer.code === 0 ? new Lines(text) : undefined;
    } else {
      const made = await this.printed(source, view.kernel, stop);
      const found = typeof made === 'string' ? undefined : made.find((it) => it.pass === view.pass);
      text = typeof made === 'string' ? made : (found?.text ?? `// The pass ${view.pass} did not run.\n`);
    }
    // Where the source has changed meanwhile, another answer is on its way.
    if (stop.aborted) return;
    Object.assign(view, { text, lines, version });
    this.changed.fire(uri);
  }

  private sourceChanged(document: vscode.TextDocument): void {
    for (const [key, view] of this.views) {
      const uri = vscode.Uri.parse(key);
      if (uri.toString() === document.uri.toString()) {
        // The new text is in the editor: its marks are set again.
        for (const editor of vscode.window.visibleTextEditors) {
          if (editor.document.uri.toString() === view.source.toString()) this.follow(editor);
        }
      }
      if (view.source.toString() !== document.uri.toString() || view.version === document.version) continue;
      clearTimeout(view.timer);
      view.timer = setTimeout(() => {
        this.make(uri, view, document).catch((error: Error) => {
          void vscode.window.showErrorMessage(`Krn: ${error.message}`);
        });
      }, PAUSE);
    }
  }

  private forget(uri: vscode.Uri): void {
    const view = this.views.get(uri.toString());
    clearTimeout(view?.timer);
    view?.stop.abort();
    this.views.delete(uri.toString());
  }

  /** The cursor has moved in an editor: marks and shows what belongs to it on the other side. */
  private follow(editor: vscode.TextEditor): void {
    const uri = editor.document.uri.toString();
    const line = editor.selection.active.line;
    for (const [key, view] of this.views) {
      const source = view.source.toString();
      if ((uri !== source && uri !== key) || view.pass !== undefined) continue;
      const sources = vscode.window.visibleTextEditors.filter((it) => it.document.uri.toString() === source);
      const others = vscode.window.visibleTextEditors.filter((it) => it.document.uri.toString() === key);
      // Lines of another version of the text are not those that the PTX names.
      const version = sources[0]?.document.version;
      const lines = version !== undefined && version !== view.version ? undefined : view.lines;
      const from = uri === source ? line : lines?.toSource(line);
      const to = from === undefined ? [] : (lines?.toPtx(from) ?? []);
      this.set(sources, to.length === 0 ? [] : [from!], uri === key);
      this.set(others, to, uri === source);
    }
  }

  private set(editors: vscode.TextEditor[], lines: number[], reveal: boolean): void {
    const ranges = lines.map((line) => new vscode.Range(line, 0, line, 0));
    for (const editor of editors) {
      editor.setDecorations(this.mark, ranges);
      const seen = ranges.some((range) => editor.visibleRanges.some((it) => it.contains(range)));
      if (reveal && ranges[0] && !seen) editor.revealRange(ranges[0], vscode.TextEditorRevealType.InCenter);
    }
  }
}

export function settings(scope?: vscode.Uri): { tool: string; target: string } {
  const found = vscode.workspace.getConfiguration('krn', scope);
  return { tool: found.get<string>('path') || 'krn', target: found.get<string>('target') ?? '' };
}
