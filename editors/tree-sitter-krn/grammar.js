/**
 * The grammar of Krn: the one of `compiler/src/syntax/parser/`, in tree-sitter's terms. `docs/syntax.md` tells it in words,
 * and the tests of this folder hold it against the compiler's parser.
 *
 * What needs a look ahead is the scanner's business (`src/scanner.c`): where a line end ends a statement, how far a number
 * reaches, and whether `max(` is a reduction or a call.
 */

const RESERVED = [
  'struct', 'fn', 'reduction', 'const', 'static', 'kernel', 'schedule',
  'for', 'where', 'inout', 'let', 'var', 'forall', 'in', 'while', 'break', 'assert', 'print', 'if', 'else', 'as',
  'true', 'false',
];

/** From loose to tight; comparisons stand between `&&` and `|`, and do not chain. */
const LOGICAL = [[1, ['||']], [2, ['&&']]];
const COMPARISONS = ['==', '!=', '<', '<=', '>', '>='];
const ARITHMETIC = [[4, ['|']], [5, ['^']], [6, ['&']], [7, ['<<', '>>']], [8, ['+', '-']], [9, ['*', '/', '%']]];
const CAST = 10;

const ASSIGNMENTS = ['=', '+=', '-=', '*=', '/=', '%=', '<<=', '>>=', 'min=', 'max=', '&=', '|=', '^='];

/** Parts between commas; a last comma is welcome. */
const list1 = (part) => seq(part, repeat(seq(',', part)), optional(','));
const list = (part) => optional(list1(part));

const oneOf = (parts) => (parts.length === 1 ? parts[0] : choice(...parts));

const binary = (level, left, operators, right) =>
  prec.left(level, seq(field('left', left), field('operator', oneOf(operators)), field('right', right)));

/**
 * The rules of expressions that may begin with certain operands. A bare expression stands before a `{`, so no operand of it
 * ends in a brace. A leading one starts a statement, so it does not begin with `if`, which is a statement there; what
 * follows its first operand is as anywhere.
 *
 * @param prefix what the names of these rules begin with
 * @param rest what the names of the rules on the right of an operator begin with
 */
const expressions = (prefix, rest, operands) => {
  const own = (name) => ($) => $[`_${prefix}${name}`];
  const next = (name) => ($) => $[`_${rest}${name}`];
  const isWhole = prefix === '';
  // The rule itself where it has the public name, else one that takes that name.
  const named = (name) => ($) => (isWhole ? $[name] : alias($[`_${prefix}${name}`], $[name]));
  const key = (name) => (isWhole ? name : `_${prefix}${name}`);
  return {
    [`_${prefix}expression`]: ($) =>
      choice(
        own('arithmetic')($),
        alias($[`_${prefix}comparison`], $.binary_expression),
        alias($[`_${prefix}logical`], $.binary_expression),
      ),

    [`_${prefix}logical`]: ($) =>
      choice(...LOGICAL.map(([level, operators]) =>
        binary(level, own('expression')($), operators, next('expression')($)))),

    [`_${prefix}comparison`]: ($) => binary(3, own('arithmetic')($), COMPARISONS, next('arithmetic')($)),

    [`_${prefix}arithmetic`]: ($) =>
      choice(named('binary_expression')($), named('cast_expression')($), own('operand')($)),

    [key('binary_expression')]: ($) =>
      choice(...ARITHMETIC.map(([level, operators]) =>
        binary(level, own('arithmetic')($), operators, next('arithmetic')($)))),

    [key('cast_expression')]: ($) =>
      prec.left(CAST, seq(field('value', own('arithmetic')($)), 'as', field('type', $._type_name))),

    [`_${prefix}operand`]: ($) =>
      choice(
        // The operand behind a sign is on the right of something.
        rest === prefix ? named('unary_expression')($) : $.unary_expression,
        named('guarded_expression')($),
        own('access')($),
      ),

    ...(rest === prefix
      ? {
          [key('unary_expression')]: ($) =>
            seq(field('operator', choice('-', '!')), field('operand', own('operand')($))),
        }
      : {}),

    // Only an element, or a field of one, can have an `else`.
    [key('guarded_expression')]: ($) =>
      seq(
        field('access', choice(named('index_expression')($), named('field_expression')($), $.parenthesized_expression)),
        'else',
        field('otherwise', next('operand')($)),
      ),

    [`_${prefix}access`]: ($) =>
      choice(operands($), named('index_expression')($), named('field_expression')($)),

    [key('index_expression')]: ($) =>
      seq(field('base', own('access')($)), field('subscripts', $.subscripts)),

    [key('field_expression')]: ($) =>
      seq(field('base', own('access')($)), '.', field('field', alias($.identifier, $.field_identifier))),
  };
};

