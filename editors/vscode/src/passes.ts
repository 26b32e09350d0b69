// The IR after each pass, as `krn build --print-after all --time-passes` prints it.

export interface Snapshot {
  pass: string;
  /** Whether the pass changed anything, in any kernel or launch. */
  changed: boolean;
  text: string;
}

/** What makes the tool print it. */
export const OPTIONS = ['--print-after', 'all', '--time-passes'];

/** The passes in the order in which they run first. */
export function snapshots(printed: string): Snapshot[] {
  const found = new Map<string, Snapshot>();
  let current: Snapshot | undefined;
  for (const line of printed.split('\n')) {
    const after = /^\/\/ after (\w+)/.exec(line);
    if (after) {
      const pass = after[1]!;
      current = found.get(pass) ?? { pass, changed: false, text: '' };
      found.set(pass, current);
      current.text += `${line}\n`;
      continue;
    }
    const time = /^ {2}(\w+) +[\d.]+ \S+ *(changed)?$/.exec(line);
    if (time) {
      current = undefined;
      const pass = found.get(time[1]!);
      if (pass && time[2]) pass.changed = true;
      continue;
    }
    // The times of a kernel follow its name.
    if (/^\S+: [\d.]+ \S+$/.test(line)) current = undefined;
    if (current) current.text += `${line}\n`;
  }
  return [...found.values()].map((it) => ({ ...it, text: `${it.text.trimEnd()}\n` }));
}
