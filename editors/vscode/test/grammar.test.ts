// The TextMate grammar over real files, by the editor's own engine.

import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { OnigScanner, OnigString, loadWASM } from 'vscode-oniguruma';
import { INITIAL, Registry, parseRawGrammar } from 'vscode-textmate';
import { own, read, root } from './files';

const engine = (async () => {
  const wasm = readFileSync(`${own}/node_modules/vscode-oniguruma/release/onig.wasm`);
  await loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
  return {
    createOnigScanner: (patterns: string[]) => new OnigScanner(patterns),
    createOnigString: (text: string) => new OnigString(text),
  };
})();

const registry = new Registry({
  onigLib: engine,
  loadGrammar: async (scope) => {
    if (scope !== 'source.krn') return null;
    const path = `${own}/syntaxes/krn.tmLanguage.json`;
    return parseRawGrammar(readFileSync(path, 'utf8'), path);
  },
});

interface Piece {
  text: string;
  scope: string;
}

/** The pieces of a text with the innermost scope of each. */
async function pieces(text: string): Promise<Piece[]> {
  const grammar = (await registry.loadGrammar('source.krn'))!;
  const found: Piece[] = [];
  let state = INITIAL;
  for (const line of text.split('\n')) {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
    state = ruleStack;
    for (const token of tokens) {
      const text = line.slice(token.startIndex, token.endIndex);
      if (text.trim() !== '') found.push({ text: text.trim(), scope: token.scopes.at(-1)!.replace(/\.krn$/, '') });
    }
  }
  return found;
}

const examples = readdirSync(`${root}/examples`).filter((name) => name.endsWith('.krn')).map((name) => `examples/${name}`);

test('every piece of every example has a scope of its own', async () => {
  assert.ok(examples.length > 30);
  for (const path of examples) {
    for (const { text, scope } of await pieces(read(path))) assert.notEqual(scope, 'source', `${path}: ${text}`);
  }
});

test('what follows a schedule or a comment is coloured as before it', async () => {
  for (const path of examples) {
    const text = read(path);
    const alone = await pieces(text);
    const behind = await pieces(`${text}\nkernel last() { }\n`);
    const last = behind.slice(alone.length).map(({ text, scope }) => `${text} ${scope}`);
    assert.deepEqual(last.slice(0, 2), ['kernel storage.type.function', 'last entity.name.function'], path);
  }
});

test('words have the scopes of what they are', async () => {
  const wanted: [string, string, string][] = [
    ['a = max(b, c)', 'max', 'support.function'],
    ['a = max(c: b[c])', 'max', 'support.function.reduction'],
    ['a = sum(p in 0..k: b[p])', 'sum', 'support.function.reduction'],
    ['a min= b', 'min=', 'keyword.operator.assignment'],
    ['let max = 3', 'max', 'variable.other'],
    ['a = b as bf16', 'bf16', 'support.type'],
    ['a = 0x1fu8 + 1', '0x1fu8', 'constant.numeric.hex'],
    ['a = 0bf16', '0bf16', 'constant.numeric.float'],
    ['a = 0b101', '0b101', 'constant.numeric.binary'],
    ['a = 1.5e-3f32', '1.5e-3f32', 'constant.numeric.float'],
    ['a = 1.', '1.', 'constant.numeric.float'],
    ['for i in 0..n step 2 {', '0', 'constant.numeric.integer'],
    ['for i in 0..n step 2 {', '..', 'keyword.operator.range'],
    ['for i in 0..n step 2 {', 'step', 'keyword.control.step'],
    ['step = 3', 'step', 'variable.other'],
    ['a = half(b)', 'half', 'entity.name.function.call'],
    ['a = b.mass', 'mass', 'variable.other.member'],
    ['a = V { x: 1 }', 'V', 'entity.name.type'],
    ['a /* b /* c */ d */ = e', 'e', 'variable.other'],
    ['a /* b /* c */ d */ = e', 'd', 'comment.block'],
    ['// krn-test: dims n=3', 'dims', 'keyword.other.test'],
    ['schedule k for sm_90 where n > 3 { tile i: 32 }', 'tile', 'keyword.other.directive'],
    ['schedule k for sm_90 where n > 3 { tile i: 32 }', 'sm_90', 'constant.language.target'],
    ['schedule k for sm_90 where n > 3 { tile i: 32 }', 'n', 'variable.other'],
    ['schedule { allow W0601 }', 'W0601', 'constant.other.code'],
    ['kernel tile(stage: f32) { }', 'stage', 'variable.other'],
    ['struct Body { x: f32 }', 'Body', 'entity.name.type.struct'],
    ['fn f(b: Body) -> f32 {', 'Body', 'entity.name.type'],
    ['fn f(b: Body) -> f32 {', '->', 'keyword.operator.arrow'],
    ['kernel k(a: inout Body[n]) {', 'inout', 'storage.modifier'],
  ];
  for (const [text, word, scope] of wanted) {
    const found = (await pieces(text)).find((piece) => piece.text === word || piece.text.split(' ').includes(word));
    assert.equal(found?.scope, scope, `${word} of ${text}`);
  }
});
