// In place of the editor: as much of the module `vscode` as the extension uses, with what a test needs to look at.

type Listener = (event: any) => unknown;

export class EventEmitter<T> {
  private listeners: ((event: T) => unknown)[] = [];
  readonly event = (listener: (event: T) => unknown) => {
    this.listeners.push(listener);
    return { dispose: () => {} };
  };
  fire(event: T): void {
    for (const listener of this.listeners) listener(event);
  }
  dispose(): void {}
}

export class Uri {
  private constructor(readonly scheme: string, readonly path: string, readonly query: string) {}
  static from(parts: { scheme: string; path: string; query?: string }): Uri {
    return new Uri(parts.scheme, parts.path, parts.query ?? '');
  }
  static file(path: string): Uri {
    return new Uri('file', path, '');
  }
  static parse(text: string): Uri {
    const [, scheme, path, query] = /^([\w-]+):([^?]*)\??(.*)$/.exec(text)!;
    return new Uri(scheme!, path!, decodeURIComponent(query!));
  }
  get fsPath(): string {
    return this.path;
  }
  toString(): string {
    return `${this.scheme}:${this.path}${this.query ? `?${encodeURIComponent(this.query)}` : ''}`;
  }
}

export class Range {
  constructor(readonly line: number, _start: number, readonly end: number, _end: number) {}
  contains(other: Range): boolean {
    return this.line <= other.line && other.end <= this.end;
  }
}

export class DebugAdapterExecutable {
  constructor(readonly command: string, readonly args: string[]) {}
}

export class ThemeColor {
  constructor(readonly id: string) {}
}

export const ViewColumn = { Beside: -2 };
export const ProgressLocation = { Window: 10 };
export const TextEditorRevealType = { InCenter: 1 };

const events = { selection: [] as Listener[], change: [] as Listener[], close: [] as Listener[], visible: [] as Listener[], configuration: [] as Listener[] };
const on = (kind: keyof typeof events) => (listener: Listener) => {
  events[kind].push(listener);
  return { dispose: () => {} };
};

/** What the tests do and see. */
export const fake = {
  settings: new Map<string, string>(),
  commands: new Map<string, (...args: unknown[]) => Promise<unknown>>(),
  errors: [] as string[],
  opened: [] as string[],
  picks: [] as { label: string; description: string }[][],
  pick: '',
  output: '',
  documents: [] as any[],
  adapters: undefined as any,
  configurations: undefined as any,

  document(path: string, text: string) {
    const document = { uri: Uri.file(path), languageId: 'krn', version: 1, text, getText: () => document.text };
    fake.documents.push(document);
    return fake.show(document);
  },

  show(document: any) {
    const known = window.visibleTextEditors.find((it) => it.document === document);
    if (known) return known;
    const editor = {
      document,
      selection: { active: { line: 0 } },
      visibleRanges: [] as Range[],
      marked: [] as number[],
      revealed: undefined as number | undefined,
      setDecorations: (_: unknown, ranges: Range[]) => {
        editor.marked = ranges.map((range) => range.line);
      },
      revealRange: (range: Range) => {
        editor.revealed = range.line;
      },
    };
    window.visibleTextEditors.push(editor);
    for (const listener of events.visible) listener(window.visibleTextEditors);
    return editor;
  },

  move(editor: any, line: number) {
    editor.selection.active.line = line;
    for (const listener of events.selection) listener({ textEditor: editor });
  },

  edit(editor: any, text: string) {
    editor.document.text = text;
    editor.document.version += 1;
    for (const listener of events.change) listener({ document: editor.document });
  },

  hide(editor: any) {
    window.visibleTextEditors = window.visibleTextEditors.filter((it) => it !== editor);
  },

  close(editor: any) {
    fake.hide(editor);
    for (const listener of events.close) listener(editor.document);
  },

  configure(name: string, value: string) {
    fake.settings.set(name, value);
    for (const listener of events.configuration) listener({ affectsConfiguration: (it: string) => it === `krn.${name}` });
  },
};

const providers = new Map<string, any>();

export const window = {
  visibleTextEditors: [] as any[],
  activeTextEditor: undefined as any,
  createTextEditorDecorationType: () => ({ dispose: () => {} }),
  createOutputChannel: () => ({
    appendLine: (text: string) => {
      fake.output += `${text}\n`;
    },
    show: () => {},
    dispose: () => {},
  }),
  onDidChangeTextEditorSelection: on('selection'),
  onDidChangeVisibleTextEditors: on('visible'),
  showErrorMessage: async (text: string) => {
    fake.errors.push(text);
  },
  showQuickPick: async (items: { label: string; description: string }[]) => {
    fake.picks.push(items);
    return items.find((item) => item.label === fake.pick);
  },
  showTextDocument: async (document: any) => fake.show(document),
  withProgress: async (_: unknown, deed: () => Promise<unknown>) => deed(),
};

export const workspace = {
  registerTextDocumentContentProvider: (scheme: string, provider: any) => {
    providers.set(scheme, provider);
    // The editor asks again when the provider says that the text is another.
    provider.onDidChange((uri: Uri) => {
      const document = fake.documents.find((it) => it.uri.toString() === uri.toString());
      if (!document || uri.scheme !== scheme) return;
      document.text = provider.provideTextDocumentContent(uri);
      document.version += 1;
      for (const listener of events.change) listener({ document });
    });
    return { dispose: () => {} };
  },
  openTextDocument: async (uri: Uri) => {
    const known = fake.documents.find((it) => it.uri.toString() === uri.toString());
    if (known) return known;
    const text = providers.get(uri.scheme)!.provideTextDocumentContent(uri);
    const document = { uri, languageId: 'plaintext', version: 1, text, getText: () => document.text };
    fake.documents.push(document);
    return document;
  },
  onDidChangeTextDocument: on('change'),
  onDidCloseTextDocument: on('close'),
  onDidChangeConfiguration: on('configuration'),
  getConfiguration: () => ({ get: (name: string) => fake.settings.get(name) }),
};

export const commands = {
  registerCommand: (name: string, deed: (...args: unknown[]) => Promise<unknown>) => {
    fake.commands.set(name, deed);
    return { dispose: () => {} };
  },
  executeCommand: async (name: string) => fake.commands.get(name)!(),
};

export const debug = {
  registerDebugAdapterDescriptorFactory: (_: string, factory: any) => {
    fake.adapters = factory;
    return { dispose: () => {} };
  },
  registerDebugConfigurationProvider: (_: string, provider: any) => {
    fake.configurations = provider;
    return { dispose: () => {} };
  },
};

export const env = {
  openExternal: async (uri: Uri) => {
    fake.opened.push(uri.path);
  },
};