export default grammar({
  name: 'krn',

  word: ($) => $.identifier,

  reserved: { global: ($) => RESERVED },

  // The order is that of the scanner.
  externals: ($) => [
    $._line_end,
    $.integer_literal,
    $.float_literal,
    $.reduction_operator,
    $._block_comment_rest,
    $._error_sentinel,
  ],

  // Behind the `from` of a reduction a `{` begins the fields of a literal, or the body.
  conflicts: ($) => [[$._type_name, $._simple_operand]],

  extras: ($) => [/[ \t\r\n]/, $.line_comment, $.block_comment],

  rules: {
    source_file: ($) => repeat(choice($._item, ';')),

    _item: ($) =>
      choice(
        $.struct_item,
        $.function_item,
        $.reduction_item,
        $.const_item,
        $.static_item,
        $.kernel_item,
        $.schedule_item,
      ),

    struct_item: ($) =>
      seq('struct', field('name', $._type_name), field('body', $.field_declarations)),

    field_declarations: ($) => seq('{', list($.field_declaration), '}'),

    field_declaration: ($) =>
      seq(field('name', alias($.identifier, $.field_identifier)), ':', field('type', $._type)),

    function_item: ($) =>
      seq(
        'fn',
        field('name', $.identifier),
        field('parameters', $.parameters),
        '->',
        field('result', $._type),
        field('body', $.block),
      ),

    reduction_item: ($) =>
      seq(
        'reduction',
        field('name', $.identifier),
        field('parameters', $.parameters),
        '->',
        field('result', $._type),
        'from',
        field('from', $._expression),
        field('body', $.block),
      ),

    parameters: ($) => seq('(', list($.parameter), ')'),

    parameter: ($) => seq(field('name', $.identifier), ':', field('type', $._type)),

    const_item: ($) =>
      seq('const', field('name', $.identifier), ':', field('type', $._type), '=', field('value', $._expression)),

    static_item: ($) =>
      seq(
        'static',
        field('name', $.identifier),
        ':',
        field('type', $._type),
        optional(seq('=', field('value', $._expression))),
      ),

    kernel_item: ($) =>
      seq(
        'kernel',
        field('name', $.identifier),
        field('parameters', alias($._kernel_parameters, $.parameters)),
        optional($.results),
        optional($.facts),
        field('body', $.block),
      ),

    _kernel_parameters: ($) => seq('(', list(alias($._kernel_parameter, $.parameter)), ')'),

    _kernel_parameter: ($) =>
      seq(field('name', $.identifier), ':', optional('inout'), field('type', $._type)),

    results: ($) => seq('->', list1($.result)),

    result: ($) => seq(field('name', $.identifier), ':', field('type', $._type)),

    facts: ($) => seq('where', list1($._fact)),

    _fact: ($) => choice($._bare_expression, alias($._fact_about_values, $.call_expression)),

    // `injective(idx in 0..m)`
    _fact_about_values: ($) =>
      seq(field('function', $.identifier), field('arguments', alias($._range_of_values, $.arguments))),

    _range_of_values: ($) => seq('(', $.ranged, ')'),

    _type: ($) => choice($._type_name, $.array_type),

    array_type: ($) => seq(field('element', $._type_name), field('extents', $.extents)),

    extents: ($) => seq('[', list1($._expression), ']'),

    _type_name: ($) => alias($.identifier, $.type_identifier),

    // Schedules. Which directives there are, and what they take, is the checker's business.

    schedule_item: ($) =>
      seq(
        'schedule',
        optional(field('kernel', $.identifier)),
        optional(seq('for', field('target', $.identifier))),
        optional(alias($._conditions, $.facts)),
        field('body', $.directives),
      ),

    _conditions: ($) => seq('where', list1($._bare_expression)),

    directives: ($) =>
      seq(
        '{',
        repeat(';'),
        optional(seq($.directive, repeat(seq($._end, $.directive)), repeat(';'))),
        '}',
      ),

    directive: ($) =>
      seq(
        field('name', $.identifier),
        optional(seq($.directive_argument, repeat(seq(',', $.directive_argument)))),
      ),

    directive_argument: ($) =>
      seq(
        field('subject', $._directive_value),
        optional(seq(':', field('value', $._directive_value))),
        repeat($.modifier),
      ),

    _directive_value: ($) => choice($.integer_literal, $.identifier, $.directive_call),

    // `aosoa(32)`
    directive_call: ($) => seq(field('name', $.identifier), '(', $.integer_literal, ')'),

    modifier: ($) => seq(field('name', $.identifier), optional(field('number', $.integer_literal))),

    // Bodies.

    block: ($) =>
      seq(
        '{',
        repeat(';'),
        optional(seq($._statement, repeat(seq($._end, $._statement)), repeat(';'))),
        '}',
      ),

    _end: ($) => choice($._line_end, repeat1(';')),

    _statement: ($) =>
      choice(
        $.let_declaration,
        $.assignment,
        $.forall_statement,
        $.for_statement,
        $.while_statement,
        $.break_statement,
        $.assert_statement,
        $.print_statement,
        $.if_statement,
        $._leading_expression,
      ),

    let_declaration: ($) =>
      seq(
        choice('let', 'var'),
        field('name', $.identifier),
        optional(seq('[', list1($.axis), ']')),
        optional(seq(':', field('type', $._type))),
        '=',
        field('value', $._expression),
      ),

    assignment: ($) =>
      seq(
        field('left', $._leading_expression),
        field('operator', choice(...ASSIGNMENTS)),
        field('right', $._expression),
      ),

    forall_statement: ($) => seq('forall', list1(alias($._bare_axis, $.axis)), field('body', $.block)),

    for_statement: ($) =>
      seq(
        'for',
        field('name', $.identifier),
        'in',
        field('range', alias($._bare_range, $.range)),
        optional(seq('step', field('step', $._bare_expression))),
        field('body', $.block),
      ),

    while_statement: ($) => seq('while', field('condition', $._bare_expression), field('body', $.block)),

    break_statement: ($) => 'break',

    assert_statement: ($) => seq('assert', field('condition', $._expression)),

    print_statement: ($) => seq('print', '(', list($._expression), ')'),

    if_statement: ($) =>
      seq(
        'if',
        field('condition', $._bare_expression),
        field('then', $.block),
        optional(seq('else', field('otherwise', choice($.block, $.if_statement)))),
      ),

    axis: ($) => seq(field('name', $.identifier), optional(seq('in', field('range', $.range)))),

    _bare_axis: ($) =>
      seq(field('name', $.identifier), optional(seq('in', field('range', alias($._bare_range, $.range))))),

    range: ($) => range($._expression),

    _bare_range: ($) => range($._bare_expression),

    // Expressions.

    ...expressions('', '', ($) =>
      choice($._simple_operand, $.struct_expression, $.if_expression, $.block)),
    ...expressions('bare_', 'bare_', ($) => $._simple_operand),
    ...expressions('leading_', '', ($) => choice($._simple_operand, $.struct_expression, $.block)),

    _simple_operand: ($) =>
      choice(
        $.identifier,
        $.integer_literal,
        $.float_literal,
        $.boolean_literal,
        $.call_expression,
        $.reduction,
        $.parenthesized_expression,
        $.array_expression,
      ),

    boolean_literal: ($) => choice('true', 'false'),

    call_expression: ($) => seq(field('function', $.identifier), field('arguments', $.arguments)),

    arguments: ($) => seq('(', list($._expression), ')'),

    reduction: ($) =>
      seq(field('operator', $.reduction_operator), '(', list1($.axis), ':', field('value', $._expression), ')'),

    parenthesized_expression: ($) => seq('(', $._expression, ')'),

    array_expression: ($) => seq('[', list($._expression), ']'),

    struct_expression: ($) => seq(field('name', $._type_name), field('body', $.field_initializers)),

    field_initializers: ($) => seq('{', list($.field_initializer), '}'),

    field_initializer: ($) =>
      seq(field('name', alias($.identifier, $.field_identifier)), ':', field('value', $._expression)),

    // As a value; the last `else` is needed.
    if_expression: ($) =>
      seq(
        'if',
        field('condition', $._bare_expression),
        field('then', $.block),
        'else',
        field('otherwise', choice($.block, $.if_expression)),
      ),

    subscripts: ($) => seq('[', list1(choice($._expression, $.ranged)), ']'),

    // `c in lo..hi` in the brackets of a left side
    ranged: ($) => seq(field('name', $.identifier), 'in', field('range', $.range)),

    identifier: ($) => /[A-Za-z_][A-Za-z0-9_]*/,

    // Without the characters that change the order in which text is shown, which the compiler refuses.
    line_comment: ($) => /\/\/[^\n\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]*/,

    // They nest.
    block_comment: ($) => seq('/*', $._block_comment_rest),
  },
});

/** `n`, `lo..hi`, `lo..=hi` */
function range(bound) {
  return choice(
    field('high', bound),
    seq(field('low', bound), choice('..', '..='), field('high', bound)),
  );
}
