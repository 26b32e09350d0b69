// The debugger as the manifest describes it, and the tool: what the one proposes, the other takes.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { read, tool } from './files';

const { debuggers } = JSON.parse(read('editors/vscode/package.json')).contributes;

/** Sends requests, and gives the messages that come until the adapter ends. */
function talk(requests: { command: string; arguments?: object }[]): Promise<any[]> {
  return new Promise((resolve) => {
    const child = spawn(tool, ['dap'], { stdio: ['pipe', 'pipe', 'inherit'] });
    let text = Buffer.alloc(0);
    const messages: any[] = [];
    child.stdout.on('data', (part: Buffer) => {
      text = Buffer.concat([text, part]);
      for (;;) {
        const head = text.indexOf('\r\n\r\n');
        if (head < 0) return;
        const length = Number(/Content-Length: (\d+)/.exec(text.toString('utf8', 0, head))![1]);
        if (text.length < head + 4 + length) return;
        const message = JSON.parse(text.toString('utf8', head + 4, head + 4 + length));
        text = text.subarray(head + 4 + length);
        messages.push(message);
        if (message.event === 'terminated') child.stdin.end();
      }
    });
    child.on('close', () => resolve(messages));
    requests.forEach((request, at) => {
      const body = JSON.stringify({ seq: at + 1, type: 'request', ...request });
      child.stdin.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    });
  });
}

test('the schema for Zed has the same fields', () => {
  const schema = JSON.parse(read('editors/zed/debug_adapter_schemas/krn.json'));
  const { default: _, ...program } = debuggers[0].configurationAttributes.launch.properties.program;
  assert.deepEqual(schema.properties, { ...debuggers[0].configurationAttributes.launch.properties, program });
});

test('every field of a launch configuration is one that the tool takes', async () => {
  const program = join(mkdtempSync(join(tmpdir(), 'krn-')), 'saxpy.krn');
  writeFileSync(program, read('examples/saxpy.krn'));
  const values: Record<string, unknown> = {
    program, kernel: 'saxpy', sizes: { n: 100 }, set: { alpha: 2.5 }, inputs: { x: 'iota' }, seed: 1, target: 'sm_80', optimize: true,
    without: ['unroll'], unchecked: true, prints: true, sanitize: false, stopOnEntry: false, block: [0, 0, 0], warp: 0, lane: 3,
  };
  const { properties } = debuggers[0].configurationAttributes.launch;
  assert.deepEqual(Object.keys(values).sort(), Object.keys(properties).sort());
  const messages = await talk([
    { command: 'initialize', arguments: { adapterID: 'krn' } },
    { command: 'launch', arguments: values },
    { command: 'configurationDone' },
  ]);
  const refused = messages.filter((it) => it.success === false);
  assert.deepEqual(refused, []);
  assert.deepEqual(messages.find((it) => it.event === 'exited').body, { exitCode: 0 });
});
