// Which lines of PTX belong to which line of the source, by `.loc`. Lines are counted from 0, as editors do.

export class Lines {
  /** For each line of PTX the line of the source that it was made of. */
  private readonly sources: (number | undefined)[] = [];

  constructor(ptx: string) {
    let file: string | undefined;
    let source: number | undefined;
    for (const line of ptx.split('\n')) {
      const text = line.trim();
      // The text is the first file; places in others are of no text that is shown.
      const named = /^\.file\s+(\d+)\s/.exec(text);
      if (named) file ??= named[1];
      const place = /^\.loc\s+(\d+)\s+(\d+)\s+\d+/.exec(text);
      if (place) source = place[1] === file && Number(place[2]) > 0 ? Number(place[2]) - 1 : undefined;
      // A function ends at its brace, and what stands between functions has no place.
      if (text === '}' || /^\.(visible|func|entry|global|extern)\b/.test(text)) source = undefined;
      // The comment with the source's text stands before the `.loc` that it is about.
      const told = /^\/\/ (\d+): /.exec(text);
      if (told) source = Number(told[1]) - 1;
      this.sources.push(text === '' ? undefined : source);
    }
  }

  /** The line of the source that a line of PTX was made of. */
  toSource(line: number): number | undefined {
    return this.sources[line];
  }

  /** The lines of PTX that were made of a line of the source. */
  toPtx(line: number): number[] {
    return this.sources.flatMap((source, at) => (source === line ? [at] : []));
  }
}

/** The kernel in whose text a line lies, or the one before it. */
export function kernelAt(text: string, line: number): string | undefined {
  let found: string | undefined;
  const plain = text.replace(/\/\/.*|\/\*[^]*?\*\//g, (comment) => comment.replace(/[^\n]/g, ' '));
  for (const item of plain.split('\n').slice(0, line + 1)) {
    const kernel = /^\s*kernel\s+(\w+)/.exec(item);
    if (kernel) found = kernel[1];
    else if (/^\s*(fn|struct|const|static|schedule)\b/.test(item)) found = undefined;
  }
  return found;
}
